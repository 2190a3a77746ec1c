"""Files written whole or not at all, locks between processes, and paths checked before use."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

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


def hold(handle: int) -> bool:
    """Whether this process has the lock from now on; where there are no locks, everybody has it.

    Only a lock that somebody else holds refuses: a file system without locks is no reason not to work there.
    """
    try:
        import fcntl
    except ImportError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


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
