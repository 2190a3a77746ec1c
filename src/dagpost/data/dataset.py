"""`Dataset`: an immutable table of numbers with column names and a record of interventions.

Names and values are checked once, when the dataset is created; names are never altered. Interventions are a mask, or
names of targets for each row, which become one.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.values import frame_values, numeric_matrix, raise_problems, value_problems
from dagpost.errors import InputError, nearest, printable
from dagpost.typing import Mask

UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that names must not contain: control, formatting, surrogates, line and paragraph breaks."""

MOST_PROBLEMS = 4
"""Number of bad names that one message lists."""


def check_names(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Return the names as strings, or raise an error that names those that are empty, unprintable or ambiguous."""
    texts = _as_texts(names, count)
    raise_problems(_name_problems(texts))
    return texts


def _as_texts(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Return the names as strings, or raise an error if there is not one for each column."""
    if isinstance(names, str):
        raise InputError(f"names={names!r}: give one name for each column, not a single string")
    texts = tuple("" if name is None or name != name else str(name) for name in names)
    if len(texts) != count:
        raise InputError(f"{len(texts)} names for {count} columns: give one name for each column")
    return texts


def _name_problems(texts: Sequence[str]) -> list[str]:
    """Return a problem for each name that is empty, unprintable or ambiguous."""
    problems = []
    seen: dict[str, str] = {}
    for position, text in enumerate(texts):
        if not text.strip():
            problems.append(f"column {position + 1} has an empty name: give it one")
            continue
        bad = next((c for c in text if unicodedata.category(c) in UNPRINTABLE), None)
        if bad is not None:
            kind = "control character" if unicodedata.category(bad) == "Cc" else "invisible character"
            problems.append(
                f"the name of column {position + 1}, '{printable(text)}', holds the {kind} U+{ord(bad):04X}: rename it"
            )
        normal = unicodedata.normalize("NFKC", text).strip()
        if seen.get(normal) == text:
            problems.append(f"the name '{printable(text)}' stands for two columns: rename one")
        elif normal in seen:
            problems.append(
                f"the names '{printable(seen[normal])}' and '{printable(text)}' look the same "
                "(they are equal after Unicode normalisation): rename one"
            )
        seen[normal] = text
    if len(problems) > MOST_PROBLEMS:
        problems[MOST_PROBLEMS:] = [f"{len(problems) - MOST_PROBLEMS} more names have such problems: rename them"]
    return problems


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
    """Immutable table of numbers with column names and a record of interventions.

    Parameters
    ----------
    values
        Table of n rows and d columns: a pandas frame, an array or nested lists. Stored as a read-only float64 copy.
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

    Examples
    --------
    >>> Dataset([[1.0, 2.0], [3.0, 5.0]], names=["a", "b"])
    Dataset(2 rows, 2 columns: a, b)
    """

    values: Any
    names: tuple[str, ...] = ()
    intervened: Mask = field(default=None)  # type: ignore[assignment]
    scaling: Scaling | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        names = () if self.names is None else self.names if isinstance(self.names, str) else tuple(self.names)
        if isinstance(self.values, pd.DataFrame):
            names = names or _column_names(self.values)
            values, faults = frame_values(self.values)
        else:
            values, faults = numeric_matrix(self.values)
        if values.shape[1] == 0:
            raise InputError("the table has no columns")
        names = _as_texts(names or [f"x{j}" for j in range(values.shape[1])], values.shape[1])
        raise_problems(_name_problems(names) + value_problems(values, names, faults))
        intervened = intervention_mask(self.intervened, values.shape, names)
        checked = {"values": values, "names": names, "intervened": intervened, "notes": tuple(self.notes)}
        for name, value in checked.items():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
            object.__setattr__(self, name, value)

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
        scaled = "; standardised" if self.scaling is not None else ""
        return f"Dataset({self.observations} rows, {self.nodes} columns: {shown}{extra}{scaled})"

    def frame(self) -> pd.DataFrame:
        """Return the values as a labelled table."""
        return pd.DataFrame(self.values, columns=list(self.names))

    def rounded(self) -> Dataset:
        """Return the data with values rounded to 24 binary places.

        Rounding after standardising removes differences in the last digits that come from the unit of a column, so the
        same table in other units gives the same chains, draw for draw.
        """
        return replace(self, values=np.round(self.values * 2.0**24) / 2.0**24)

    def standardised(self) -> Dataset:
        """Return the data with every column at mean 0 and standard deviation 1; recorded in `scaling`."""
        if self.observations == 0:
            raise InputError("the table has no rows: it cannot be standardised")
        mean = self.values.mean(axis=0)
        scale = self.values.std(axis=0)
        for name, s, largest in zip(self.names, scale, np.abs(self.values).max(axis=0, initial=0.0)):
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
        return replace(self, values=self.values[selection], intervened=self.intervened[selection])

    def followed_by(self, other: Dataset) -> Dataset:
        """Return these rows and then those of another data set with the same columns and units."""
        values, intervened = (np.concatenate(pair) for pair in zip(*((a.values, a.intervened) for a in (self, other))))
        return replace(self, values=values, intervened=intervened)

    def columns(self, names: Sequence[str]) -> Dataset:
        """Return the named columns, in that order."""
        order = [self.names.index(name) for name in names]
        scaling = None if self.scaling is None else Scaling(self.scaling.mean[order], self.scaling.scale[order])
        return Dataset(self.values[:, order], tuple(names), self.intervened[:, order], scaling, self.notes)

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
        """SHA-256 of names, values and interventions: equal for equal data."""
        digest = hashlib.sha256(repr((self.values.shape, self.names)).encode())
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


def _column_names(frame: pd.DataFrame) -> list[object]:
    """Return the column names of a frame."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError("the table has several header rows: join them into one name for each column")
    return list(frame.columns)


def intervention_mask(mask: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> np.ndarray:
    """Return the boolean intervention mask, from a mask, target names or None."""
    if mask is None:
        return np.zeros(shape, dtype=np.bool_)
    if are_targets(mask):
        return target_mask(mask, names, shape[0])
    if isinstance(mask, pd.DataFrame):
        unknown = [str(c) for c in mask.columns if str(c) not in names]
        if unknown:
            raise InputError(f"the intervention mask names an unknown column: {nearest(unknown[0], names)}")
        mask = mask.rename(columns=str).reindex(columns=list(names), fill_value=False)
    array = np.asarray(mask)
    if array.shape != shape:
        raise InputError(
            f"the intervention mask has shape {array.shape}, the data {shape}: give one entry for each value"
        )
    if array.dtype != np.bool_ and not np.isin(array, (0, 1)).all():
        raise InputError("the intervention mask holds something other than True/False or 0/1")
    return np.array(array, dtype=np.bool_)


SEPARATOR = ";"
"""Separates several targets in one entry."""

NO_TARGET = ("", "none", "no", "-", "observational")
"""Entries that mean "no intervention", unless a column has that name; a missing entry means the same."""


def are_targets(interventions: Any) -> bool:
    """Return whether these are names of targets, one entry per row, rather than a mask of 0 and 1."""
    if isinstance(interventions, pd.Series):
        return True
    if isinstance(interventions, np.ndarray):
        return interventions.ndim == 1 and (interventions.dtype.kind in "OUST" or bool(pd.isna(interventions).all()))
    if not isinstance(interventions, Sequence) or isinstance(interventions, str | bytes):
        return False
    return all(_is_missing(entry) or _is_names(entry) for entry in interventions)


def _is_missing(entry: Any) -> bool:
    """Return whether the entry is None, NA or NaN."""
    return entry is None or entry is pd.NA or (isinstance(entry, float | np.floating) and np.isnan(entry))


def _is_names(entry: Any) -> bool:
    """Return whether the entry is a name or a collection of names."""
    if isinstance(entry, str):
        return True
    return isinstance(entry, list | tuple | set | frozenset) and all(isinstance(name, str) for name in entry)


def target_mask(targets: Iterable[Any], names: tuple[str, ...], rows: int) -> Mask:
    """Return the intervention mask from one entry per row: a name, several joined by ";" or in a list, or nothing.

    >>> target_mask(["a", "", "a;b", None], ("a", "b"), 4).astype(int).tolist()
    [[1, 0], [0, 0], [1, 1], [0, 0]]
    """
    entries = list(targets)
    if len(entries) != rows:
        raise InputError(f"{len(entries)} intervention targets for {rows} rows: give one entry for each row")
    mask = np.zeros((rows, len(names)), dtype=np.bool_)
    known: dict[Any, list[int]] = {}
    for row, entry in enumerate(entries):
        if _is_missing(entry) or (isinstance(entry, str) and entry.strip().lower() in NO_TARGET and entry not in names):
            continue
        key = entry if isinstance(entry, str) else tuple(entry) if _is_names(entry) else None
        if key is None:
            raise InputError(
                f"the intervention target in row {row + 1} is {printable(repr(entry)):.40}: give the name of a column"
            )
        if key not in known:
            known[key] = _positions(key, names, row)
        mask[row, known[key]] = True
    return mask


def _positions(entry: str | tuple[str, ...], names: tuple[str, ...], row: int) -> list[int]:
    """Return the column indices of the targets in one entry."""
    if isinstance(entry, str):
        # a column name may contain the separator
        entry = (entry,) if entry.strip() in names else tuple(entry.split(SEPARATOR))
    targets = [part if part in names else part.strip() for part in entry]
    for name in targets:
        if name and name not in names:
            raise InputError(
                f"row {row + 1} was intervened on at '{printable(name)}', which is not a column: {nearest(name, names)}"
            )
    return [names.index(name) for name in targets if name]


def split_targets(frame: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the frame without the column that holds the targets, and that column."""
    texts = [str(name) for name in frame.columns]
    if texts.count(column) != 1:
        what = f"unknown: {nearest(column, texts)}" if column not in texts else "there twice: rename one"
        raise InputError(f"the column of intervention targets, '{printable(column)}', is {what}")
    place = texts.index(column)
    return frame.drop(columns=frame.columns[place]), frame.iloc[:, place]
