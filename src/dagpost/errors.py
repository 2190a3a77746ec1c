"""Errors and warnings that name the culprit and the cure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave cannot be used; the message says what, where and how to mend it."""


class AllCyclic(InputError):
    """Every particle of a DiBS run has a cycle after its last step (`steps`): there is no posterior over DAGs."""

    def __init__(self, message: str, steps: int | None = None):
        super().__init__(message)
        self.steps = steps


class RunError(RuntimeError):
    """A run could not go on; the message says where it stopped and what to do."""


class DataWarning(UserWarning):
    """The input can be used, but a person would want to know this about it."""


class CheckpointWarning(UserWarning):
    """A run goes on, but not from the state, or not with the safety, that was asked for."""


class WeightingWarning(UserWarning):
    """Other weights were asked for than the ones that are right."""


def printable(name: object) -> str:
    """The name as it can be shown in a terminal: control characters escaped."""
    text = str(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def whole_number(name: str, value: object, least: int) -> int:
    """The value as an int, or an error that names the option."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:  # type: ignore[attr-defined]
        raise InputError(f"{name}={value!r}: give a whole number, at least {least}")
    return value.__index__()  # type: ignore[attr-defined]


def positive(name: str, value: object) -> float:
    """The value as a float above 0, or an error that names the option."""
    if isinstance(value, str | bool) or not hasattr(value, "__float__") or not 0 < float(value) < float("inf"):  # type: ignore[arg-type]
        raise InputError(f"{name}={value!r}: give a number above 0")
    return float(value)  # type: ignore[arg-type]


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
