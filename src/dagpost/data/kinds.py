"""Kinds of columns: numbers are continuous or counts, words are categories, unless the user says otherwise.

A categorical column is stored as codes 0, 1, … of its levels (the names of its categories) in alphabetical order, in
that of a pandas categorical, or in the order that the user gives; an ordinal one has levels whose order means
something, and a binary one has two. Texts that look like measurements or dates, and columns with nearly as many texts
as rows, are not taken as categories unless the user says so.
"""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dagpost._util.files import existing_file
from dagpost.data.values import (
    MEASUREMENT,
    Fault,
    is_missing,
    is_number,
    numeric_column,
    raise_problems,
    value_problems,
)
from dagpost.errors import InputError, nearest, printable

CONTINUOUS, CATEGORICAL, ORDINAL, COUNT, BINARY = "continuous", "categorical", "ordinal", "count", "binary"
KINDS = (CONTINUOUS, CATEGORICAL, ORDINAL, COUNT, BINARY)
WITH_LEVELS = (CATEGORICAL, ORDINAL, BINARY)
"""Kinds whose values are codes of levels."""

OTHER_WORDS = {
    word: kind
    for kind, words in (
        (CATEGORICAL, "nominal factor string str category object discrete"), (BINARY, "bool boolean logical"),
        (CONTINUOUS, "numeric number float real double"), (COUNT, "integer int"), (ORDINAL, "ordered rank likert"),
    )
    for word in words.split()
}  # fmt: skip
"""Words of other libraries for kinds, which an error suggests."""

Levels = tuple[str, ...]
"""Names of the categories of one column; empty for a continuous one."""

MOST_LEVELS = 50
"""Most levels of a column of text that nobody called categorical."""

FEWEST_NAMES = 10
"""Fewest different texts, one in each row, that look like names of rows."""

MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2})"
    rf"|\d{{1,2}}[-. ]+({MONTHS})[a-z]*[-. ]+\d{{2,4}}|({MONTHS})[a-z]*\.? \d{{1,2}}, ?\d{{4}})([T ].*)?"
    r"|\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?",
    re.IGNORECASE,
)
"""Texts that mean a date or a time of day."""

CLEARLY_COUNTS = (20, 5, 0.5)
"""Fewest rows, different values and skewness of whole numbers from 0 on that are taken as counts."""

ORDER = "<"
"""Between the levels of an ordinal column in their order: "low<mid<high"."""


class Wanted(NamedTuple):
    """What the user says of a column: its kind, and where it has any its levels in their order."""

    kind: str
    levels: Levels | None = None


class ColumnValues(NamedTuple):
    """A column as numbers: values or codes, NaN where missing, its levels, and its kind where that is known."""

    values: np.ndarray
    levels: Levels = ()
    kind: str | None = None


def parse_kinds(kinds: Any, names: Sequence[str], ignored: Sequence[str] = ()) -> dict[str, Wanted]:
    """Return what the user says of columns, checked.

    Parameters
    ----------
    kinds
        Kind or levels by name of column, the path of a TOML file with them, or None.
    names
        Columns of the table.
    ignored
        Columns that were left out, which may be mentioned.
    """
    if kinds is None:
        return {}
    if isinstance(kinds, str | os.PathLike):
        kinds = read_kinds(kinds)
    if not isinstance(kinds, Mapping):
        raise InputError(f'kinds={kinds!r:.40}: give a dictionary, such as {{"smoker": "categorical"}}, or a file')
    out: dict[str, Wanted] = {}
    for name, wanted in kinds.items():
        if str(name) not in names and str(name) not in ignored:
            raise InputError(f"kinds names '{printable(name)}', not a column: {nearest(str(name), names)}")
        out[str(name)] = _checked(str(name), wanted)
    return {name: wanted for name, wanted in out.items() if name in names}


def _checked(name: str, wanted: Any) -> Wanted:
    """Return a kind with at least two different levels if any are given, or raise an error that names the column."""
    if isinstance(wanted, Wanted):
        return wanted
    kind = CATEGORICAL
    if isinstance(wanted, str) and ORDER in wanted:
        kind, wanted = ORDINAL, wanted.split(ORDER)
    if isinstance(wanted, str):
        if wanted not in KINDS:
            meant = OTHER_WORDS.get(wanted.strip().lower())
            cure = f"did you mean '{meant}'?" if meant else nearest(wanted, KINDS)
            raise InputError(f"kind '{printable(wanted)}' of column '{printable(name)}': {cure}")
        return Wanted(wanted)
    levels = tuple(level_name(level) for level in wanted) if isinstance(wanted, Sequence) else ()
    if not isinstance(wanted, Sequence) or len(set(levels)) != len(levels) or "" in levels:
        raise InputError(
            f"kinds of column '{printable(name)}': give one of {', '.join(KINDS)}, different levels, or an order such "
            "as 'low<mid<high'"
        )
    if len(levels) < 2:
        raise InputError(f"kinds of column '{printable(name)}': give at least two levels")
    return Wanted(kind, levels)


