"""Numbers of a table: convert columns of any kind to float64, and describe what is wrong with them.

Wrong are values that are no finite numbers, and columns that repeat themselves or each other. A table is refused once,
with all of its problems in one line; each problem names the columns and the cure.
"""

from __future__ import annotations

import decimal
import numbers
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dagpost.errors import InputError, printable

SHOWN = 4
"""Number of columns that a message lists by name."""

DEPENDENT = 1e-12
"""A column is linearly dependent if the others leave less than this share of its variance unexplained."""

MEASUREMENT = re.compile(r"[<>~≤≥=\s]*[+-]?[\d.,' ]*\d[\d.,' ]*([eE][+-]?\d+)?\s*(%|\s\S{1,8})?")
"""Texts that mean a number, such as "1.234,5", "<0.1" and "12 mg": a column with any of them names neither rows nor
categories."""

DROP_MISSING = 'drop such rows (--missing drop; in Python frame.dropna(), or missing="drop" of dagpost.read_table)'
CURE_MISSING = (
    f'{DROP_MISSING}, or fit with method "auto" (dagpost fit --method auto; dp.fit, of a table read with '
    'missing="keep"), which draws such cells with the models "bge", "linear", "bdeu" and "copula"'
)
CURE_COLUMN = "recode or leave out (--drop NAME)"
CURE_TEXT = (
    'recode, leave out (--drop NAME), call it categorical (--kinds NAME=categorical, kinds={"NAME": "categorical"}), '
    'or name texts that stand for missing cells (--missing-values TEXT, missing_values=["TEXT"])'
)
CURE_ORDER = 'give its levels in their order (--kinds \'NAME=low<mid<high\', kinds={"NAME": "low<mid<high"})'
CURE_DATES = "turn into numbers, such as days since the first, or leave out (--drop NAME)"
CURE_CONSTANT = "leave out with --drop constant, or check the file"
CURE_DUPLICATE = "drop one of them, or use --drop duplicate"


class Duplicate(NamedTuple):
    """A column that repeats an earlier one.

    Attributes
    ----------
    column, original
        Indices of the column and of the earlier column.
    identical
        Whether the values are equal, rather than equal up to scale and offset.
    """

    column: int
    original: int
    identical: bool


def list_names(names: Sequence[object], shown: int = SHOWN) -> str:
    """Return the first few names in quotation marks, and how many more there are.

    >>> list_names(["a", "b", "c"], shown=2)
    "'a', 'b' and 1 more"
    """
    listed = ", ".join(f"'{printable(name)}'" for name in names[:shown])
    return listed + (f" and {len(names) - shown} more" if len(names) > shown else "")


def columns_phrase(names: Sequence[object], singular: str, plural: str) -> str:
    """Return "column 'a' <singular>" or "columns 'a', 'b' <plural>"."""
    if len(names) == 1:
        return f"column '{printable(names[0])}' {singular}"
    return f"columns {list_names(names)} {plural}"


def raise_problems(problems: Sequence[str]) -> None:
    """Raise one error that lists all problems; return if there are none."""
    if problems:
        raise problems_error(problems)


def problems_error(problems: Sequence[str]) -> InputError:
    """Return one error that lists all problems."""
    return InputError(problems[0] if len(problems) == 1 else f"{len(problems)} problems: " + "; ".join(problems))


def constant_columns(values: np.ndarray, free: np.ndarray | None = None) -> list[int]:
    """Return the indices of columns with one value only.

    Parameters
    ----------
    values
        Matrix of numbers; missing ones are ignored.
    free
        Mask of the entries to look at, such as those without an intervention; all by default.
    """
    looked_at = ~np.isnan(values) if free is None else free & ~np.isnan(values)
    low = np.where(looked_at, values, np.inf).min(axis=0, initial=np.inf)
    high = np.where(looked_at, values, -np.inf).max(axis=0, initial=-np.inf)
    return [int(j) for j in np.flatnonzero((low == high) & (looked_at.sum(axis=0) > 1))]


def duplicate_columns(values: np.ndarray) -> list[Duplicate]:
    """Return the columns that repeat an earlier one in complete rows, equal or up to scale and offset; constant ones
    must be absent."""
    values = values[~np.isnan(values).any(axis=1)]
    if len(values) < 2:
        return []
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        centred = values - values.mean(axis=0)
        scaled = centred / np.sqrt((centred**2).sum(axis=0))
        correlation = scaled.T @ scaled
    found: dict[int, Duplicate] = {}
    for i, j in zip(*(index.tolist() for index in np.nonzero(np.triu(np.abs(correlation) > 1 - 1e-9, 1)))):
        if j in found or i in found:
            continue
        if (values[:, i] == values[:, j]).all():
            found[j] = Duplicate(j, i, True)
        elif len(values) > 2:
            difference = np.abs(scaled[:, i] - np.sign(correlation[i, j]) * scaled[:, j]).max()
            if difference < np.sqrt(DEPENDENT):
                found[j] = Duplicate(j, i, False)
    return [found[j] for j in sorted(found)]


