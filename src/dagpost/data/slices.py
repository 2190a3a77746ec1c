"""Time slices: names of past columns, the columns that are one variable at two times, and the row before each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dagpost.errors import InputError, printable

PAST = "[t-1]"
"""Suffix of the columns of the row before: `x[t-1]` is the past of `x`."""


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """The series of each row.

    Attributes
    ----------
    of_row
        Number of the series of each row, in the order in which they appear.
    column
        Column that held their names, if one did.
    """

    of_row: np.ndarray
    column: str | None = None

    def rows(self, selection: Any) -> Series:
        """Return the series of the selected rows."""
        return Series(self.of_row[selection], self.column)


def series_of(labels: Sequence[Any], column: str | None = None) -> Series:
    """Return the series of each row from their names.

    >>> series_of(["b", "a", "b"]).of_row.tolist()
    [0, 1, 0]
    """
    number = {label: k for k, label in enumerate(dict.fromkeys(labels))}
    return Series(np.array([number[label] for label in labels], dtype=np.int64), column)


def past_columns(names: Sequence[str]) -> np.ndarray:
    """Return whether each name is that of a past column.

    >>> past_columns(["x", "x[t-1]"]).tolist()
    [False, True]
    """
    return np.array([name.endswith(PAST) and len(name) > len(PAST) for name in names], dtype=np.bool_)


def variables_of(names: Sequence[str]) -> np.ndarray:
    """Return the number of the variable of each column; a column and its past have the same.

    >>> variables_of(["x", "y", "x[t-1]", "y[t-1]"]).tolist()
    [0, 1, 0, 1]
    """
    stems = [name.removesuffix(PAST) for name in names]
    numbers = {stem: k for k, stem in enumerate(dict.fromkeys(stems))}
    return np.array([numbers[stem] for stem in stems], dtype=np.int64)


def pooled_scaling(values: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and the standard deviation of each column, both of all values of its variable in either slice."""
    group = variables_of(names)
    columns = np.bincount(group)

    def average(of_columns: np.ndarray) -> np.ndarray:
        return (np.bincount(group, weights=of_columns) / columns)[group]

    mean = average(np.nanmean(values, axis=0))
    # E (x - m)^2 over both slices is the average of those over each of them
    return mean, np.sqrt(average(np.nanmean((values - mean) ** 2, axis=0)))


def check_lags(lags: Any) -> int:
    """Return the number of lags if it is 1; anything else is an error."""
    if isinstance(lags, bool) or not hasattr(lags, "__index__") or int(lags) != 1:
        raise InputError(
            f"lags={lags!r}: give 1, which joins each row with the one before it, or leave it out for rows without an "
            "order; more lags are not supported"
        )
    return 1


def rows_before(labels: Sequence[Any] | None, rows: int) -> np.ndarray:
    """Return the index of the row before each row in its series, -1 for the first row of a series.

    Parameters
    ----------
    labels
        Series of each row; None if all rows are one series. Rows of different series may alternate.
    rows
        Number of rows.

    >>> rows_before(["a", "b", "a", "b"], 4).tolist()
    [-1, -1, 0, 1]
    """
    if labels is None:
        return np.arange(rows) - 1
    if len(labels) != rows:
        raise InputError(f"{len(labels)} entries of series for {rows} rows: give one for each row")
    last: dict[Any, int] = {}
    first: dict[Any, int] = {}
    out = np.full(rows, -1)
    for row, label in enumerate(labels):
        if label is None or label != label:
            raise InputError(f"the series of row {row + 1} is missing: name it, or leave the row out")
        out[row] = last.get(label, -1)
        last[label] = row
        first.setdefault(label, row)
    single = [label for label, row in first.items() if last[label] == row]
    if single:
        more = f" (and {len(single) - 1} more series)" if len(single) > 1 else ""
        raise InputError(
            f"series '{printable(single[0])}' has a single row, row {first[single[0]] + 1}{more}, and so no row before "
            "one: leave it out, or check the column that names the series"
        )
    return out
