"""Files that are there as a whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from dagpost.errors import InputError

TEMPORARY = ".tmp"


def write_atomically(path: str | os.PathLike[str], content: bytes, overwrite: bool = True) -> None:
    """Write a temporary file beside `path`, push it to the disk, then give it its name in one step.

    A crash at any moment leaves the old file or the new one. Without `overwrite` a file that is there stays, and
    an `InputError` says so.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(TEMPORARY, f".{path.name}.", path.parent)
    try:
        try:
            _write(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        if overwrite:
            os.replace(temporary, path)
        else:
            os.link(temporary, path)  # unlike a rename, it fails where something has the name
            os.unlink(temporary)
    except FileExistsError:
        _remove(temporary)
        raise InputError(f"'{path}' exists: choose another name, or delete it first") from None
    except BaseException:
        _remove(temporary)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Push names and renames in the folder to the disk, where the system can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _write(handle: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
