"""Every accepted source of data as a `Dataset`: frames, arrays, files, and one table per experimental condition."""

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
from dagpost.data.targets import target_mask, without_column
from dagpost.errors import InputError, nearest, printable


def as_dataset(data: Any, names: Sequence[str] | None = None, interventions: Any = None) -> Dataset:
    """A Dataset from a Dataset, a pandas frame, an array, or the path of a table on disk.

    `interventions` is a mask (one entry for each value), one entry for each row that names the targets (a name, several
    joined by ";" or in a list, nothing), the name of the column that holds such entries, which is then no variable, or
    a file with such a column alone or with a mask.
    """
    if isinstance(interventions, str | os.PathLike):
        data, interventions = found_interventions(data, interventions)
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        data = read_table(data)
    elif not isinstance(data, Dataset):
        data = Dataset(data, () if names is None else check_names(names, len(np.asarray(data).T)))
    if names is not None:
        data = replace(data, names=check_names(names, data.nodes))
    return data if interventions is None else data.with_interventions(interventions)


def found_interventions(data: Any, source: str | os.PathLike[str]) -> tuple[Any, Any]:
    """The data, without the column of targets if it was theirs, and the targets (or the mask) that `source` names."""
    if isinstance(data, str | os.PathLike):
        data = read_frame(data)
    columns = [str(c) for c in data.columns] if isinstance(data, pd.DataFrame) else []
    if str(source) in columns:
        return without_column(data, str(source))
    if not Path(source).exists():
        hint = f" ({nearest(str(source), columns)})" if columns else ""
        raise InputError(f"interventions '{printable(source)}': neither a column of the table nor a file{hint}")
    marks = read_frame(source)
    if marks.shape[1] == 1 and not pd.api.types.is_numeric_dtype(marks.iloc[:, 0].dtype):
        return data, marks.iloc[:, 0]
    return data, marks


def read_conditions(conditions: Mapping[Any, Any] | Iterable[tuple[Any, Any]]) -> Dataset:
    """A Dataset from one table for each condition: `{"control.csv": None, "inhibitor.csv": "pmek"}`.

    Keys are paths (give pairs instead of a mapping for frames, arrays or Datasets); values are what the condition
    intervened on: nothing, a name, several joined by ";" or in a list. All tables have the same columns, in any order.

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
            raise InputError(f"{shown} is standardised: put raw tables together, then standardise the whole")
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
    missing = [name for name in names if name not in table.names]
    extra = [name for name in table.names if name not in names]
    if missing:
        raise InputError(f"{shown} has no column '{printable(missing[0])}': {nearest(missing[0], table.names)}")
    if extra:
        raise InputError(f"{shown} has a column '{printable(extra[0])}' that the first table lacks: drop it")
