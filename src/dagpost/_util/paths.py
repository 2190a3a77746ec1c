"""Paths that somebody gave: what is wrong with them is said before anything is read or written."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from dagpost.errors import InputError, printable


def as_path(path: str | os.PathLike[str], what: str = "file") -> Path:
    """The path, if it is one."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError(f"{path!r:.60} is not the path of a {what}")
    return Path(path)


def existing_file(path: str | os.PathLike[str], what: str, kinds: str) -> tuple[Path, str]:
    """The plain file at this path and its name as it can be shown; `what` it should be, and its usual endings."""
    file = as_path(path, what)
    shown = printable(file.name)
    try:
        status = file.stat()
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file (looked in {printable(file.absolute().parent)})") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror})") from None
    if stat.S_ISDIR(status.st_mode):
        raise InputError(f"{shown} is a folder: give a {what} ({kinds})")
    if not stat.S_ISREG(status.st_mode):
        raise InputError(f"{shown} is not a plain file (a pipe or device): save the {what} to a file first")
    if status.st_size == 0:
        raise InputError(f"{shown} is empty")
    return file, shown
