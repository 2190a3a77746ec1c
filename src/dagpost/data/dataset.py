"""`Dataset`: an immutable table of numbers and categories with column names and a record of interventions.

Names and values are checked once, when the dataset is created; names are never altered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from dagpost.data.conditions import Conditions
from dagpost.data.hints import column_hint, describe_column
from dagpost.data.kinds import (
    Levels,
    frame_columns,
    in_kind,
    kinds_of,
    numbers_of,
    parse_kinds,
    recode,
)
from dagpost.data.markers import Markers, markers_text, without_markers
from dagpost.data.names import as_texts, name_problems
from dagpost.data.slices import PAST, Series, past_columns, pooled_scaling, variables_of
from dagpost.data.targets import intervention_mask
from dagpost.data.values import as_matrix, raise_problems, value_problems
from dagpost.errors import InputError, printable
from dagpost.typing import Mask


@dataclass(frozen=True, eq=False, repr=False)
class Scaling:
    """Recorded standardisation: `standardised = (raw - mean) / scale`.

    Attributes
    ----------
    mean, scale
        Mean and standard deviation of each column, in raw units.
    """

    mean: np.ndarray
    scale: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Immutable table of numbers and categories with column names and a record of interventions.

    Parameters
    ----------
    values
        Table of n rows and d columns: a pandas frame, an array or nested lists. Stored as a read-only float64 copy, in
        which categorical columns are codes 0, 1, … of their levels.
    names
        Names of the columns; by default those of the frame, or x0, x1, …
    intervened
        Mask of shape (n, d), or one entry per row that names the targets (see `as_dataset`). `intervened[n, j]` means
        that in row n node j was set by an intervention, so the row carries no information about the parents of j.
    scaling
        Standardisation that was applied to the values, if any.
    notes
        What reading the table found out or left out, one line each, such as "separated by semicolons". `dagpost.fit`
        records them under the assumption "table"; they are not part of the fingerprint.
    kinds
        "continuous", "count", "categorical", "ordinal" or "binary" by name of column, where it is not what the cells
        say (numbers are continuous, or counts where they clearly are; words are categorical, and pandas categoricals
        with an order ordinal); a list of levels stands for a categorical column with these, and "low<mid<high" for an
        ordinal one. Stored as one kind for each column.
    levels
        Names of the categories of each column, () for a continuous one. Given, they say that `values` are codes.
    missing
        "keep" to accept missing cells, which are NaN in `values`; by default they are an error.
    markers
        How missing cells were written, by name of column, where they were not empty; `column_lines` says it. Texts
        such as "?" are found out (`dagpost.data.markers`).
    lags, series
        1 for a table of two time slices (`dagpost.data.lagged`), and the series of each row if they have names; else 0
        and None.
    conditions
        Experiment that each row comes from, if there are several; see `as_dataset`.

    Examples
    --------
    >>> Dataset([[1.0, 2.0], [3.0, 5.0]], names=["a", "b"])
    Dataset(2 rows, 2 columns: a, b)
    >>> Dataset([["no"], ["yes"], ["no"]], names=["smoker"]).levels
    (('no', 'yes'),)
    """

    values: Any
    names: tuple[str, ...] = ()
    intervened: Mask = field(default=None)  # type: ignore[assignment]
    scaling: Scaling | None = None
    notes: tuple[str, ...] = ()
    kinds: Any = None
    levels: tuple[Levels, ...] = ()
    missing: Literal["error", "keep"] = "error"
    markers: Markers = field(default_factory=dict)
    lags: int = 0
    series: Series | None = None
    conditions: Conditions | None = None

    def __post_init__(self):
        names = () if self.names is None else self.names if isinstance(self.names, str) else tuple(self.names)
        table = self.values if isinstance(self.values, pd.DataFrame) else as_matrix(self.values)
        if isinstance(self.values, pd.DataFrame):
            names = names or _column_names(self.values)
        d = table.shape[1]
        if d == 0:
            raise InputError("the table has no columns")
        names = as_texts(names or [f"x{j}" for j in range(d)], d)
        levels, faults, kinds = tuple(tuple(one) for one in self.levels) or ((),) * d, {}, (None,) * d
        if self.levels and isinstance(self.kinds, tuple) and len(self.kinds) == d:
            kinds = self.kinds
        wanted = {} if self.levels else parse_kinds(self._kinds_by_name(names), names)
        if isinstance(table, pd.DataFrame) or wanted:
            table = table if isinstance(table, pd.DataFrame) else pd.DataFrame(table)
            table, markers = without_markers(table.set_axis(list(names), axis=1), wanted)
            object.__setattr__(self, "markers", {**markers, **self.markers})
            places = {names.index(name): kind for name, kind in wanted.items()}
            table, faults, levels, kinds = frame_columns(table, places)
        keep = self.missing == "keep"
        raise_problems(name_problems(names) + value_problems(table, names, faults, levels, keep))
        intervened = intervention_mask(self.intervened, table.shape, names)
        kinds = kinds_of(table, levels, kinds)
        checked = {
            "values": table, "names": names, "intervened": intervened, "notes": tuple(self.notes), "kinds": kinds,
            "levels": levels,
        }  # fmt: skip
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

    def _kinds_by_name(self, names: Sequence[str]) -> Any:
        """Return kinds as they were given, one for each column by its name."""
        if not isinstance(self.kinds, list | tuple):
            return self.kinds
        if len(self.kinds) != len(names):
            raise InputError(f"{len(self.kinds)} kinds for {len(names)} columns: give one for each, or a dictionary")
        return dict(zip(names, self.kinds))

    @property
    def observations(self) -> int:
        """Number of rows."""
        return self.values.shape[0]

    @property
    def nodes(self) -> int:
        """Number of columns."""
        return self.values.shape[1]

    def __repr__(self) -> str:
        shown = ", ".join(printable(n) for n in self.names[:6]) + (", …" if self.nodes > 6 else "")
        extra = f"; {int(self.intervened.any(1).sum())} rows with interventions" if self.intervened.any() else ""
        extra += "; each with its past" if self.lags else ""
        extra += f"; {len(self.conditions.labels)} conditions" if self.conditions is not None else ""
        scaled = "; standardised" if self.scaling is not None else ""
        return f"Dataset({self.observations} rows, {self.nodes} columns: {shown}{extra}{scaled})"

    def frame(self) -> pd.DataFrame:
        """Return the values as a labelled table, categories by their levels."""
        if not self.is_categorical.any():
            return pd.DataFrame(self.values, columns=list(self.names))
        columns = [
            pd.Categorical.from_codes(np.nan_to_num(column, nan=-1).astype(np.int64), list(levels))  # type: ignore
            if levels
            else column
            for column, levels in zip(self.values.T, self.levels)
        ]
        return pd.DataFrame(dict(enumerate(columns))).set_axis(list(self.names), axis=1)

    # ---- kinds of columns

    @cached_property
    def is_categorical(self) -> np.ndarray:
        """Whether each column has levels: categorical, ordinal and binary ones."""
        return np.array([bool(levels) for levels in self.levels])

    @cached_property
    def is_missing(self) -> np.ndarray:
        """Mask of missing cells, of shape (n, d)."""
        return np.isnan(self.values)

    def column_lines(self) -> list[str]:
        """Return one line about each column: its kind, its range or levels, missing cells, and what it looks like.

        >>> Dataset([[1.5, "no"], [2.0, "yes"], [4.0, "no"]], names=["dose", "smoker"]).column_lines()
        ["'dose': continuous, 1.5 to 4", "'smoker': categorical, 2 levels ('no', 'yes')"]
        """
        lines = []
        raw = self.raw().values
        if self.scaling is not None:  # whole numbers again, which standardising and rounding have left by a hair
            decimals = 6 - np.floor(np.log10(self.scaling.scale)).astype(int)
            raw = np.column_stack([np.round(column, int(k)) for column, k in zip(raw.T, decimals)]) + 0.0
        for name, values, levels, kind in zip(self.names, raw.T, self.levels, self.kinds):
            own = name.removesuffix(PAST) if self.lags else name
            written = markers_text(self.markers.get(own, ())) if np.isnan(values).any() else ""
            hint = column_hint(name, values, levels, kind) if own == name else ""
            lines.append(f"'{printable(name)}': {describe_column(values, levels, kind)}{written}{hint}")
        return lines

    def with_kinds(self, kinds: Any) -> Dataset:
        """Return the same data with columns of other kinds.

        Parameters
        ----------
        kinds
            As in `Dataset`, or the path of a TOML file.
        """
        values, levels, own = self.raw().values.copy(), list(self.levels), list(self.kinds)
        wanted = parse_kinds(kinds, self.names)
        if self.lags:  # a column and its past are of one kind and have the same levels
            wanted = {n: wanted[s] for n in self.names for s in (n, n.removesuffix(PAST)) if s in wanted}
        for j, name in enumerate(self.names):
            if name in wanted:
                distinct = self._distinct(j)
                values[:, j], levels[j], own[j] = in_kind(values[:, j], levels[j], own[j], wanted[name], distinct, name)
        if self.scaling is not None and tuple(levels) != self.levels:
            raise InputError("the data are standardised: say kinds of columns before standardising")
        if tuple(levels) == self.levels:
            return self if tuple(own) == self.kinds else replace(self, kinds=tuple(own))
        return replace(self, values=values, levels=tuple(levels), kinds=tuple(own))

    def _distinct(self, j: int) -> np.ndarray:
        """Return the distinct values of a column, in both slices where there are two."""
        same = variables_of(self.names) == variables_of(self.names)[j] if self.lags else np.arange(self.nodes) == j
        found = self.raw().values[:, same]
        return np.unique(found[~np.isnan(found)])

    def with_levels(self, levels: Sequence[Levels]) -> Dataset:
        """Return the same data in terms of the levels of another table with these columns.

        Parameters
        ----------
        levels
            Levels of each column. A value that is none of them is an error.
        """
        if tuple(levels) == self.levels:
            return self
        values = self.values.copy()
        for j, name in enumerate(self.names):
            if levels[j]:
                values[:, j] = recode(values[:, j], self.levels[j], levels[j], name)
            elif self.levels[j]:
                values[:, j] = numbers_of(values[:, j], self.levels[j], name)
        return replace(self, values=values, levels=tuple(levels))

    # ---- units, rows and columns

    def rounded(self) -> Dataset:
        """Return the data with values rounded to 24 binary places.

        Rounding after standardising removes differences in the last digits that come from the unit of a column, so the
        same table in other units gives the same chains, draw for draw.
        """
        return replace(self, values=np.round(self.values * 2.0**24) / 2.0**24)

    def standardised(self) -> Dataset:
        """Return the data with every column at mean 0 and standard deviation 1, of its observed cells; see `scaling`.

        A column and its past (`lags`) share mean and scale, those of their values together.
        """
        if self.observations == 0:
            raise InputError("the table has no rows: it cannot be standardised")
        if self.is_categorical.any():
            culprit = self.names[int(self.is_categorical.argmax())]
            raise InputError(f"column '{printable(culprit)}' has categories: it cannot be standardised")
        mean = np.nanmean(self.values, axis=0)
        scale = np.nanstd(self.values, axis=0)
        if self.lags:
            mean, scale = pooled_scaling(self.values, self.names)
        for name, s, largest in zip(self.names, scale, np.nanmax(np.abs(self.values), axis=0)):
            if not s > 1e-12 * largest:
                raise InputError(f"column '{printable(name)}' is constant: it cannot be standardised, drop it")
        if self.scaling is not None:
            combined = Scaling(self.scaling.mean + self.scaling.scale * mean, self.scaling.scale * scale)
        else:
            combined = Scaling(mean, scale)
        return replace(self, values=(self.values - mean) / scale, scaling=combined)

    def raw(self) -> Dataset:
        """Return the data in their original units (undo `standardised`)."""
        if self.scaling is None:
            return self
        return replace(self, values=self.values * self.scaling.scale + self.scaling.mean, scaling=None)

    def rows(self, selection: Any) -> Dataset:
        """Return the selected rows.

        Parameters
        ----------
        selection
            A slice, a boolean mask or indices.
        """
        conditions, series = (None if of is None else of.rows(selection) for of in (self.conditions, self.series))
        return replace(
            self, values=self.values[selection], intervened=self.intervened[selection], conditions=conditions,
            series=series,
        )  # fmt: skip

    def followed_by(self, other: Dataset) -> Dataset:
        """Return these rows and then those of another data set with the same columns, units and levels."""
        other = other.with_levels(self.levels)
        values, intervened = (np.concatenate(pair) for pair in zip(*((a.values, a.intervened) for a in (self, other))))
        first = self.conditions
        if first is None and other.conditions is not None:
            first = Conditions(other.conditions.labels, np.full(self.observations, -1))
        conditions = None if first is None else first.followed_by(other.conditions, other.observations)
        return replace(self, values=values, intervened=intervened, conditions=conditions, series=None)

    def columns(self, names: Sequence[str]) -> Dataset:
        """Return the named columns, in that order."""
        order = [self.names.index(name) for name in names]
        scaling = None if self.scaling is None else Scaling(self.scaling.mean[order], self.scaling.scale[order])
        return replace(
            self, values=self.values[:, order], names=tuple(names), intervened=self.intervened[:, order],
            scaling=scaling, levels=tuple(self.levels[j] for j in order), kinds=tuple(self.kinds[j] for j in order),
            lags=self.lags if past_columns(names).any() else 0,
        )  # fmt: skip

    def with_interventions(self, mask: Any) -> Dataset:
        """Return the same values with another record of interventions.

        Parameters
        ----------
        mask
            As `intervened` of `Dataset`.
        """
        return replace(self, intervened=mask)

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of names, values, levels and interventions: equal for equal data."""
        digest = hashlib.sha256(repr((self.values.shape, self.names)).encode())
        if self.is_categorical.any():  # numbers alone have the hash of versions that knew nothing else
            digest.update(repr(self.levels).encode())
        if self.conditions is not None:
            digest.update(repr((self.conditions.labels, self.conditions.of_row.tolist())).encode())
        for array in (self.values, self.intervened):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def regimes(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct columns of the intervention mask, of shape (g, n), and for each node the index of its own.

        The statistics of a node's family use the rows in which the node was not intervened on; nodes with the same
        column of the mask share them.
        """
        columns, group = np.unique(self.intervened, axis=1, return_inverse=True)
        return np.ascontiguousarray(columns.T), group.reshape(-1)

    def with_regimes(self, left_out: np.ndarray) -> Dataset:
        """Return the same data with these groups of rows as `regimes`, all nodes in the first of them.

        Parameters
        ----------
        left_out
            Rows that each group leaves out, of shape (g, n).
        """
        out = replace(self, intervened=None)
        out.__dict__["regimes"] = (np.ascontiguousarray(left_out), np.zeros(self.nodes, dtype=np.int64))
        return out


def _column_names(frame: pd.DataFrame) -> list[object]:
    """Return the column names of a frame."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError("the table has several header rows: join them into one name for each column")
    return list(frame.columns)
