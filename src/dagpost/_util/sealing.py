"""Sealed files: a checksum trailer that detects any change or truncation.

The trailer is `mark (16 bytes) | length of the content (8 bytes) | SHA-256 of all before (32 bytes)`. It stands at the
end, which readers of HDF5 and netCDF ignore. It protects against damage, not against forgery.
"""

from __future__ import annotations

import hashlib
import hmac
import os

from dagpost._util.files import existing_file
from dagpost.errors import InputError

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
