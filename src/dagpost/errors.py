"""Errors and warnings that name the culprit and the cure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where and how to mend it."""


class DataWarning(UserWarning):
    """The input can be used, but a person would want to know this about it."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """A phrase that suggests the closest known word, or lists all of them.

    >>> nearest("liner", ["linear", "mlp"])
    "did you mean 'linear'?"
    """
    known = list(choices)
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(repr(k) for k in known)
