"""Where the record of interventions is when only its name is given: a column of the table, or a file beside it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd

from dagpost.data.reading import read_frame
from dagpost.data.targets import without_column
from dagpost.errors import InputError, nearest, printable


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
