"""Interventions: a mask with one entry for each value, or names of the targets of each row, which become one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from dagpost.errors import InputError, nearest, printable
from dagpost.typing import Mask


def intervention_mask(mask: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> np.ndarray:
    """Return the boolean intervention mask, from a mask, target names or None."""
    if mask is None:
        return np.zeros(shape, dtype=np.bool_)
    if are_targets(mask):
        return target_mask(mask, names, shape[0])
    if isinstance(mask, pd.DataFrame):
        unknown = [str(c) for c in mask.columns if str(c) not in names]
        if unknown:
            raise InputError(f"the intervention mask names an unknown column: {nearest(unknown[0], names)}")
        mask = mask.rename(columns=str).reindex(columns=list(names), fill_value=False)
    array = np.asarray(mask)
    if array.shape != shape:
        raise InputError(
            f"the intervention mask has shape {array.shape}, the data {shape}: give one entry for each value"
        )
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise InputError("the intervention mask holds something other than True/False or 0/1")
    return np.array(array, dtype=np.bool_)


SEPARATOR = ";"
"""Separates several targets in one entry."""

NO_TARGET = ("", "none", "no", "-", "observational")
"""Entries that mean "no intervention", unless a column has that name; a missing entry means the same."""


def are_targets(interventions: Any) -> bool:
    """Return whether these are names of targets, one entry per row, rather than a mask of 0 and 1."""
    if isinstance(interventions, pd.Series):
        return True
    if isinstance(interventions, np.ndarray):
        return interventions.ndim == 1 and (interventions.dtype.kind in "OUST" or bool(pd.isna(interventions).all()))
    if not isinstance(interventions, Sequence) or isinstance(interventions, str | bytes):
        return False
    return all(_is_missing(entry) or _is_names(entry) for entry in interventions)


def _is_missing(entry: Any) -> bool:
    """Return whether the entry is None, NA or NaN."""
    return entry is None or entry is pd.NA or (isinstance(entry, float | np.floating) and np.isnan(entry))


def _is_names(entry: Any) -> bool:
    """Return whether the entry is a name or a collection of names."""
    if isinstance(entry, str):
        return True
    return isinstance(entry, list | tuple | set | frozenset) and all(isinstance(name, str) for name in entry)


def target_mask(targets: Iterable[Any], names: tuple[str, ...], rows: int) -> Mask:
    """Return the intervention mask from one entry per row: a name, several joined by ";" or in a list, or nothing.

    >>> target_mask(["a", "", "a;b", None], ("a", "b"), 4).astype(int).tolist()
    [[1, 0], [0, 0], [1, 1], [0, 0]]
    """
    entries = list(targets)
    if len(entries) != rows:
        raise InputError(f"{len(entries)} intervention targets for {rows} rows: give one entry for each row")
    mask = np.zeros((rows, len(names)), dtype=np.bool_)
    known: dict[Any, list[int]] = {}
    for row, entry in enumerate(entries):
        if _is_missing(entry) or (isinstance(entry, str) and entry.strip().lower() in NO_TARGET and entry not in names):
            continue
        key = entry if isinstance(entry, str) else tuple(entry) if _is_names(entry) else None
        if key is None:
            raise InputError(
                f"the intervention target in row {row + 1} is {printable(repr(entry)):.40}: give the name of a column"
            )
        if key not in known:
            known[key] = _positions(key, names, row)
        mask[row, known[key]] = True
    return mask


def _positions(entry: str | tuple[str, ...], names: tuple[str, ...], row: int) -> list[int]:
    """Return the column indices of the targets in one entry."""
    if isinstance(entry, str):
        # a column name may contain the separator
        entry = (entry,) if entry.strip() in names else tuple(entry.split(SEPARATOR))
    targets = [part if part in names else part.strip() for part in entry]
    for name in targets:
        if name and name not in names:
            raise InputError(
                f"row {row + 1} was intervened on at '{printable(name)}', which is not a column: {nearest(name, names)}"
            )
    return [names.index(name) for name in targets if name]


def column_place(names: Sequence[str], column: str, role: str) -> int:
    """Return the place of the one column with this name; raise an error that says what the column is for."""
    if names.count(column) != 1:
        what = "there twice: rename one" if column in names else f"unknown: {nearest(column, names)}"
        raise InputError(f"{role}, '{printable(column)}', is {what}")
    return names.index(column)


def split_column(data: Any, column: str, purpose: str) -> tuple[Any, pd.Series]:
    """Return a frame or `Dataset` without a column, and that column.

    Parameters
    ----------
    data
        The table.
    column
        Name of the column.
    purpose
        What the column is for, such as "names the conditions".
    """
    is_table = isinstance(data, pd.DataFrame)
    names: list[str] = [str(name) for name in data.columns] if is_table else list(getattr(data, "names", ()))
    place = column_place(names, column, f"the column that {purpose}")
    if len(names) == 1:
        raise InputError(f"the table has no column but '{printable(column)}', which {purpose}")
    if is_table:
        return data.drop(columns=data.columns[place]), data.iloc[:, place]
    return data.columns([name for name in names if name != column]), data.raw().frame().iloc[:, place]


def split_targets(frame: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the frame without the column that holds the targets, and that column."""
    place = column_place([str(name) for name in frame.columns], column, "the column of intervention targets")
    return frame.drop(columns=frame.columns[place]), frame.iloc[:, place]
