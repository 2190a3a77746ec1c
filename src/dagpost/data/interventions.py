"""Who was intervened on, row by row: from a column of the table or from a file beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.dataset import Dataset
from dagpost.data.reading import read_frame
from dagpost.errors import InputError, nearest, printable

NOBODY = ("", "none", "no", "-", "observational")
"""What a cell of a column of targets says where nothing was intervened on; so does an empty cell."""


def with_named_interventions(data: Any, source: str | os.PathLike[str]) -> Dataset:
    """The data with the interventions that `source` tells of.

    `source` is a column of the table, whose cells name the nodes that were intervened on in that row (several with
    semicolons between them) and which is then no node itself; or a file with such a column alone, or with a 0/1 mask
    of the table's columns.
    """
    if isinstance(data, str | os.PathLike):
        data = read_frame(data)
    is_frame = isinstance(data, pd.DataFrame)
    columns = [str(c) for c in data.columns] if is_frame else []
    if str(source) in columns:
        at = columns.index(str(source))
        table = Dataset(data.drop(columns=data.columns[at]))
        return table.with_interventions(targets(data.iloc[:, at], table.names))
    if not Path(source).exists():
        hint = f" ({nearest(str(source), columns)})" if columns else ""
        raise InputError(f"interventions '{printable(source)}': neither a column of the table nor a file{hint}")
    table = data if isinstance(data, Dataset) else Dataset(data)
    marks = read_frame(source)
    shown = printable(Path(source).name)
    if len(marks) != table.observations:
        raise InputError(f"{shown} has {len(marks)} rows, the data {table.observations}: give one row for each")
    if marks.shape[1] == 1 and not pd.api.types.is_numeric_dtype(marks.iloc[:, 0].dtype):
        return table.with_interventions(targets(marks.iloc[:, 0], table.names))
    return table.with_interventions(marks)


def targets(column: pd.Series, names: tuple[str, ...]) -> np.ndarray:
    """The mask that a column of node names stands for."""
    mask = np.zeros((len(column), len(names)), dtype=np.bool_)
    place = {name: j for j, name in enumerate(names)}
    for row, cell in enumerate(column):
        if cell is None or cell != cell or str(cell).strip().lower() in NOBODY:
            continue
        for name in (part.strip() for part in str(cell).split(";")):
            if name not in place:
                raise InputError(
                    f"interventions, row {row + 1}: no column is called '{printable(name)}': {nearest(name, names)}"
                )
            mask[row, place[name]] = True
    return mask
