"""`Dataset`: an immutable table of numbers with column names and a record of interventions.

Names and values are checked once, when the dataset is created; names are never altered.
"""

from __future__ import annotations

import decimal
import hashlib
import numbers
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from dagpost.data.targets import are_targets, target_mask
from dagpost.errors import InputError, nearest, printable
from dagpost.typing import Mask

UNPRINTABLE = ("Cc", "Cf", "Cs", "Zl", "Zp")
"""Unicode categories that names must not contain: control, formatting, surrogates, line and paragraph breaks."""


def check_names(names: Sequence[object], count: int) -> tuple[str, ...]:
    """Return the names as strings, or raise an error that names the one that is empty, unprintable or ambiguous."""
    if isinstance(names, str):
        raise InputError(f"names={names!r}: give one name for each column, not a single string")
    names = tuple(names)
    texts = tuple("" if name is None or name != name else str(name) for name in names)
    if len(texts) != count:
        raise InputError(f"{len(texts)} names for {count} columns: give one name for each column")
    seen: dict[str, str] = {}
    for position, text in enumerate(texts):
        if not text.strip():
            raise InputError(f"column {position + 1} has an empty name: give it one")
        bad = next((c for c in text if unicodedata.category(c) in UNPRINTABLE), None)
        if bad is not None:
            kind = "control character" if unicodedata.category(bad) == "Cc" else "invisible character"
            raise InputError(
                f"the name of column {position + 1}, '{printable(text)}', holds the {kind} U+{ord(bad):04X}: rename it"
            )
        normal = unicodedata.normalize("NFKC", text).strip()
        if normal in seen:
            if seen[normal] == text:
                raise InputError(f"the name '{printable(text)}' stands for two columns: rename one")
            raise InputError(
                f"the names '{printable(seen[normal])}' and '{printable(text)}' look the same "
                "(they are equal after Unicode normalisation): rename one"
            )
        seen[normal] = text
    return texts


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

    Examples
    --------
    >>> Dataset([[1.0, 2.0], [3.0, 5.0]], names=["a", "b"])
    Dataset(2 rows, 2 columns: a, b)
    """

    values: Any
    names: tuple[str, ...] = ()
    intervened: Mask = field(default=None)  # type: ignore[assignment]
    scaling: Scaling | None = None

    def __post_init__(self):
        names = () if self.names is None else self.names if isinstance(self.names, str) else tuple(self.names)
        if isinstance(self.values, pd.DataFrame):
            values = _frame_values(self.values)
            names = names or tuple(_column_names(self.values))
        else:
            values = numeric_matrix(self.values)
        if values.shape[1] == 0:
            raise InputError("the table has no columns")
        names = check_names(names or [f"x{j}" for j in range(values.shape[1])], values.shape[1])
        _check_finite(values, names)
        intervened = _mask(self.intervened, values.shape, names)
        for name, value in (("values", values), ("names", names), ("intervened", intervened)):
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

    def columns(self, names: Sequence[str]) -> Dataset:
        """Return the named columns, in that order."""
        order = [self.names.index(name) for name in names]
        scaling = None if self.scaling is None else Scaling(self.scaling.mean[order], self.scaling.scale[order])
        return Dataset(self.values[:, order], tuple(names), self.intervened[:, order], scaling)

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


def _column_names(frame: pd.DataFrame) -> tuple[str, ...]:
    """Return the checked column names of a frame."""
    if isinstance(frame.columns, pd.MultiIndex):
        raise InputError("the table has several header rows: join them into one name for each column")
    return check_names(list(frame.columns), frame.shape[1])


def _frame_values(frame: pd.DataFrame) -> np.ndarray:
    """Return the values of a frame as float64."""
    out = np.empty(frame.shape, dtype=np.float64)
    for j in range(frame.shape[1]):
        out[:, j] = _numeric_column(frame.iloc[:, j], printable(frame.columns[j]))
    return out


def _numeric_column(column: pd.Series, name: str) -> np.ndarray:
    """Return a column as float64, or raise an error that names the column and the row."""
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        raise InputError(f"column '{name}' holds dates: turn it into a number or drop it")
    if pd.api.types.is_complex_dtype(kind):
        raise InputError(f"column '{name}' holds complex numbers: give real numbers")
    if isinstance(kind, pd.CategoricalDtype):
        raise InputError(f"column '{name}' holds categories: this model needs numbers, recode or drop it")
    if isinstance(kind, pd.SparseDtype):
        column = column.sparse.to_dense()
    if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    for row, value in enumerate(column):
        if value is None or value is pd.NA or value is pd.NaT:
            raise _missing(name, row, int(column.isna().sum()))
        if not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
            raise _not_a_number(column, name, row)
    try:
        return np.array([float(value) for value in column], dtype=np.float64)
    except OverflowError:
        raise InputError(f"column '{name}' holds a number too large for a float: rescale the column") from None


def _not_a_number(column: pd.Series, name: str, row: int) -> InputError:
    """Return the error that names the offending cell.

    A column of a file that contains one word is read as text throughout, so the first text that is not a number counts.
    """
    texts = ((i, v) for i, v in enumerate(column) if isinstance(v, str) and not is_number(v))
    row, value = next(texts, (row, column.iloc[row]))
    if isinstance(value, str) and _has_decimal_comma(value):
        return InputError(f"column '{name}', row {row + 1} holds {value!r}: decimal commas; write decimal points")
    return InputError(
        f"column '{name}', row {row + 1} holds {printable(value)!r:.40}, not a number: recode the column or drop it"
    )


def is_number(text: str) -> bool:
    """Return whether the text can be parsed as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _has_decimal_comma(text: str) -> bool:
    """Return whether the text is a number written with a decimal comma."""
    return "," in text and is_number(text.replace(",", ".", 1))