def describe_constant(
    values: np.ndarray, names: Sequence[str], columns: Sequence[int], levels: Sequence[Sequence[str]] = ()
) -> list[str]:
    """Return the problem of the constant columns with these indices, if there are any.

    `values` holds one value of every column, and `levels` its levels if it is categorical.
    """
    if not columns:
        return []
    texts = [
        f"'{printable(levels[j][int(values[j])])}'" if levels and levels[j] else f"{values[j]:g}"
        for j in columns[:SHOWN]
    ]
    several = ", ".join(texts) + (", …" if len(columns) > SHOWN else "")
    singular, plural = f"is constant (value {texts[0]})", f"are constant (values {several})"
    return [f"{columns_phrase([names[j] for j in columns], singular, plural)}: {CURE_CONSTANT}"]


def describe_duplicates(names: Sequence[str], found: Sequence[Duplicate]) -> list[str]:
    """Return the problems of duplicate columns: one for equal columns, one for those equal up to scale and offset."""
    problems = []
    for identical, what in ((True, "are identical"), (False, "are the same up to scale and offset")):
        pairs = [(names[one.original], names[one.column]) for one in found if one.identical == identical]
        texts = [f"'{printable(a)}' and '{printable(b)}'" for a, b in pairs[:SHOWN]]
        if len(pairs) > SHOWN:
            texts.append(f"{len(pairs) - SHOWN} more pairs")
        if texts:
            problems.append(f"columns {', '.join(texts)} {what}: {CURE_DUPLICATE}")
    return problems


class Fault(NamedTuple):
    """Why a column cannot be used.

    Attributes
    ----------
    kind
        Key of `DESCRIPTIONS`.
    row
        First row with the fault.
    cell
        The offending value.
    rows
        Number of rows with the fault.
    """

    kind: str
    row: int = 0
    cell: Any = None
    rows: int = 1


DESCRIPTIONS = {
    "dates": ("holds dates", "hold dates", CURE_DATES),
    "complex": ("holds complex numbers", "hold complex numbers", "give real numbers"),
    "categories": ("holds categories", "hold categories", CURE_COLUMN),
    "level": ("", "hold texts that are none of their levels", "correct the list of levels, or the cells"),
    "many": ("", "hold many different texts", CURE_TEXT),
    "names": ("", "hold text, not numbers, another in each row as names of rows do", CURE_TEXT),
    "order": ("is called ordinal and holds words", "are called ordinal and hold words", CURE_ORDER),
    "count": ("", "hold numbers that are no counts", "give whole numbers from 0 on, or call it continuous"),
    "binary": ("", "are called binary without two different values", "call it ordinal, count or categorical"),
    "large": ("holds a number too large for a float", "hold numbers too large for a float", "rescale"),
    "decimal": (
        "",
        "hold decimal commas",
        'use --decimal , (decimal="," in Python), or write points and no thousands separators',
    ),
    "text": ("", "hold text, not numbers", CURE_TEXT),
    "empty": ("is empty", "are empty", "leave out (--drop constant)"),
    "missing": ("", "have missing values", CURE_MISSING),
    "infinite": ("", "have infinite values", "drop those rows or cap the values"),
}
"""Wording for one column and for several, and the cure, by kind of fault."""


CELL_FAULTS = {
    "text": "not a number", "names": "not a number but a text of its own, as names of rows are",
    "decimal": "a decimal comma", "level": "none of its levels", "many": "one text of many",
    "count": "no count",
}  # fmt: skip
"""What is wrong with the offending cell, for faults that have one."""


