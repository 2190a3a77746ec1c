"""Output of the commands: messages on standard error, results on standard output. A closed pipe is not an error."""

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

OWN_WARNINGS = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Warning))
"""Warning classes of dagpost, which are addressed to users."""


def say(text: str, quiet: bool = False) -> None:
    """Print a message on standard error, unless `quiet`."""
    if not quiet:
        with contextlib.suppress(BrokenPipeError):
            print(text, file=sys.stderr, flush=True)


def print_error(text: str) -> None:
    """Print an error as one line on standard error."""
    say("dagpost: error: " + " ".join(text.split()))


def emit(text: str) -> None:
    """Print a result on standard output; ignore a reader that has closed the pipe."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def pair_text(pair: Mapping[str, Any]) -> str:
    """Return a pair of nodes with its direction, or with a line where the direction is open."""
    cause, effect = (errors.printable(pair[end]) for end in ("cause", "effect"))
    from dagpost.posterior.pairs import LEAST_SHARE

    sign = f", effect {pair['sign']}" if pair.get("sign") else ""
    if pair["direction"] < LEAST_SHARE:
        return f"{cause} -- {effect}  (direction open, {pair['direction']:.2f} for ->{sign})"
    return f"{cause} -> {effect}  ({pair['direction']:.2f} for this direction{sign})"


def as_json(value: Any) -> str:
    """Return the value as strict JSON; infinities and NaN become null."""
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return the value as dicts, lists and scalars that JSON can hold."""
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
    """Print dagpost's own warnings as single lines without a source location, each text once."""
    seen: set[str] = set()
    show_other = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if not issubclass(category, OWN_WARNINGS):
            show_other(message, category, filename, lineno, file, line)
        elif str(message) not in seen:
            seen.add(str(message))
            say(f"dagpost: warning: {message}")

    with warnings.catch_warnings():
        for category in OWN_WARNINGS:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield
