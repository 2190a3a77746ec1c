"""Convert every accepted source of data to a `Dataset`: frames, arrays, files, one table per experimental condition."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.cleaning import CONSTANT, DUPLICATE, as_cleaned, drop_from, with_warnings
from dagpost.data.conditions import split_conditions
from dagpost.data.dataset import Dataset
from dagpost.data.formats import TextFormat
from dagpost.data.kinds import merged_levels, read_kinds
from dagpost.data.lags import in_slices
from dagpost.data.names import check_names
from dagpost.data.reading import Table, read_frame, with_file_name, without_labels
from dagpost.data.targets import are_targets, intervention_mask, split_targets, target_mask
from dagpost.data.values import as_matrix
from dagpost.errors import InputError, nearest, printable


def as_dataset(
    data: Any,
    names: Sequence[str] | None = None,
    interventions: Any = None,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    drop: str | Sequence[str] | None = None,
    missing: str | None = None,
    kinds: Any = None,
    lags: int | None = None,
    series: Any = None,
    conditions: Any = None,
    missing_values: Any = None,
    keep: Collection[str] = (),
) -> Dataset:
    """Return the data as a `Dataset`.

    Columns of a file or frame that label rows, as in `read_table`, are left out with a warning.

    Parameters
    ----------
    data
        A Dataset, a pandas frame, an array, or the path of a table on disk.
    names
        Names of the columns; they replace those of the data.
    interventions
        One of: a mask with one entry per value; one entry per row that names the targets (a name, several joined by
        ";" or in a list, or nothing); the name of the column that holds such entries, which is then not a variable;
        the path of a file with such a column or a mask. Masks and entries refer to the table before anything is
        dropped.
    sep, decimal, encoding, header
        Format of a text file, as in `read_table`.
    drop, missing
        Columns and rows to leave out, as in `read_table`.
    kinds
        Kinds of columns, as in `read_table`.
    lags
        1 if rows are in the order of time: each is joined with the one before it (`dagpost.data.lagged`).
    series
        With `lags`, the name of the column that says which series a row belongs to, or one entry for each row. By
        default all rows are one series.
    conditions
        Experiment that each row comes from, where it is not known, or not alone, what it acted on: the name of a
        column, which is then not a variable, or one entry for each row. Rows without an entry, or with "none", are
        those in which nothing was done.
    missing_values
        Further numbers and texts that stand for missing cells, as in `read_table`.
    keep
        Names of columns that are not left out, whatever they look like.

    Returns
    -------
    Dataset
        The data with their names and interventions.
    """
    text_format = TextFormat(sep=sep, decimal=decimal, encoding=encoding, header=header)
    roles = (interventions, series, conditions)
    kinds = read_kinds(kinds) if isinstance(kinds, str | os.PathLike) else kinds
    own = [*keep, *(str(name) for name in roles if isinstance(name, str | os.PathLike))]
    own += map(str, kinds if isinstance(kinds, Mapping) else ())
    is_file = isinstance(data, str | os.PathLike)
    if is_file:
        table = read_frame(data, text_format, keep=own)
    else:
        for option in text_format.given:
            raise InputError(f"{option} is an option for files: leave it out for data in memory")
        table = Table(data)
        if isinstance(data, pd.DataFrame) and names is None:
            table = without_labels(table, keep=own)
            interventions = _of_kept_columns(interventions, data, table)

    def convert(rows: Any, how: str | None) -> Dataset:
        return _convert(
            rows, names, interventions, drop, how, kinds, table.notes, table.left_out, conditions, missing_values
        )

    def converted() -> Dataset:
        return in_slices(table.frame, lags, series, missing, convert)

    out = with_file_name(data, converted) if is_file else converted()
    return with_warnings(out, own) if is_file or isinstance(data, pd.DataFrame) else out


def _of_kept_columns(interventions: Any, frame: pd.DataFrame, table: Table) -> Any:
    """Return a mask of interventions without the columns that were left out of a frame; anything else as it is."""
    if not table.left_out or interventions is None or isinstance(interventions, str | os.PathLike):
        return interventions
    if isinstance(interventions, pd.DataFrame):
        return interventions.drop(columns=[c for c in interventions.columns if str(c) in table.left_out])
    if are_targets(interventions) or np.ndim(interventions) != 2 or np.shape(interventions)[1] != frame.shape[1]:
        return interventions
    return np.asarray(interventions)[:, [str(c) not in table.left_out for c in frame.columns]]


def _convert(
    data: Any,
    names: Sequence[str] | None,
    interventions: Any,
    drop: str | Sequence[str] | None,
    missing: str | None,
    kinds: Any = None,
    notes: Sequence[str] = (),
    left_out: Collection[str] = (),
    conditions: Any = None,
    missing_values: Any = None,
) -> Dataset:
    """Return data in memory as a `Dataset`, with its interventions, and without what is to be dropped."""
    if conditions is not None:
        data, conditions = split_conditions(data, conditions)
    if isinstance(interventions, str | os.PathLike):
        data, interventions = resolve_interventions(data, interventions)
    if isinstance(data, Dataset):
        if missing_values is not None:
            raise InputError("missing_values is for tables: give it to `dagpost.read_table`, or leave it out")
        data = data if names is None else replace(data, names=check_names(names, data.nodes))
        data = data if kinds is None else data.with_kinds(kinds)
        data = data if conditions is None else replace(data, conditions=conditions)
        return drop_from(data if interventions is None else data.with_interventions(interventions), drop)
    if not isinstance(data, pd.DataFrame):
        if drop is None and missing in (None, "keep") and kinds is None and missing_values is None:
            names = () if names is None else check_names(names, len(np.asarray(data).T))
            data = Dataset(data, names, missing="keep" if missing else "error")
            data = data if conditions is None else replace(data, conditions=conditions)
            return data if interventions is None else data.with_interventions(interventions)
        data = pd.DataFrame(as_matrix(data))
        data = data.set_axis([f"x{j}" for j in range(data.shape[1])], axis=1)
    if names is not None:
        data = data.set_axis(list(check_names(names, data.shape[1])), axis=1)
    mask = None
    if interventions is not None:
        mask = intervention_mask(interventions, data.shape, tuple(str(name) for name in data.columns))
    return as_cleaned(data, mask, drop, missing, notes, left_out, kinds, conditions, missing_values)


def resolve_interventions(data: Any, source: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return the data and the targets (or the mask) that `source` names: a column of the data or a file.

    A column of targets is removed from the data.
    """
    columns = [str(c) for c in data.columns] if isinstance(data, pd.DataFrame) else []
    if str(source) in columns:
        return split_targets(data, str(source))
    if not Path(source).exists():
        hint = f" ({nearest(str(source), columns)})" if columns else ""
        raise InputError(f"interventions '{printable(source)}': neither a column of the table nor a file{hint}")
    marks = read_frame(source).frame
    if marks.shape[1] == 1 and not pd.api.types.is_numeric_dtype(marks.iloc[:, 0].dtype):
        return data, marks.iloc[:, 0]
    return data, marks


def read_conditions(
    conditions: Mapping[Any, Any] | Iterable[tuple[Any, Any]],
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    drop: str | Sequence[str] | None = None,
    missing: str | None = None,
    kinds: Any = None,
    missing_values: Any = None,
) -> Dataset:
    """Combine one table per experimental condition into a `Dataset`.

    Parameters
    ----------
    conditions
        Tables and their intervention targets, such as `{"control.csv": None, "inhibitor.csv": "pmek"}`. A table is a
        path; use a list of pairs instead of a mapping for frames, arrays or Datasets. Targets are None, a name, or
        several names joined by ";" or in a list. All tables need the same columns, in any order.
    sep, decimal, encoding, header, missing, kinds, missing_values
        As in `read_table`, for every table.
    drop
        As in `read_table`; "constant" and "duplicate" are judged by all rows together.

    Returns
    -------
    Dataset
        All rows, in the order of the conditions.

    Examples
    --------
    >>> import pandas as pd
    >>> control, treated = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]}), pd.DataFrame({"a": [3.0], "b": [5.0]})
    >>> read_conditions([(control, None), (treated, "b")])
    Dataset(3 rows, 2 columns: a, b; 1 rows with interventions)
    """
    pairs = list(conditions.items()) if isinstance(conditions, Mapping) else list(conditions)
    if not pairs:
        raise InputError("no condition given: give at least one table")
    text_format = {"sep": sep, "decimal": decimal, "encoding": encoding, "header": header}
    tables: list[Dataset] = []
    notes: list[str] = []
    words = [drop] if isinstance(drop, str) else list(drop or ())
    named = [word for word in words if word not in (CONSTANT, DUPLICATE)]
    for number, (source, targets) in enumerate(pairs):
        is_file = isinstance(source, str | os.PathLike)
        shown = printable(os.path.basename(source)) if is_file else f"table {number + 1}"
        table = as_dataset(
            source, **(text_format if is_file else {}), drop=named, missing=missing, kinds=kinds,
            missing_values=None if isinstance(source, Dataset) else missing_values,
        )  # fmt: skip
        if table.scaling is not None:
            raise InputError(f"{shown} is standardised: combine raw tables, then standardise the whole")
        names = tables[0].names if tables else table.names
        _check_columns(table, names, shown)
        table = table.columns(names)
        try:
            mask = target_mask([targets] * table.observations, names, table.observations)
        except InputError as error:
            raise InputError(f"{shown}: {error}") from None
        tables.append(table.with_interventions(mask | table.intervened))
        notes += [f"{shown}: {note}" for note in table.notes]
    levels = merged_levels([table.levels for table in tables], tables[0].names)
    whole = Dataset(
        np.concatenate([table.with_levels(levels).values for table in tables]),
        tables[0].names,
        np.concatenate([table.intervened for table in tables]),
        notes=tuple(notes),
        kinds=tables[0].kinds if len({table.kinds for table in tables}) == 1 else None,
        levels=levels,
        missing=tables[0].missing,
        markers={name: texts for table in tables for name, texts in table.markers.items()},
    )
    return drop_from(whole, [word for word in words if word not in named])


def _check_columns(table: Dataset, names: tuple[str, ...], shown: str) -> None:
    """Raise an error if the table does not have exactly these columns."""
    missing = [name for name in names if name not in table.names]
    extra = [name for name in table.names if name not in names]
    if missing:
        raise InputError(f"{shown} has no column '{printable(missing[0])}': {nearest(missing[0], table.names)}")
    if extra:
        raise InputError(f"{shown} has a column '{printable(extra[0])}' that the first table lacks: drop it")