def is_number(text: str) -> bool:
    """Return whether the text can be parsed as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def has_decimal_comma(text: str) -> bool:
    """Return whether the text is a number written with a decimal comma."""
    return "," in text and is_number(text.replace(",", ".", 1))


def numeric_column(column: pd.Series) -> np.ndarray | Fault:
    """Return a column as float64 with NaN for missing values, or its fault."""
    kind = column.dtype
    if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
        return Fault("dates")
    if pd.api.types.is_complex_dtype(kind):
        return Fault("complex")
    if isinstance(kind, pd.CategoricalDtype):
        return Fault("categories")
    if isinstance(kind, pd.SparseDtype):
        column = column.sparse.to_dense()
    if pd.api.types.is_numeric_dtype(kind) or pd.api.types.is_bool_dtype(kind):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    for row, value in enumerate(column):
        if not is_missing(value) and not isinstance(value, numbers.Real | decimal.Decimal | np.bool_):
            return _text_fault(column, row)
    try:
        return np.array([np.nan if is_missing(value) else float(value) for value in column], dtype=np.float64)
    except OverflowError:
        return Fault("large")


def is_missing(value: Any) -> bool:
    """Return whether the value is None, NA or NaT; NaN is a float and passes through."""
    return value is None or value is pd.NA or value is pd.NaT


def _text_fault(column: pd.Series, row: int) -> Fault:
    """Return the fault with the offending cell.

    A column of a file that contains one word is read as text throughout, so the first text that is not a number counts.
    """
    texts = ((i, v) for i, v in enumerate(column) if isinstance(v, str) and not is_number(v))
    row, value = next(texts, (row, column.iloc[row]))
    return Fault("decimal" if isinstance(value, str) and has_decimal_comma(value) else "text", row, value)


def value_problems(
    values: np.ndarray,
    names: Sequence[str],
    faults: dict[int, Fault],
    levels: Sequence[Sequence[str]] = (),
    keep_missing: bool = False,
) -> list[str]:
    """Return what keeps the values from being used, one text per kind of fault, each with its cure.

    Constant and duplicate columns are listed only beside other faults: data may hold them until inference. Missing
    values are no fault with `keep_missing`, unless a column has no other.
    """
    found = list(faults.items())
    numeric = [j for j in range(values.shape[1]) if j not in faults]
    for j in numeric:
        infinite, missing = np.isinf(values[:, j]), np.isnan(values[:, j])
        if infinite.any():
            found.append((j, Fault("infinite", int(infinite.argmax()), rows=int(infinite.sum()))))
        if missing.any():
            kind = "empty" if missing.all() and len(missing) > 1 else "missing"
            if kind == "empty" or not keep_missing:
                found.append((j, Fault(kind, int(missing.argmax()), rows=int(missing.sum()))))
    problems = []
    for kind in DESCRIPTIONS:
        columns = [(names[j], fault) for j, fault in sorted(found, key=lambda one: one[0]) if fault.kind == kind]
        if columns:
            problems.append(_describe(kind, [name for name, _ in columns], [fault for _, fault in columns]))
    if not problems or len(values) == 0:
        return problems
    faulty = {j for j, _ in found}
    constant = constant_columns(values)
    whole = [j for j in numeric if j not in faulty and j not in constant and not np.isnan(values[:, j]).any()]
    problems += describe_constant(_first_values(values), names, constant, levels)
    return problems + describe_duplicates([names[j] for j in whole], duplicate_columns(values[:, whole]))


def _first_values(values: np.ndarray) -> np.ndarray:
    """Return the first value of each column that is not missing."""
    return values[(~np.isnan(values)).argmax(axis=0), np.arange(values.shape[1])]


def _describe(kind: str, names: Sequence[str], faults: Sequence[Fault]) -> str:
    """Return the problem of all columns with one kind of fault."""
    singular, plural, cure = DESCRIPTIONS[kind]
    first = faults[0]
    row = first.row + 1
    if kind in CELL_FAULTS or (kind == "dates" and first.cell is not None):
        cell = f"{printable(first.cell)!r:.40}"
        if kind == "many":
            singular = f"holds {first.rows} different texts (the first: {cell}), too many for categories"
        elif kind == "dates":
            singular = f"{singular} (the first: row {row}, {cell})"
        elif len(faults) == 1:
            return f"column '{printable(names[0])}', row {row} holds {cell}, {CELL_FAULTS[kind]}: {cure}"
        plural += f" (the first: row {row}, {cell})"
    elif kind == "binary":
        singular = f"is called binary and holds {first.rows} different value{'s' * (first.rows != 1)}"
    elif kind == "missing":
        singular = f"has {first.rows} missing value{'s' * (first.rows > 1)}, the first in row {row}"
        plural += f" ({sum(fault.rows for fault in faults)} in all)"
    elif kind == "infinite":
        singular = f"has {first.rows} infinite value(s), the first in row {row}"
        plural += f" ({sum(fault.rows for fault in faults)} in all)"
    return f"{columns_phrase(names, singular, plural)}: {cure}"


def as_matrix(values: Any) -> np.ndarray | pd.DataFrame:
    """Return a new float64 matrix from an array-like of real numbers, or a frame if it holds anything else."""
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError("the data are a sparse matrix: give a dense one with .toarray()")
    if isinstance(values, np.ma.MaskedArray) and values.dtype.kind in "biuf":
        values = np.ma.filled(values.astype(np.float64), np.nan)
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
        return pd.DataFrame(np.asarray(values, dtype=object))
    return np.array(array, dtype=np.float64, order="C")
