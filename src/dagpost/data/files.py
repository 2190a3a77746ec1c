"""Text from a file that somebody else wrote: every fault is named."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from dagpost.errors import InputError


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