def read_kinds(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the kinds in a TOML file: `smoker = "categorical"`, levels, `group = ["a", "b"]`, or levels in an order
    that means something, `dose = "low<mid<high"`."""
    file, shown = existing_file(path, "file of kinds", ".toml")
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f'{shown}: not a TOML file ({error}): write lines such as smoker = "categorical"') from None


def level_name(value: Any) -> str:
    """Return the name of the level that a cell stands for.

    >>> level_name(2.0), level_name(" yes "), level_name(True)
    ('2', 'yes', 'True')
    """
    if isinstance(value, float | np.floating):
        return f"{value:.15g}"
    return str(value).strip()


def frame_columns(
    frame: pd.DataFrame, wanted: Mapping[int, Wanted]
) -> tuple[np.ndarray, dict[int, Fault], tuple[Levels, ...], tuple[str | None, ...]]:
    """Return the values of a frame as float64, the faults by column, and levels and kind of every column.

    Parameters
    ----------
    frame
        The table.
    wanted
        What the user says of columns, by index.
    """
    out, faults, columns = np.full(frame.shape, np.nan), {}, []
    for j in range(frame.shape[1]):
        found = column_values(frame.iloc[:, j], wanted.get(j))
        if isinstance(found, Fault):
            faults[j] = found
            found = ColumnValues(out[:, j])
        out[:, j] = found.values
        columns.append(found)
    return out, faults, tuple(one.levels for one in columns), tuple(one.kind for one in columns)


def kinds_of(values: np.ndarray, levels: Sequence[Levels], given: Sequence[str | None]) -> tuple[str, ...]:
    """Return the kind of every column.

    Parameters
    ----------
    values
        Numbers and codes.
    levels
        Levels of every column, () where it has none.
    given
        Kind of every column where it is known, else None.
    """
    out = []
    for column, own, kind in zip(values.T, levels, given):
        if own:
            out.append(kind if kind in WITH_LEVELS else CATEGORICAL)
        elif kind in (CONTINUOUS, COUNT):
            out.append(kind)
        else:
            out.append(COUNT if clearly_counts(column) else CONTINUOUS)
    return tuple(out)


def clearly_counts(column: np.ndarray) -> bool:
    """Return whether numbers are clearly counts: whole, from 0 on, of several values, and skewed to the right.

    >>> clearly_counts(np.array([0.0] * 9 + [1] * 7 + [2] * 4 + [3] * 2 + [4, 7])), clearly_counts(np.arange(24.0))
    (True, False)
    """
    known = column[~np.isnan(column)]
    rows, different, skewness = CLEARLY_COUNTS
    if len(known) < rows or known.min() != 0 or (known % 1 != 0).any() or len(np.unique(known)) < different:
        return False
    deviation = known - known.mean()
    return bool((deviation**3).mean() > skewness * (deviation**2).mean() ** 1.5)


def column_values(column: pd.Series, wanted: Wanted | None) -> ColumnValues | Fault:
    """Return a column as numbers or codes, or its fault."""
    is_category = isinstance(column.dtype, pd.CategoricalDtype)
    if wanted is not None and wanted.kind in (CONTINUOUS, COUNT):
        found = numeric_column(_as_numbers(column.astype(object)) if is_category else column)
        return found if isinstance(found, Fault) else _numbers(found, wanted.kind)
    if wanted is not None:
        found = categories(column, wanted.levels)
        return found if isinstance(found, Fault) else _of_kind(found, wanted, _is_ordered(column))
    if is_category:
        found = categories(column)
        return found._replace(kind=ORDINAL) if isinstance(found, ColumnValues) and _is_ordered(column) else found
    found = numeric_column(column)
    if not isinstance(found, Fault):
        return ColumnValues(found)
    if found.kind != "text":
        return found
    cells = [cell for cell in column if not is_missing(cell) and cell == cell]
    if any(isinstance(cell, datetime.date | datetime.time) for cell in cells):
        return Fault("dates")
    if not all(isinstance(cell, str | bool | np.bool_) for cell in cells):
        return found
    texts = [level_name(cell) for cell in cells]
    if 2 * sum(DATE.fullmatch(text) is not None for text in texts) > len(texts):
        return Fault("dates", found.row, found.cell)
    if any(MEASUREMENT.fullmatch(text) or is_number(text) for text in texts):
        return found
    different = len(set(texts))
    if different == len(texts) and different > 1:
        return found._replace(kind="names") if different >= FEWEST_NAMES else found
    if different > max(2, min(MOST_LEVELS, len(texts) // 2)):
        return Fault("many", found.row, found.cell, different)
    return categories(column)


def _is_ordered(column: pd.Series) -> bool:
    """Return whether a column is a pandas categorical with an order."""
    return isinstance(column.dtype, pd.CategoricalDtype) and bool(column.cat.ordered)


def _numbers(values: np.ndarray, kind: str) -> ColumnValues | Fault:
    """Return a column of numbers of this kind; negative and broken ones are no counts."""
    bad = (values < 0) | (values % 1 > 0)
    if kind == COUNT and bad.any():
        return Fault("count", int(bad.argmax()), values[bad.argmax()])
    return ColumnValues(values, kind=kind)


def _of_kind(found: ColumnValues, wanted: Wanted, is_ordered: bool) -> ColumnValues | Fault:
    """Return a column of levels as one of the kind wanted, or its fault: words without an order, or not two levels."""
    if wanted.kind == BINARY and len(found.levels) != 2:
        return Fault("binary", rows=len(found.levels))
    ordered = wanted.levels is not None or is_ordered or len(found.levels) == 2
    if wanted.kind == ORDINAL and not ordered and not all(is_number(level) for level in found.levels):
        return Fault("order")
    return found._replace(kind=wanted.kind)


def _as_numbers(column: pd.Series) -> pd.Series:
    """Return a column of texts as numbers where every one of them is one."""
    texts = [cell for cell in column if isinstance(cell, str)]
    if texts and all(is_number(cell) for cell in texts):
        return column.map(lambda cell: float(cell) if isinstance(cell, str) else cell)
    return column


def categories(column: pd.Series, levels: Sequence[str] | None = None) -> ColumnValues | Fault:
    """Return a column as codes of its levels: those given, or those that occur."""
    cells = [None if is_missing(cell) or cell != cell else level_name(cell) for cell in column]
    if levels is None:
        if isinstance(column.dtype, pd.CategoricalDtype):
            order = [level_name(level) for level in column.cat.categories]
        else:
            order = sorted({cell for cell in cells if cell is not None}, key=_numbers_first)
        present = set(cells)
        levels = [level for level in order if level in present]
    code = {level: float(k) for k, level in enumerate(levels)}
    for row, cell in enumerate(cells):
        if cell is not None and cell not in code:
            return Fault("level", row, cell)
    return ColumnValues(np.array([np.nan if cell is None else code[cell] for cell in cells]), tuple(levels))


def _numbers_first(level: str) -> tuple[bool, float, str]:
    """Return a key that sorts numbers by value, before texts."""
    return (False, float(level), level) if is_number(level) else (True, 0.0, level)


def recode(values: np.ndarray, own: Levels, levels: Levels, name: str) -> np.ndarray:
    """Return the codes of a column in terms of other levels.

    Parameters
    ----------
    values
        Codes of the column's own levels, or numbers where it has none.
    own, levels
        The column's own levels, and those to use.
    name
        Name of the column, for an error about a value that is no level.
    """
    if own == levels:
        return values
    code = {level: float(k) for k, level in enumerate(levels)}
    out = np.full(len(values), np.nan)
    for row, value in enumerate(values):
        if not np.isnan(value):
            text = own[int(value)] if own else level_name(float(value))
            if text not in code:
                known = ", ".join(f"'{printable(level)}'" for level in levels[:8])
                raise InputError(
                    f"column '{printable(name)}', row {row + 1} holds '{printable(text)}', which is none of its "
                    f"levels: {known}"
                )
            out[row] = code[text]
    return out


def in_kind(
    values: np.ndarray, own: Levels, kind: str, wanted: Wanted, distinct: np.ndarray, name: str
) -> ColumnValues:
    """Return a column in another kind, or raise an error that names it.

    Parameters
    ----------
    values, own, kind
        Numbers or codes of a column, its levels and its kind.
    wanted
        The kind and the levels that it is to have.
    distinct
        Its different values, where it has no levels.
    name
        Its name.
    """
    if wanted.kind in (CONTINUOUS, COUNT):
        out = _numbers(numbers_of(values, own, name) if own else values, wanted.kind)
    elif wanted.levels is None:
        levels = own or tuple(level_name(value) for value in distinct)
        out = _of_kind(ColumnValues(recode(values, own, levels, name), levels), wanted, kind == ORDINAL)
    else:
        out = ColumnValues(recode(values, own, wanted.levels, name), wanted.levels, wanted.kind)
    if isinstance(out, Fault):
        raise_problems(value_problems(np.zeros((0, 1)), [name], {0: out}))
    assert isinstance(out, ColumnValues)
    return out


def numbers_of(values: np.ndarray, levels: Levels, name: str) -> np.ndarray:
    """Return a categorical column as numbers, which its levels have to be."""
    if not all(is_number(level) for level in levels):
        raise InputError(f"column '{printable(name)}' holds categories that are no numbers: it cannot be continuous")
    known = np.array([float(level) for level in levels])
    return np.where(np.isnan(values), np.nan, known[np.nan_to_num(values).astype(np.int64)])


def merged_levels(levels: Sequence[tuple[Levels, ...]], names: Sequence[str]) -> tuple[Levels, ...]:
    """Return the levels of several tables with the same columns taken together."""
    out = []
    for name, own in zip(names, zip(*levels)):
        if len({bool(one) for one in own}) > 1:
            raise InputError(
                f"column '{printable(name)}' is continuous in one table and categorical in another: say which "
                f'(kinds={{"{printable(name)}": "categorical"}})'
            )
        different = dict.fromkeys(level for one in own for level in one)
        out.append(own[0] if len(set(own)) == 1 else tuple(sorted(different, key=_numbers_first)))
    return tuple(out)
