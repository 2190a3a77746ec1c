"""Tables in time order as two slices: each row beside the row before it in its series."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.dataset import Dataset, Scaling
from dagpost.data.slices import PAST, check_lags, past_columns, rows_before, series_of
from dagpost.data.targets import split_column
from dagpost.errors import InputError, printable


def lagged(
    data: Dataset,
    labels: Sequence[Any] | None = None,
    series: str | None = None,
    lags: int = 1,
    drop_missing: bool = False,
) -> Dataset:
    """Return a table with twice the columns: those of a row, and those of the row before it, `x` and `x[t-1]`.

    The first row of each series is left out, since nothing is known of the row before it. Interventions are those of
    the row itself: a past column has no causes in the table, so that nothing depends on how it came about.

    Parameters
    ----------
    data
        Table whose rows are in the order of time.
    labels
        Series of each row; None if all rows are one series.
    series
        Name of the column that held the labels, for the record.
    lags
        Number of rows before: 1.
    drop_missing
        Whether to leave out pairs of rows in which a cell is missing.

    Returns
    -------
    Dataset
        One row for each pair of consecutive rows; `Dataset.lags` is 1.

    >>> lagged(Dataset([[1.0], [2.0], [4.0]], names=["x"])).frame().to_numpy().tolist()
    [[2.0, 1.0], [4.0, 2.0]]
    """
    lags = check_lags(lags)
    if data.lags:
        raise InputError("the table has past columns already: leave `lags` and `series` out")
    clash = [name for name, past in zip(data.names, past_columns(data.names)) if past]
    if clash:
        raise InputError(
            f"column '{printable(clash[0])}' is named like a past column, which lags={lags} adds: rename it, or leave "
            "it out (--drop NAME)"
        )
    before = rows_before(labels, data.observations)
    rows = np.flatnonzero(before >= 0)
    notes = [f"{len(rows)} of {data.observations} rows joined with the row before them (lags={lags})"]
    if drop_missing:
        whole = ~(data.is_missing[rows] | data.is_missing[before[rows]]).any(axis=1)
        if not whole.all():
            notes.append(f"dropped {int((~whole).sum())} of {len(rows)} pairs of rows, which lack values")
        rows = rows[whole]
    if len(rows) < 2:
        raise InputError(
            f"{data.observations} row(s) leave {len(rows)} with a row before them: lags={lags} needs at least 2, "
            "better 100"
        )
    scaling = data.scaling
    return replace(
        data,
        values=np.hstack([data.values[rows], data.values[before[rows]]]),
        names=(*data.names, *(name + PAST for name in data.names)),
        intervened=np.hstack([data.intervened[rows], np.zeros((len(rows), data.nodes), dtype=np.bool_)]),
        scaling=None if scaling is None else Scaling(np.tile(scaling.mean, 2), np.tile(scaling.scale, 2)),
        notes=(*data.notes, *notes),
        levels=data.levels * 2,
        kinds=data.kinds * 2,
        missing="error" if drop_missing else data.missing,
        lags=lags,
        series=None if labels is None else series_of(labels, series).rows(rows),
        conditions=None if data.conditions is None else data.conditions.rows(rows),
    )


def in_slices(
    data: Any, lags: int | None, series: Any, missing: str | None, convert: Callable[[Any, str | None], Dataset]
) -> Dataset:
    """Return data in memory as a `Dataset`, each row joined with the one before it if there are lags.

    Rows with missing values are left out after that, so that no row is joined with one that was not just before it.

    Parameters
    ----------
    data
        A frame, a `Dataset` or an array.
    lags, series, missing
        As in `dagpost.read_table`.
    convert
        Function that makes a `Dataset` of such data, given what to do about missing values.
    """
    if lags is None and series is None:
        return convert(data, missing)
    if lags is None:
        raise InputError("a series is named, but no lags: add lags=1 (--lags 1), or leave the series out")
    check_lags(lags)
    data, labels, column = split_series(data, series)
    return lagged(convert(data, "keep" if missing == "drop" else missing), labels, column, lags, missing == "drop")


def split_series(data: Any, series: Any) -> tuple[Any, Sequence[Any] | None, str | None]:
    """Return the data without the column that names the series, the series of each row, and the name of that column.

    Parameters
    ----------
    data
        A frame, a `Dataset` or an array.
    series
        Name of a column, one entry for each row, or None.
    """
    if series is None:
        return data, None, None
    if not isinstance(series, str):
        return data, [_plain(label) for label in series], None
    rest, labels = split_column(data, series, "names the series")
    return rest, [_plain(label) for label in labels], series


def _plain(label: Any) -> Any:
    """Return the label of a series, None if it is missing or empty."""
    return None if pd.isna(label) or (isinstance(label, str) and not label.strip()) else label
