"""Exceptions, warnings and helpers for checking options; messages name the cause and the fix."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


class InputError(ValueError):
    """Invalid input; the message says what is wrong, where, and how to fix it."""


class AllCyclic(InputError):
    """Every particle of a DiBS run has a cycle after the last step, so there is no posterior over DAGs.

    Attributes
    ----------
    steps
        Number of steps of the run, if known.
    """

    def __init__(self, message: str, steps: int | None = None):
        super().__init__(message)
        self.steps = steps


class FewOrders(InputError):
    """Too few orders were accepted, where exact draws go by way of orders."""


class RunError(RuntimeError):
    """A run could not continue; the message says where it stopped and what to do."""


class DataWarning(UserWarning):
    """The input is usable but probably not what was intended."""


class TableWarning(DataWarning):
    """A table lost a column that nobody named, has one that looks like no variable, or a row of numbers as header."""


class CheckpointWarning(UserWarning):
    """A run continues, but not from the requested state or not with the requested checkpoints."""


class WeightingWarning(UserWarning):
    """The requested weights are not the correct ones for this posterior."""


def printable(name: object) -> str:
    """Return the text with control characters escaped, safe to show in a terminal."""
    text = str(name)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def whole_number(name: str, value: object, least: int) -> int:
    """Return the value as an int of at least `least`, or raise an error that names the option."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < least:  # type: ignore[attr-defined]
        raise InputError(f"{name}={value!r}: give a whole number, at least {least}")
    return value.__index__()  # type: ignore[attr-defined]


def positive(name: str, value: object) -> float:
    """Return the value as a finite float above 0, or raise an error that names the option."""
    if isinstance(value, str | bool) or not hasattr(value, "__float__") or not 0 < float(value) < float("inf"):  # type: ignore[arg-type]
        raise InputError(f"{name}={value!r}: give a number above 0")
    return float(value)  # type: ignore[arg-type]


def nearest(word: str, choices: Iterable[str]) -> str:
    """Return a phrase that suggests the closest known word, or lists all of them.

    >>> nearest("liner", ["linear", "mlp"])
    "did you mean 'linear'?"
    """
    known = list(choices)
    close = difflib.get_close_matches(word, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return "known: " + ", ".join(repr(k) for k in known)


def from_registry(what: str, value: object, base: type[T], registry: Mapping[str, type[T]]) -> T:
    """Return the object that a name stands for, with its defaults, or the object itself; raise an error otherwise."""
    if isinstance(value, base):
        return value
    if not isinstance(value, str):
        raise InputError(f"{what} must be a name or a {base.__name__}, got {type(value).__name__}")
    if value not in registry:
        raise InputError(f"unknown {what} {value!r}: {nearest(value, registry)}")
    return registry[value]()
