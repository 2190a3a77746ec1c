"""One table for each experimental condition, put together with what each condition acted on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dagpost.data.dataset import Dataset, as_dataset
from dagpost.data.targets import target_mask
from dagpost.errors import InputError, nearest, printable


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
