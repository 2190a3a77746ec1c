"""Columns in words: kind, range and levels, and hints at names of rows, codes for missing cells and scores.

Hints change nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from dagpost.data.kinds import CONTINUOUS, ORDINAL, Levels
from dagpost.data.values import list_names
from dagpost.errors import printable

IDENTIFIER = re.compile(
    r"(.*[_\-. ])?(id|ids|idx|uid|uuid|key|index|row|nr|no)|(?-i:.*[a-z](ID|Id|Nr))"
    r"|(patient|subject|participant|person|sample|case|record|respondent|number)s?"
    r"([_\-. ]?(id|nr|no|number|name|code))?",
    re.IGNORECASE,
)
"""Names of columns that say which row it is."""

SCORES = (20, 3, 10)
"""Fewest rows, and fewest and most different values, of whole numbers that look like scores."""

CODE = re.compile(r"-(7+|8+|9+)|77+|88+|99+")
"""Numbers that stand for a missing cell in many tables: -9, 99, -999, 888."""

FEWEST_CODES = 2
"""Fewest cells with such a number."""


def describe_column(values: np.ndarray, levels: Levels, kind: str) -> str:
    """Return the kind of a column, its range or levels, and how many cells are missing.

    Parameters
    ----------
    values
        Numbers in their units, or codes.
    levels, kind
        Levels and kind of the column.
    """
    known = values[~np.isnan(values)]
    what = kind
    if levels:
        shown = list_names(levels, shown=5)
        what += f", {len(levels)} level{'s' * (len(levels) > 1)} ({shown}{', in this order' * (kind == ORDINAL)})"
    elif len(known) > 2 and kind == CONTINUOUS and np.isin(known, (0.0, 1.0)).all():
        what = "two values, 0 and 1"
    elif len(known):
        what += f", {known.min():.4g} to {known.max():.4g}"
    return what + (f", {len(values) - len(known)} missing" if len(known) < len(values) else "")


def column_hint(name: str, values: np.ndarray, levels: Sequence[str], kind: str) -> str:
    """Return a hint to append to the line about a column, "" where there is none.

    Parameters
    ----------
    name
        Name of the column.
    values
        Its numbers in their units, or codes of levels; NaN where missing.
    levels, kind
        Its levels and its kind.

    >>> column_hint("score", np.arange(100.0) % 4, (), "continuous").partition(":")[0]
    '; 4 whole numbers, taken as they are'
    """
    doubt = column_doubt(name, values, levels)
    if doubt:
        return f"; {doubt}"
    known = values[~np.isnan(values)]
    different, shown = len(np.unique(known)), printable(name)
    rows, fewest, most = SCORES
    is_score = len(known) >= rows and fewest <= different <= most and bool((known % 1 == 0).all())
    if kind != CONTINUOUS or levels or not is_score:
        return ""
    return (
        f"; {different} whole numbers, taken as they are: where only their order counts, say so "
        f"(--kinds {shown}=ordinal, kinds={{'{shown}': 'ordinal'}})"
    )


def column_doubt(name: str, values: np.ndarray, levels: Sequence[str]) -> str:
    """Return why a column may not be what it is taken as, "" where nothing speaks against it.

    Parameters
    ----------
    name, values, levels
        As in `column_hint`.

    >>> column_doubt("patient_id", np.arange(100.0, 130.0), ())
    'looks like names of rows: leave it out (--drop patient_id, frame.drop(columns=...)) unless it measures something'
    """
    known, shown = values[~np.isnan(values)], printable(name)
    if levels:
        return ""
    if is_identifier(name, known):
        return (
            f"looks like names of rows: leave it out (--drop {shown}, frame.drop(columns=...)) unless it measures "
            "something"
        )
    code = missing_code(known)
    if code is None:
        return ""
    count = int((known == code).sum())
    return (
        f"{code:g} in {count} rows lies far outside the rest: if it stands for a missing cell, say so "
        f"(--missing-values {code:g}, missing_values=[{code:g}])"
    )


def is_identifier(name: str, known: np.ndarray) -> bool:
    """Return whether a column is named like one that names rows, and has another whole number in each of them."""
    if IDENTIFIER.fullmatch(name.strip()) is None or len(known) < 10:
        return False
    return bool((known % 1 == 0).all()) and len(np.unique(known)) == len(known)


def missing_code(known: np.ndarray) -> float | None:
    """Return a number such as -999 that several cells have, farther from all others than these are from each other.

    A negative code beside numbers from 0 on may be nearer.

    >>> missing_code(np.array([1.0, 2.5, 3.0, -999, -999])), missing_code(np.array([1.0, 2.0, 9.0]))
    (-999.0, None)
    """
    different, counts = np.unique(known, return_counts=True)
    if len(different) < 4:
        return None
    for place, rest in ((0, different[1:]), (-1, different[:-1])):
        code = float(different[place])
        if counts[place] < FEWEST_CODES or CODE.fullmatch(f"{code:.15g}") is None:
            continue
        gap, spread = float(np.abs(rest - code).min()), float(rest[-1] - rest[0])
        if gap > spread or (code < 0 <= rest[0]):
            return code
    return None
