"""Experimental conditions: which experiment each row comes from, where it is not known what the experiment did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.kinds import level_name
from dagpost.data.targets import NO_TARGET, split_column
from dagpost.errors import InputError, nearest, printable

FEWEST_ROWS = 2
"""Rows that a condition needs."""


@dataclass(frozen=True, eq=False, repr=False)
class Conditions:
    """The condition of each row.

    Attributes
    ----------
    labels
        Names of the conditions, in the order in which they appear.
    of_row
        Index of the condition of each row; -1 for rows in which nothing was done.
    column
        Column that held the names, if one did.
    """

    labels: tuple[str, ...]
    of_row: np.ndarray
    column: str | None = None

    def rows(self, selection: Any) -> Conditions:
        """Return the conditions of the selected rows; labels stay, even those without rows."""
        return Conditions(self.labels, self.of_row[selection], self.column)

    def followed_by(self, other: Conditions | None, rows: int) -> Conditions:
        """Return these rows and then others, of the same labels or, given None, as many in which nothing was done."""
        labels = self.labels if other is None else (*self.labels, *(x for x in other.labels if x not in self.labels))
        more = np.full(rows, -1)
        if other is not None:
            place = np.array([*(labels.index(label) for label in other.labels), -1])
            more = place[other.of_row]
        return Conditions(labels, np.concatenate([self.of_row, more]), self.column)

    def index(self, label: str) -> int:
        """Return the index of a condition; an unknown one is an error that suggests another."""
        if label not in self.labels:
            raise InputError(f"there is no condition '{printable(label)}': {nearest(label, self.labels)}")
        return self.labels.index(label)


def as_conditions(entries: Sequence[Any], rows: int, column: str | None = None) -> Conditions:
    """Return the conditions from one entry per row; an empty one, or "none", stands for rows in which nothing was done.

    Parameters
    ----------
    entries
        Name of the condition of each row.
    rows
        Number of rows of the table.
    column
        Column that holds them, for the record.

    >>> as_conditions(["none", "drug", None, "drug"], 4).of_row.tolist()
    [-1, 0, -1, 0]
    """
    entries = list(entries)
    if len(entries) != rows:
        raise InputError(f"{len(entries)} entries of conditions for {rows} rows: give one for each row")
    names = ["" if pd.isna(entry) else level_name(entry) for entry in entries]
    labels = tuple(dict.fromkeys(name for name in names if name.lower() not in NO_TARGET))
    place = {label: k for k, label in enumerate(labels)}
    return Conditions(labels, np.array([place.get(name, -1) for name in names], dtype=np.int64), column)


def conditions_of_mask(intervened: np.ndarray, names: Sequence[str]) -> Conditions:
    """Return one condition for each set of nodes that were intervened on together, named after them.

    >>> conditions_of_mask(np.array([[True, False], [False, False], [True, True]]), ["a", "b"]).labels
    ('a', 'a;b')
    """
    texts = [";".join(name for name, hit in zip(names, row) if hit) for row in intervened]
    labels = tuple(dict.fromkeys(text for text in texts if text))
    place = {label: k for k, label in enumerate(labels)}
    return Conditions(labels, np.array([place.get(text, -1) for text in texts], dtype=np.int64))


def check_conditions(conditions: Conditions) -> None:
    """Raise an error for a table of a single condition, and for a condition with too few rows."""
    counts = np.bincount(conditions.of_row + 1, minlength=len(conditions.labels) + 1)
    if (counts > 0).sum() < 2:
        what = (
            f"all rows are of condition '{printable(conditions.labels[0])}'" if conditions.labels else "no row has one"
        )
        where = f" in column '{printable(conditions.column)}'" if conditions.column else ""
        raise InputError(
            f"conditions{where}: {what}, and it takes at least 2 to tell them apart: leave `conditions` out"
        )
    for label, count in zip(conditions.labels, counts[1:]):
        if 0 < count < FEWEST_ROWS:
            row = int(np.flatnonzero(conditions.of_row == conditions.labels.index(label))[0]) + 1
            raise InputError(
                f"condition '{printable(label)}' has a single row, row {row}: leave it out, join it with another "
                "condition, or check the column that names them"
            )


def split_conditions(data: Any, conditions: Any) -> tuple[Any, Conditions | None]:
    """Return the data without the column that names the conditions, and the condition of each row.

    Parameters
    ----------
    data
        A frame, a `Dataset` or an array.
    conditions
        Name of a column, one entry for each row, or None.
    """
    if conditions is None:
        return data, None
    rows = data.observations if hasattr(data, "observations") else len(data)
    if not isinstance(conditions, str):
        return data, as_conditions(list(conditions), rows)
    rest, labels = split_column(data, conditions, "names the conditions")
    return rest, as_conditions(labels.tolist(), rows, conditions)
