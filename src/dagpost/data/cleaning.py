"""Leave out what is no data: row labels, columns that the user drops, rows with missing values. All of it is noted."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.conditions import Conditions
from dagpost.data.dataset import Dataset
from dagpost.data.hints import column_doubt
from dagpost.data.kinds import DATE, parse_kinds
from dagpost.data.markers import parse_markers, without_markers
from dagpost.data.slices import PAST
from dagpost.data.values import MEASUREMENT, constant_columns, duplicate_columns, is_number, list_names
from dagpost.errors import DataWarning, InputError, TableWarning, nearest, printable

COUNTERS = ("id", "index", "row")
"""Names, in lower case, of columns that are left out if they count the rows."""

CONSTANT, DUPLICATE = "constant", "duplicate"
"""Words that drop all columns of a kind, unless a column has that name."""


def find_labels(frame: pd.DataFrame, keep: Collection[str] = ()) -> dict[int, str]:
    """Return the columns that label rows instead of measuring something, with a note for each.

    These are a first column that counts the rows or holds whole numbers without a name, a first column with another
    text or date in every row, and columns anywhere that are named "id" or "index" and count the rows from 0 or 1.

    Parameters
    ----------
    frame
        Table as read from a file, or a frame of the user's.
    keep
        Names of columns that are something else.
    """
    out: dict[int, str] = {}
    if frame.shape[1] < 2 or len(frame) < 2:
        return out
    for j, label in enumerate(frame.columns):
        name = "" if str(label).lower().startswith("unnamed:") else str(label).strip()
        if str(label) in keep or (j > 0 and name.lower() not in COUNTERS):
            continue
        column = frame.iloc[:, j]
        which = ("the first column" if j == 0 else "column") + (f" '{printable(name)}'" if name else "")
        if _counts_rows(column, anywhere=j == 0) and (name == "" or name.lower() in COUNTERS):
            cure = "; rename it to keep it" if name else ""
            out[j] = f"left out {which}, which only counts the rows{cure}"
        elif j == 0 and name == "" and _are_identifiers(column):
            out[j] = f"left out {which}, whole numbers without a name"
        elif j == 0 and _are_dates(column):
            out[j] = (
                f"left out {which}, dates taken as names of the rows: if rows are in the order of time, lags=1 "
                "(--lags 1) joins each with the one before it"
            )
        elif j == 0 and pd.api.types.is_string_dtype(column.dtype) and are_row_names(column.tolist(), only_text=True):
            out[j] = f"left out {which}, which names the rows (a different text in each)"
    return out


def _counts_rows(column: pd.Series, anywhere: bool) -> bool:
    """Return whether the column is 0, 1, 2, … or 1, 2, 3, …, or with `anywhere` counts on from any whole number."""
    if not pd.api.types.is_integer_dtype(column.dtype) or column.isna().any():
        return False
    values = column.to_numpy(dtype=np.float64)
    return bool(np.array_equal(values, np.arange(len(values)) + values[0]) and (anywhere or values[0] in (0, 1)))


def _are_dates(column: pd.Series) -> bool:
    """Return whether the column holds a different date or time in every row."""
    if column.isna().any() or not column.is_unique:
        return False
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    return pd.api.types.is_string_dtype(column.dtype) and all(
        isinstance(cell, str) and DATE.fullmatch(cell.strip()) is not None for cell in column
    )


def _are_identifiers(column: pd.Series) -> bool:
    """Return whether the column holds different whole numbers."""
    return pd.api.types.is_integer_dtype(column.dtype) and not column.isna().any() and column.is_unique


def are_row_names(cells: Sequence[object], only_text: bool = False) -> bool:
    """Return whether these are names of rows: texts that are no numbers and all different, or a count from 1.

    Parameters
    ----------
    cells
        First cell of every row.
    only_text
        Whether a count is not enough.
    """
    if len(cells) < 2 or len(set(cells)) < len(cells) or not all(isinstance(cell, str) and cell for cell in cells):
        return False
    texts = [str(cell).strip() for cell in cells]
    if not any(MEASUREMENT.fullmatch(text) or is_number(text) for text in texts):
        return True
    return not only_text and len(texts) > 2 and texts == [str(i + 1) for i in range(len(texts))]


def as_cleaned(
    frame: pd.DataFrame,
    mask: np.ndarray | None = None,
    drop: str | Sequence[str] | None = None,
    missing: str | None = None,
    notes: Sequence[str] = (),
    left_out: Collection[str] = (),
    kinds: Any = None,
    conditions: Conditions | None = None,
    missing_values: Any = None,
) -> Dataset:
    """Return a frame as a `Dataset`, without the columns and rows to be dropped.

    Parameters
    ----------
    frame
        The whole table.
    mask
        Interventions, with one entry for each value of the frame.
    drop, missing
        As in `dagpost.read_table`.
    notes
        Notes from reading the table.
    left_out
        Names of columns that reading has left out already, which may be dropped again.
    kinds
        Kinds of columns, as in `dagpost.read_table`.
    conditions
        Condition of each row of the frame.
    missing_values
        Texts and numbers that stand for missing cells, besides "?" and the like.
    """
    columns = [str(name) for name in frame.columns]
    wanted = parse_kinds(kinds, columns, [*left_out])
    frame, markers = without_markers(frame, wanted, parse_markers(missing_values))
    names, redundant = _parse_drop(drop, columns, left_out)
    if missing not in (None, "error", "drop", "keep"):
        raise InputError(f'missing={missing!r}: give "drop" or "keep", or leave it out to be told of missing values')
    notes = list(notes)
    gone = {j for j, name in enumerate(frame.columns) if str(name) in names}
    if gone:
        notes.append(f"dropped {_columns(frame, gone)}, as asked")
    if CONSTANT in redundant:
        constant = {j for j in range(frame.shape[1]) if j not in gone and frame.iloc[:, j].nunique(dropna=True) < 2}
        if constant:
            notes.append(f"dropped {_columns(frame, constant)}: constant or empty")
        gone |= constant
    kept = [j for j in range(frame.shape[1]) if j not in gone]
    if gone and not kept:
        raise InputError("no column is left: drop fewer")
    frame = frame.iloc[:, kept]
    rows = np.ones(len(frame), dtype=np.bool_)
    if missing == "drop":
        rows = ~frame.isna().any(axis=1).to_numpy()
        notes += _missing_notes(frame, rows)
    mask = None if mask is None else mask[rows][:, kept]
    of_kept = {name: kind for name, kind in wanted.items() if name in {str(name) for name in frame.columns}}
    how = "keep" if missing == "keep" else "error"
    data = Dataset(
        frame[rows], intervened=mask, notes=tuple(notes), kinds=of_kept, missing=how,  # type: ignore
        conditions=None if conditions is None else conditions.rows(rows), markers=markers,
    )  # fmt: skip
    return without_redundant(data, redundant)


def with_warnings(data: Dataset, known: Collection[str]) -> Dataset:
    """Return the data, with a warning for each column that looks like names of rows or holds codes for missing cells.

    Parameters
    ----------
    data
        The data.
    known
        Names of columns of which the user has said something.
    """
    for name, values, levels in zip(data.names, data.raw().values.T, data.levels):
        if name in known or (data.lags and name.endswith(PAST)):
            continue
        doubt = column_doubt(name, values, levels)
        if doubt:
            warnings.warn(f"column '{printable(name)}': {doubt}", TableWarning, stacklevel=4)
    return data


def drop_from(data: Dataset, drop: str | Sequence[str] | None) -> Dataset:
    """Return a `Dataset` without the columns to be dropped."""
    names, kinds = _parse_drop(drop, data.names)
    kept = [name for name in data.names if name not in names]
    if not kept:
        raise InputError("no column is left: drop fewer")
    if len(kept) < data.nodes:
        note = f"dropped {_named(sorted(names, key=data.names.index))}, as asked"
        data = replace(data.columns(kept), notes=(*data.notes, note))
    return without_redundant(data, kinds)


def without_redundant(data: Dataset, kinds: Collection[str]) -> Dataset:
    """Return the data without columns that are constant where not intervened on, or that repeat an earlier one.

    Parameters
    ----------
    data
        The data.
    kinds
        What to drop: "constant", "duplicate", both or nothing.
    """
    notes = list(data.notes)
    gone: list[int] = []
    constant = constant_columns(data.values, ~data.intervened)
    if CONSTANT in kinds and constant:
        gone += constant
        notes.append(f"dropped {_named([data.names[j] for j in constant])}: constant")
    if DUPLICATE in kinds:
        varying = [j for j in range(data.nodes) if j not in constant]
        for column, original, identical in duplicate_columns(data.values[:, varying]):
            name, first = (printable(data.names[varying[j]]) for j in (column, original))
            gone.append(varying[column])
            notes.append(f"dropped column '{name}': repeats '{first}'{'' if identical else ' up to scale and offset'}")
    if not gone:
        return data
    if len(gone) == data.nodes:
        raise InputError("no column is left: all are constant")
    return replace(data.columns([n for j, n in enumerate(data.names) if j not in gone]), notes=tuple(notes))


def _parse_drop(
    drop: str | Sequence[str] | None, columns: Sequence[str], left_out: Collection[str] = ()
) -> tuple[set[str], set[str]]:
    """Return the names of columns to drop, and the kinds; raise an error that suggests a name for an unknown one."""
    words = [drop] if isinstance(drop, str) else [str(word) for word in drop or ()]
    names, kinds = set(), set()
    for word in words:
        if word in columns:
            names.add(word)
        elif word in (CONSTANT, DUPLICATE):
            kinds.add(word)
        elif word not in left_out:
            raise InputError(
                f"drop='{printable(word)}': not a column: {nearest(word, [*columns, CONSTANT, DUPLICATE])}"
            )
    return names, kinds


def _missing_notes(frame: pd.DataFrame, rows: np.ndarray) -> list[str]:
    """Return a note on the rows that are dropped, if any; raise an error or warn if few are left."""
    count, total = int((~rows).sum()), len(rows)
    if count == 0:
        return []
    by_column = frame.isna().sum(axis=0).to_numpy()
    worst = int(by_column.argmax())
    most = f"column '{printable(frame.columns[worst])}' alone lacks {int(by_column[worst])} values"
    if total - count < 2:
        raise InputError(
            f'missing="drop" leaves {total - count} of {total} rows: {most}: drop columns instead (--drop)'
        )
    if 2 * count > total:
        warnings.warn(
            f"{count} of {total} rows are dropped for missing values, {most}: consider --drop for columns",
            DataWarning,
            stacklevel=5,
        )
    return [f"dropped {count} of {total} rows, which lack values"]


def _columns(frame: pd.DataFrame, indices: Collection[int]) -> str:
    """Return "column 'a'" or "columns 'a', 'b'" for these indices."""
    return _named([frame.columns[j] for j in sorted(indices)])


def _named(names: Sequence[object]) -> str:
    """Return "column 'a'" or "columns 'a', 'b'"."""
    return ("column " if len(names) == 1 else "columns ") + list_names(names, shown=8)
