"""What a person reads goes to standard error, results to standard output; a closed pipe is no fault."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from dagpost import errors

OWN = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Warning))
"""Warnings that are for the person, not for the programmer."""


def say(text: str, quiet: bool = False) -> None:
    """A line for the person at the terminal."""
    if not quiet:
        with contextlib.suppress(BrokenPipeError):
            print(text, file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """The one line that a fault gets."""
    say("dagpost: error: " + " ".join(text.split()))


def emit(text: str) -> None:
    """A result, on standard output. Whoever reads it may stop reading."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def as_json(value: Any) -> str:
    """Strict JSON: infinities and NaN become null."""
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str | bool | None) else str(value)


@contextlib.contextmanager
def plain_warnings() -> Iterator[None]:
    """Our own warnings as single lines without a place in the code, once each."""
    seen: set[str] = set()
    before = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if not issubclass(category, OWN):
            before(message, category, filename, lineno, file, line)
        elif str(message) not in seen:
            seen.add(str(message))
            say(f"dagpost: warning: {message}")

    with warnings.catch_warnings():
        for category in OWN:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