def _missing(name: str, row: int, count: int) -> InputError:
    """Return the error for missing values."""
    values = "1 missing value" if count == 1 else f"{count} missing values"
    return InputError(f"column '{name}' has {values}, the first in row {row + 1}: drop those rows or fill them in")


def numeric_matrix(values: Any) -> np.ndarray:
    """Return a new float64 matrix from any array-like of real numbers in rows and columns."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError("the data are a sparse matrix: give a dense one with .toarray()")
    if np.ma.is_masked(values):
        row, column = (int(i[0]) for i in np.nonzero(np.ma.getmaskarray(values)))
        raise _missing(f"x{column}", row, int(np.ma.getmaskarray(values)[:, column].sum()))
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError("the rows of the data have different lengths: give a rectangular table") from None
    if array.ndim == 0:
        raise InputError(f"the data are {type(values).__name__!r}, not a table of rows and columns")
    if array.ndim != 2:
        cure = "a single column has no graph" if array.ndim == 1 else "flatten the extra dimensions"
        raise InputError(f"the data have {array.ndim} dimension(s), not 2 (rows, columns): {cure}")
    if array.dtype.kind == "V":
        raise InputError("the data are a structured array: give a pandas frame or a plain matrix")
    if array.dtype.kind == "c":
        raise InputError("the data hold complex numbers: give real numbers")
    if array.dtype.kind in "mM":
        raise InputError("the data hold dates: turn them into numbers or drop them")
    if array.dtype.kind in "OUS":
        array = np.asarray(values, dtype=object)
        return _frame_values(pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])]))
    return np.array(array, dtype=np.float64, order="C")


def _check_finite(values: np.ndarray, names: tuple[str, ...]) -> None:
    """Raise an error that names the first missing or infinite value."""
    if np.isfinite(values).all():
        return
    row, column = (int(i[0]) for i in np.nonzero(~np.isfinite(values)))
    name = printable(names[column])
    if np.isnan(values[row, column]):
        raise _missing(name, row, int(np.isnan(values[:, column]).sum()))
    raise InputError(
        f"column '{name}' has {int(np.isinf(values[:, column]).sum())} infinite value(s), the first in row {row + 1}: "
        "drop those rows or cap the values"
    )


def _mask(mask: Any, shape: tuple[int, ...], names: tuple[str, ...]) -> np.ndarray:
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
