"""Convert every accepted source of data to a `Dataset`: frames, arrays, files, one table per experimental condition."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.dataset import Dataset, check_names
from dagpost.data.reading import read_frame, read_table
from dagpost.data.targets import split_targets, target_mask
from dagpost.errors import InputError, nearest, printable


def as_dataset(data: Any, names: Sequence[str] | None = None, interventions: Any = None) -> Dataset:
    """Return the data as a `Dataset`.

    Parameters
    ----------
    data
        A Dataset, a pandas frame, an array, or the path of a table on disk.
    names
        Names of the columns; they replace those of the data.
    interventions
        One of: a mask with one entry per value; one entry per row that names the targets (a name, several joined by
        ";" or in a list, or nothing); the name of the column that holds such entries, which is then not a variable;
        the path of a file with such a column or a mask.

    Returns
    -------
    Dataset
        The data with their names and interventions.
    """
    if isinstance(interventions, str | os.PathLike):
        data, interventions = resolve_interventions(data, interventions)
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        data = read_table(data)
    elif not isinstance(data, Dataset):
        data = Dataset(data, () if names is None else check_names(names, len(np.asarray(data).T)))
    if names is not None:
        data = replace(data, names=check_names(names, data.nodes))
    return data if interventions is None else data.with_interventions(interventions)


def resolve_interventions(data: Any, source: str | os.PathLike[str]) -> tuple[Any, Any]:
    """Return the data and the targets (or the mask) that `source` names: a column of the data or a file.

    A column of targets is removed from the data.
    """
    if isinstance(data, str | os.PathLike):
        data = read_frame(data)
    columns = [str(c) for c in data.columns] if isinstance(data, pd.DataFrame) else []
    if str(source) in columns:
        return split_targets(data, str(source))
    if not Path(source).exists():
        hint = f" ({nearest(str(source), columns)})" if columns else ""
        raise InputError(f"interventions '{printable(source)}': neither a column of the table nor a file{hint}")
    marks = read_frame(source)
    if marks.shape[1] == 1 and not pd.api.types.is_numeric_dtype(marks.iloc[:, 0].dtype):
        return data, marks.iloc[:, 0]
    return data, marks


def read_conditions(conditions: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> Dataset:
    """Combine one table per experimental condition into a `Dataset`.

    Parameters
    ----------
    conditions
        Tables and their intervention targets, such as `{"control.csv": None, "inhibitor.csv": "pmek"}`. A table is a
        path; use a list of pairs instead of a mapping for frames, arrays or Datasets. Targets are None, a name, or
        several names joined by ";" or in a list. All tables need the same columns, in any order.

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
    tables: list[Dataset] = []
    for number, (source, targets) in enumerate(pairs):
        shown = printable(os.path.basename(source)) if isinstance(source, str | os.PathLike) else f"table {number + 1}"
        table = as_dataset(source)
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
    return Dataset(
        np.concatenate([table.values for table in tables]),
        tables[0].names,
        np.concatenate([table.intervened for table in tables]),
    )


def _check_columns(table: Dataset, names: tuple[str, ...], shown: str) -> None:
    """Raise an error if the table does not have exactly these columns."""
    missing = [name for name in names if name not in table.names]
    extra = [name for name in table.names if name not in names]
    if missing:
        raise InputError(f"{shown} has no column '{printable(missing[0])}': {nearest(missing[0], table.names)}")
    if extra:
        raise InputError(f"{shown} has a column '{printable(extra[0])}' that the first table lacks: drop it")
