"""Texts and numbers that stand for a missing cell: "?", "-", "None", and those that the user names, such as -999."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.kinds import WITH_LEVELS, Wanted
from dagpost.data.values import is_missing, is_number
from dagpost.errors import InputError, printable

MARKERS = (
    "?", "None", "null", "NULL", "n/a", "N/A", "NA", "NaN", "nan", "<NA>", "#N/A", "#NA",
)  # fmt: skip
"""Texts that stand for a missing cell in any column whose kind nobody named."""

MARKERS_OF_NUMBERS = ("-", "--", ".", "none", "missing", "")
"""Texts that stand for a missing cell where all others of a column are numbers; elsewhere they may be categories."""

Markers = Mapping[str, tuple[str, ...]]
"""Texts of the missing cells by name of column, "" for empty ones; columns without other texts are absent."""


def parse_markers(given: Any) -> tuple[str, ...]:
    """Return the markers that the user names as texts, checked.

    >>> parse_markers([-999, "unknown"])
    ('-999', 'unknown')
    """
    if given is None:
        return ()
    each = given if isinstance(given, list | tuple | set | frozenset) else [given]
    if not all(isinstance(one, str | numbers.Real) and not isinstance(one, bool) and str(one).strip() for one in each):
        raise InputError(
            f"missing_values={given!r:.40}: give numbers and texts that stand for missing cells, such as [-999, '?']"
        )
    return tuple(str(one).strip() for one in each)


def own_markers(markers: Markers) -> list[str]:
    """Return the marks of all columns that the user must have named, since none of them is found out.

    >>> own_markers({"a": ("?", "-999", ""), "b": ("-999",)})
    ['-999']
    """
    texts = dict.fromkeys(text for of_column in markers.values() for text in of_column)
    return [text for text in texts if text not in (*MARKERS, *MARKERS_OF_NUMBERS)]


def without_markers(
    frame: pd.DataFrame, wanted: Mapping[str, Wanted], given: Sequence[str] = ()
) -> tuple[pd.DataFrame, Markers]:
    """Return a frame with missing cells in place of their markers, and which markers each column had.

    Parameters
    ----------
    frame
        The table.
    wanted
        What the user says of columns, by name. Levels that are named there are no markers.
    given
        Further markers, texts and numbers.
    """
    found: dict[int, tuple[pd.Series, tuple[str, ...]]] = {}
    for j, label in enumerate(frame.columns):
        one = _of_column(frame.iloc[:, j], wanted.get(str(label)), given)
        if one is not None:
            found[j] = one
    if not found:
        return frame, {}
    columns = {j: found[j][0] if j in found else frame.iloc[:, j] for j in range(frame.shape[1])}
    out = pd.DataFrame(columns, index=frame.index)
    out.columns = frame.columns
    return out, {str(frame.columns[j]): texts for j, (_, texts) in found.items()}


def _of_column(
    column: pd.Series, wanted: Wanted | None, given: Sequence[str]
) -> tuple[pd.Series, tuple[str, ...]] | None:
    """Return a column without its markers, and the markers; None where there are none."""
    own = set(wanted.levels or ()) if wanted is not None else set()
    given = [text for text in given if text not in own]
    if pd.api.types.is_bool_dtype(column.dtype):
        return None
    if pd.api.types.is_numeric_dtype(column.dtype):
        codes = [float(text) for text in given if is_number(text)]
        gone = column.isin(codes).to_numpy(dtype=np.bool_) if codes else np.zeros(len(column), dtype=np.bool_)
        if not gone.any():
            return None
        used = [text for text in given if is_number(text) and (column == float(text)).any()]
        return column.mask(gone), _texts(column, used)
    declared = isinstance(column.dtype, pd.CategoricalDtype)  # its categories are somebody's choice
    if not (declared or pd.api.types.is_object_dtype(column.dtype) or pd.api.types.is_string_dtype(column.dtype)):
        return None
    known = set() if declared else set(MARKERS) - own
    texts = [cell.strip() if isinstance(cell, str) else None for cell in column]
    loose = known | set(given)
    rest = [
        cell if text is None else text
        for cell, text in zip(column, texts)
        if not (is_missing(cell) or cell != cell) and text not in loose and text not in MARKERS_OF_NUMBERS
    ]
    numeric = bool(rest) and all(_is_numeric(cell) for cell in rest)
    numeric = numeric and (wanted is None or wanted.kind not in WITH_LEVELS)
    if numeric:
        loose |= set(MARKERS_OF_NUMBERS)
    codes = {float(text) for text in given if is_number(text)}

    def stands_for_missing(cell: Any, text: str | None) -> bool:
        if text is None:
            return bool(codes) and _is_numeric(cell) and cell in codes
        return text in loose or (bool(codes) and is_number(text) and float(text) in codes)

    gone = np.array([stands_for_missing(cell, text) for cell, text in zip(column, texts)], dtype=np.bool_)
    if not gone.any() or gone.all():
        return None
    written = (f"{cell:g}" if text is None else text for cell, text, hit in zip(column, texts, gone) if hit)
    used = list(dict.fromkeys(written))
    if not numeric:
        return column.mask(gone), _texts(column, used)
    try:
        cells = [np.nan if hit or is_missing(cell) else float(cell) for cell, hit in zip(column, gone)]
    except OverflowError:  # whoever reads the column names the cell
        return column.mask(gone), _texts(column, used)
    return pd.Series(np.array(cells, dtype=np.float64), index=column.index, name=column.name), _texts(column, used)


def _texts(column: pd.Series, used: Sequence[str]) -> tuple[str, ...]:
    """Return the markers of a column, and "" last if there were empty cells besides."""
    texts = tuple(text for text in used if text)
    return (*texts, "") if column.isna().any() or "" in used else texts


def _is_numeric(cell: Any) -> bool:
    """Return whether a cell is a number, or a text that means one."""
    if isinstance(cell, str):
        return is_number(cell)
    return isinstance(cell, numbers.Real | Decimal) and not isinstance(cell, bool | np.bool_)


def markers_text(texts: Sequence[str]) -> str:
    """Return how missing cells were written.

    >>> markers_text(["?", "-", ""])
    ", written '?' or '-' or empty or NA"
    """
    written = [f"'{printable(text)}'" if text else "empty or NA" for text in texts]
    return f", written {' or '.join(written)}" if written else ""
