"""Files that are there as a whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from dagpost._util.paths import as_path
from dagpost.errors import InputError, printable

PARTIAL = ".part"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_atomically(path: str | os.PathLike[str], content: bytes | bytearray, overwrite: bool = False) -> Path:
    """Write the bytes under this name; at every moment the name holds the old file, or the new one as a whole.

    The content goes to a new file in the same folder, is brought to disk, and then takes the name; then the folder is
    brought to disk. A file that is there already is left alone unless `overwrite` is set.
    """
    target = check_target(path, overwrite)
    partial = target.with_name(f".{secrets.token_hex(8)}{PARTIAL}")
    try:
        handle = os.open(partial, _NEW, 0o666)
        try:
            _write(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        if overwrite:
            os.replace(partial, target)
        else:
            _take_free_name(partial, target)
        _sync_folder(target.parent)
    except OSError as error:
        what = f"{printable(target.name)} could not be written ({error.strerror or error})"
        raise OSError(error.errno, what) from error
    finally:
        with suppress(OSError):
            os.unlink(partial)
    return target


def check_target(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """The path, or an error that says why a file cannot be written there; for asking before a long computation."""
    target = as_path(path)
    shown, folder = printable(target.name), target.parent
    if not folder.is_dir():
        raise InputError(f"{shown}: there is no folder {printable(folder)}: make it first")
    if target.is_dir():
        raise InputError(f"{shown} is a folder: give the name of a file")
    if target.exists() and not overwrite:
        raise _taken(target)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{shown}: the folder {printable(folder)} cannot be written to")
    return target


def _write(handle: int, content: bytes | bytearray) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def _taken(target: Path) -> InputError:
    return InputError(f"{printable(target.name)} exists: give another name, or overwrite=True")


def _take_free_name(partial: Path, target: Path) -> None:
    """A link fails where the name is taken, also when another process took it a moment ago; a rename would not."""
    try:
        os.link(partial, target)
    except FileExistsError:
        raise _taken(target) from None
    except (OSError, NotImplementedError):  # a file system without links
        if target.exists():
            raise _taken(target) from None
        os.replace(partial, target)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
