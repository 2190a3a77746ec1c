"""Problems of a table: columns that repeat themselves or each other, and how problems are worded.

A table is refused once, with all of its problems in one line; each problem names the columns and the cure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dagpost.errors import InputError, printable

SHOWN = 4
"""Number of columns that a message lists by name."""

DEPENDENT = 1e-12
"""A column is linearly dependent if the others leave less than this share of its variance unexplained."""

CURE_MISSING = 'drop such rows with --missing drop (missing="drop" in Python), or fill them in'
CURE_COLUMN = "recode or leave out (--drop NAME)"
CURE_CONSTANT = "leave out with --drop constant, or check the file"
CURE_DUPLICATE = "drop one of them, or use --drop duplicate"


class Duplicate(NamedTuple):
    """A column that repeats an earlier one.

    Attributes
    ----------
    column, original
        Indices of the column and of the earlier column.
    identical
        Whether the values are equal, rather than equal up to scale and offset.
    """

    column: int
    original: int
    identical: bool


def list_names(names: Sequence[object], shown: int = SHOWN) -> str:
    """Return the first few names in quotation marks, and how many more there are.

    >>> list_names(["a", "b", "c"], shown=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(f"'{printable(name)}'" for name in names[:shown])
    return listed + (f" and {len(names) - shown} more" if len(names) > shown else "")


def columns_phrase(names: Sequence[object], singular: str, plural: str) -> str:
    """Return "column 'a' <singular>" or "columns 'a', 'b' <plural>"."""
    if len(names) == 1:
        return f"column '{printable(names[0])}' {singular}"
    return f"columns {list_names(names)} {plural}"


def raise_problems(problems: Sequence[str]) -> None:
    """Raise one error that lists all problems; return if there are none."""
    if len(problems) == 1:
        raise InputError(problems[0])
    if problems:
        raise InputError(f"{len(problems)} problems: " + "; ".join(problems))


def constant_columns(values: np.ndarray, free: np.ndarray | None = None) -> list[int]:
    """Return the indices of columns with one value only.

    Parameters
    ----------
    values
        Matrix of numbers; missing ones are ignored.
    free
        Mask of the entries to look at, such as those without an intervention; all by default.
    """
    looked_at = ~np.isnan(values) if free is None else free & ~np.isnan(values)
    low = np.where(looked_at, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(looked_at, values, -np.inf).max(axis=0, initial=-np.inf)
    return [int(j) for j in np.flatnonzero((low == high) & (looked_at.sum(axis=0) > 1))]


def duplicate_columns(values: np.ndarray) -> list[Duplicate]:
    """Return the columns that repeat an earlier one, equal or up to scale and offset; constant ones must be absent."""
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        centred = values - values.mean(axis=0)
        scaled = centred / np.sqrt((centred**2).sum(axis=0))
        correlation = scaled.T @ scaled
    found: dict[int, Duplicate] = {}
    for i, j in zip(*(index.tolist() for index in np.nonzero(np.triu(np.abs(correlation) > 1 - 1e-9, 1)))):
        if j in found or i in found:
            continue
        if (values[:, i] == values[:, j]).all():
            found[j] = Duplicate(j, i, True)
        elif len(values) > 2:
            difference = np.abs(scaled[:, i] - np.sign(correlation[i, j]) * scaled[:, j]).max()
            if difference < np.sqrt(DEPENDENT):
                found[j] = Duplicate(j, i, False)
    return [found[j] for j in sorted(found)]


def describe_constant(values: np.ndarray, names: Sequence[str], columns: Sequence[int]) -> list[str]:
    """Return the problem of the constant columns with these indices, if there are any.

    `values` holds one value of every column.
    """
    if not columns:
        return []
    several = ", ".join(f"{values[j]:g}" for j in columns[:SHOWN]) + (", …" if len(columns) > SHOWN else "")
    singular, plural = f"is constant (value {values[columns[0]]:g})", f"are constant (values {several})"
    return [f"{columns_phrase([names[j] for j in columns], singular, plural)}: {CURE_CONSTANT}"]


def describe_duplicates(names: Sequence[str], found: Sequence[Duplicate]) -> list[str]:
    """Return the problems of duplicate columns: one for equal columns, one for those equal up to scale and offset."""
    problems = []
    for identical, what in ((True, "are identical"), (False, "are the same up to scale and offset")):
        pairs = [(names[one.original], names[one.column]) for one in found if one.identical == identical]
        texts = [f"'{printable(a)}' and '{printable(b)}'" for a, b in pairs[:SHOWN]]
        if len(pairs) > SHOWN:
            texts.append(f"{len(pairs) - SHOWN} more pairs")
        if texts:
            problems.append(f"columns {', '.join(texts)} {what}: {CURE_DUPLICATE}")
    return problems
