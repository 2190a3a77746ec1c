"""Text from a file that somebody else wrote: every fault is named."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from pathlib import Path

from dagpost.errors import InputError, printable


def existing_file(path: str | os.PathLike[str], what: str, kinds: str) -> tuple[Path, str]:
    """The plain file at this path and its name as it can be shown; `what` it should be, and its usual endings."""
    if not isinstance(path, str | os.PathLike) or "\0" in str(path) or not str(path):
        raise InputError(f"{path!r:.60} is not the path of a {what}")
    file = Path(path)
    shown = printable(file.name)
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        raise InputError(f"{shown}: no such file (looked in {printable(file.absolute().parent)})") from None
    except OSError as error:
        raise InputError(f"{shown}: cannot be read ({error.strerror})") from None
    if stat.S_ISDIR(mode):
        raise InputError(f"{shown} is a folder: give a {what} ({kinds})")
    if not stat.S_ISREG(mode):
        raise InputError(f"{shown} is not a plain file (a pipe or device): save the {what} to a file first")
    if file.stat().st_size == 0:
        raise InputError(f"{shown} is empty")
    return file, shown


def read_bytes(file: Path, shown: str, largest: int, cure: str) -> bytes:
    """All of a file, decompressed if it ends in .gz, or an error if that is more than `largest` bytes."""
    try:
        if file.suffix.lower() == ".gz":
            with gzip.open(file) as stream:
                raw = stream.read(largest + 1)
        else:
            with open(file, "rb") as stream:
                raw = stream.read(largest + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shown}: cannot be read ({error})") from None
    if len(raw) > largest:
        raise InputError(f"{shown}: more than {largest / 2**30:.3g} GiB of text: too large, {cure}")
    return raw


def decoded(raw: bytes, shown: str, what: str) -> str:
    """UTF-8 text with line ends as they should be."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{shown} is UTF-16 text: save it as UTF-8")
    if raw[:2000].count(b"\x00") * 4 > len(raw[:2000]):
        raise InputError(f"{shown} is UTF-16 text: save it as UTF-8")
    if b"\x00" in raw:
        line = raw[: raw.index(b"\x00")].count(b"\n") + 1
        raise InputError(f"{shown}: NUL byte in line {line}: the file is damaged or not a {what}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{shown}: line {line} is not UTF-8 (Latin-1, perhaps): save the file as UTF-8") from None
    if not text.strip():
        raise InputError(f"{shown} is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")
