"""Missing cells of a table: where they are, in words, and tables in which they are filled in."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd

from dagpost.data.dataset import Dataset
from dagpost.data.values import CURE_MISSING, DROP_MISSING, columns_phrase
from dagpost.errors import printable
from dagpost.typing import Rows


def completed(data: Dataset, values: Rows) -> Dataset:
    """Return the data with other values of the same columns, unchecked: fast enough for every sweep of a chain.

    Parameters
    ----------
    data
        A table with missing cells.
    values
        The table with all cells filled in.
    """
    out = copy.copy(data)
    out.__dict__.update({"values": values})
    for derived in ("is_missing", "fingerprint"):
        out.__dict__.pop(derived, None)
    return out


def missing_table(data: Dataset) -> pd.DataFrame:
    """Return the number and share of missing cells of each column that has any, most first.

    Parameters
    ----------
    data
        The table.
    """
    count = data.is_missing.sum(axis=0)
    order = np.argsort(-count, kind="stable")[: int((count > 0).sum())]
    names, share = [data.names[j] for j in order], count[order] / max(data.observations, 1)
    return pd.DataFrame({"column": names, "missing": count[order], "share": share})


def missing_text(data: Dataset) -> str:
    """Return in words how much is missing: cells, rows and columns.

    >>> missing_text(Dataset([[1.0, float("nan")], [2.0, 3.0]], names=["a", "b"], missing="keep"))
    "1 of 4 cells (25.0 %) in 1 of 2 rows and 1 of 2 columns, most in 'b' (1)"
    """
    mask = data.is_missing
    cells, rows, columns = int(mask.sum()), int(mask.any(axis=1).sum()), int(mask.any(axis=0).sum())
    worst = int(mask.sum(axis=0).argmax())
    return (
        f"{cells:,} of {mask.size:,} cells ({100 * cells / mask.size:.1f} %) in {rows:,} of {data.observations:,} rows "
        f"and {columns} of {data.nodes} columns, most in '{printable(data.names[worst])}' "
        f"({int(mask[:, worst].sum()):,})"
    )


def missing_assumption(data: Dataset) -> str:
    """Return what is done about missing cells and what that assumes, in words."""
    return (
        f"{missing_text(data)}: drawn together with the graphs, assuming that whether a cell is missing does not "
        "depend on its value given the observed cells of its row (missing at random)"
    )


def missing_problems(data: Dataset, refused_by: str | None = None) -> list[str]:
    """Return what keeps missing cells from being drawn: interventions, past columns, conditions, and who refuses.

    Parameters
    ----------
    data
        The table.
    refused_by
        What needs a complete table, such as "the method 'exact'".
    """
    if not data.is_missing.any():
        return []
    problems = []
    targets = data.is_missing & data.intervened
    names = [name for name, column in zip(data.names, targets.T) if column.any()]
    if names:
        row = int(targets.any(axis=1).argmax())
        what = columns_phrase(names, "was intervened on", "were intervened on")
        problems.append(
            f"{what} in rows where the cell is missing (the first: row {row + 1}), and the value that an intervention "
            "set cannot be drawn: fill it in, or leave out such rows"
        )
    if data.lags:
        problems.append(
            "cells are missing in a table with lags, where a cell stands in two rows: leave out such pairs of rows "
            '(--missing drop; in Python missing="drop" of dagpost.read_table)'
        )
    elif data.conditions is not None:
        problems.append(f"cells are missing in a table with conditions: {DROP_MISSING}")
    elif refused_by is not None:
        names = [name for name, column in zip(data.names, data.is_missing.T) if column.any()]
        what = columns_phrase(names, "has missing values", "have missing values")
        problems.append(
            f"{what} ({int(data.is_missing.sum())} in all), and {refused_by} needs all of them: {CURE_MISSING}"
        )
    return problems
