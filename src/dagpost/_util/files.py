"""Files: atomic writes, locks between processes, checks of paths, and seals.

A sealed file ends in a checksum trailer that detects any change or truncation: `mark (16 bytes) | length of the content
(8 bytes) | SHA-256 of all before (32 bytes)`. Readers of HDF5 and netCDF ignore what stands at the end. It protects
against damage, not against forgery.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from dagpost.errors import InputError, printable

PARTIAL = ".part"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)


def write_atomically(path: str | os.PathLike[str], content: bytes | bytearray, overwrite: bool = False) -> Path:
    """Write a file atomically: at every moment the path holds the old file or the complete new one.

    The content is written to a temporary file in the same folder, synced to disk and renamed; then the folder is
    synced. An existing file is replaced only if `overwrite` is set.
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
            _rename_without_overwriting(partial, target)
        _sync_folder(target.parent)
    except OSError as error:
        what = f"{printable(target.name)} could not be written ({error.strerror or error})"
        raise OSError(error.errno, what) from error
    finally:
        with suppress(OSError):
            os.unlink(partial)
    return target


def check_target(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Return the path, or raise an error if no file can be written there; call it before a long computation."""
    target = as_path(path)
    shown, folder = printable(target.name), target.parent
    if not folder.is_dir():
        raise InputError(f"{shown}: there is no folder {printable(folder)}: create it first")
    if target.is_dir():
        raise InputError(f"{shown} is a folder: give the name of a file")
    if target.exists() and not overwrite:
        raise _exists_error(target)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{shown}: the folder {printable(folder)} cannot be written to")
    return target


def _write(handle: int, content: bytes | bytearray) -> None:
    """Write all bytes; a single `os.write` may write only some of them."""
    left = memoryview(content)
    while left:
        left = left[os.write(handle, left) :]


def _exists_error(target: Path) -> InputError:
    """Return the error for a path that exists already."""
    return InputError(f"{printable(target.name)} exists: give another name, or overwrite=True")


def _rename_without_overwriting(partial: Path, target: Path) -> None:
    """Give the temporary file its name, or raise an error if that exists.

    Unlike a rename, a hard link fails if another process has just created the target.
    """
    try:
        os.link(partial, target)
    except FileExistsError:
        raise _exists_error(target) from None
    except (OSError, NotImplementedError):  # a file system without hard links
        if target.exists():
            raise _exists_error(target) from None
        os.replace(partial, target)


def _sync_folder(folder: Path) -> None:
    """Sync the directory entry to disk."""
    if os.name == "nt":
        return  # Windows cannot open folders
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def try_lock(handle: int) -> bool:
    """Try to take an exclusive lock on an open file; return False if another process holds it.

    Where the system or the file system has no locks, return True, so that dagpost still works there.
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


TABLE_KINDS = ".csv, .tsv, .xlsx, .parquet or .feather"
"""Extensions of tables, in words."""


def as_path(path: str | os.PathLike[str], what: str = "file") -> Path:
    """Return the argument as a Path, or raise an error if it cannot be one; `what` names the expected kind of file."""
    if not isinstance(path, str | os.PathLike) or not str(path) or "\0" in str(path):
        raise InputError(f"{path!r:.60} is not the path of a {what}")
    return Path(path)


def existing_file(path: str | os.PathLike[str], what: str, kinds: str) -> tuple[Path, str]:
    """Return the path of an existing regular file and its printable name.

    `what` (the expected kind of file) and `kinds` (its usual extensions) appear in error messages.
    """
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


MARK = b"dagpost sealed 1"
TRAILER = len(MARK) + 8 + 32


def seal(content: bytes | bytearray | memoryview) -> bytes:
    """Return the content followed by its trailer."""
    body = b"".join([content, MARK, len(content).to_bytes(8, "little")])
    return body + hashlib.sha256(body).digest()


class Damaged(Exception):
    """The bytes differ from what was written; the message says how, about "it"."""


def content_of(raw: bytes) -> memoryview:
    """Return the content without its trailer; raise `Damaged` if it is not intact."""
    view = memoryview(raw)
    if len(raw) < TRAILER or bytes(view[-TRAILER : 16 - TRAILER]) != MARK:
        raise Damaged("its checksum trailer is missing")
    if int.from_bytes(view[16 - TRAILER : -32], "little") != len(raw) - TRAILER:
        raise Damaged("its length differs from the recorded length")
    if not hmac.compare_digest(hashlib.sha256(view[:-32]).digest(), bytes(view[-32:])):
        raise Damaged("its contents do not match its checksum")
    return view[:-TRAILER]


def unseal(raw: bytes, shown: str) -> memoryview:
    """Return the content without its trailer, or raise an error that names the file (`shown`) if it is damaged."""
    try:
        return content_of(raw)
    except Damaged as error:
        raise InputError(f"{shown} is truncated, damaged or not a dagpost file: {error}") from None


def read_sealed(path: str | os.PathLike[str], largest_bytes: int) -> memoryview:
    """Return the content of a sealed file; its type and size are checked before it is read."""
    file, shown = existing_file(path, "file that dagpost wrote", "posterior.nc")
    size = file.stat().st_size
    if size > largest_bytes:
        raise InputError(
            f"{shown} has {size / 2**30:.3g} GiB, above the limit of {largest_bytes / 2**30:.3g} GiB: "
            "raise largest_bytes if you trust it"
        )
    try:
        with open(file, "rb") as stream:
            raw = stream.read(largest_bytes + 1)
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror})") from None
    return unseal(raw, shown)
