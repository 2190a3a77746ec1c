"""Read tables from disk: CSV, TSV, Excel, Parquet, Feather; text may be gzip-compressed. Errors name file and line."""

from __future__ import annotations

import csv
import io
import os
import warnings
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from dagpost._util.files import TABLE_KINDS, existing_file
from dagpost.data.cleaning import are_row_names, as_cleaned, find_labels, with_warnings
from dagpost.data.conditions import split_conditions
from dagpost.data.dataset import Dataset
from dagpost.data.formats import (
    SEPARATOR_NAMES,
    WHITESPACE,
    TextFormat,
    decode_text,
    find_separator,
    has_decimal_commas,
    is_numeric_header,
    read_bytes,
    split_rows,
    with_points,
)
from dagpost.data.kinds import read_kinds
from dagpost.data.lags import in_slices
from dagpost.data.values import is_number
from dagpost.errors import InputError, TableWarning, printable

T = TypeVar("T")

LARGEST_BYTES = 2 * 2**30
"""Largest accepted size of a table after decompression; protects against decompression bombs."""

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
"""Usual separator by file extension."""


CURE_HEADER = (
    "add a row with names, or say whether it names the columns: --header if so, "
    "--no-header for x0, x1, … (header=True or False in Python)"
)

NUMERIC_HEADER = "the first row, whole numbers, taken as names of the columns (--no-header if it is data)"


class Table(NamedTuple):
    """A table file as it was read.

    Attributes
    ----------
    frame
        Columns that may be numbers or not.
    notes
        What was found out or left out, one line each.
    left_out
        Names of the columns that were left out.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def read_table(
    path: str | os.PathLike[str],
    largest_bytes: int = LARGEST_BYTES,
    *,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    drop: str | Sequence[str] | None = None,
    missing: str | None = None,
    kinds: Any = None,
    lags: int | None = None,
    series: str | None = None,
    conditions: str | None = None,
    missing_values: Any = None,
) -> Dataset:
    """Read a CSV, TSV, Excel, Parquet or Feather file with named columns.

    Separator, decimal sign and encoding are found out. A first column that counts the rows or holds sample names is
    left out, and so is one named "id" or "index" that counts the rows. `Dataset.notes` says what was done.

    Parameters
    ----------
    path
        Path of a .csv, .tsv, .txt, .xlsx (first sheet), .parquet or .feather file; text may be gzip-compressed (.gz).
    largest_bytes
        Largest accepted size after decompression; default 2 GiB.
    sep
        Separator of the columns: a character, "tab" or "whitespace".
    decimal
        Decimal sign, "." or ",".
    encoding
        Encoding of the text, such as "latin-1".
    header
        Whether the first row names the columns; False names them x0, x1, … By default it does, unless it holds numbers
        that may be data, which is an error.
    drop
        Columns to leave out: names, "constant" for columns with one value, "duplicate" for columns that repeat an
        earlier one, equal or up to scale and offset.
    missing
        "drop" to leave out rows with missing values, "keep" to keep them for a model that accepts them; by default
        they are an error.
    kinds
        "continuous" or "categorical" by name of column, or the levels of a categorical column in their order, such as
        `{"group": "categorical", "dose": ["low", "high"]}`; or the path of a TOML file with such lines. By default
        numbers are continuous, and words that are not measurements, dates or names of rows are categorical.
    lags
        1 if rows are in the order of time: each is joined with the one before it, whose columns are named `x[t-1]`.
    series
        With `lags`, name of the column that says which series a row belongs to; by default all rows are one series.
    conditions
        Name of the column that says which experiment a row comes from; empty, or "none", where nothing was done.
    missing_values
        Further numbers and texts that stand for missing cells, such as `[-999, "unknown"]`. By default empty cells do,
        "?", "NA", "None" and the like, and among numbers "-", "." and "missing"; `Dataset.column_lines` says so.

    Returns
    -------
    Dataset
        The table; `Dataset.column_lines` says what each column is taken as.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("dose;weight\\n1,5;2\\n3,5;5\\n")
    ...     file.flush()
    ...     data = read_table(file.name)
    >>> data
    Dataset(2 rows, 2 columns: dose, weight)
    >>> data.notes
    ('columns separated by semicolons', 'numbers with a decimal comma')
    """
    kinds = read_kinds(kinds) if isinstance(kinds, str | os.PathLike) else kinds
    text_format = TextFormat(sep=sep, decimal=decimal, encoding=encoding, header=header)
    own = [name for name in (series, conditions) if name is not None]
    own += map(str, kinds if isinstance(kinds, Mapping) else ())
    table = read_frame(path, text_format, largest_bytes, keep=own)

    def convert(rows: pd.DataFrame, how: str | None) -> Dataset:
        rows, of_rows = split_conditions(rows, conditions)
        return as_cleaned(rows, None, drop, how, table.notes, table.left_out, kinds, of_rows, missing_values)

    return with_warnings(with_file_name(path, lambda: in_slices(table.frame, lags, series, missing, convert)), own)


def with_file_name(path: str | os.PathLike[str], read: Callable[[], T]) -> T:
    """Return `read()`, with the file name prefixed to any InputError."""
    shown = printable(Path(path).name)
    try:
        return read()
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(shown) else f"{shown}: {message}") from None


def read_frame(
    path: str | os.PathLike[str],
    text_format: TextFormat | None = None,
    largest_bytes: int = LARGEST_BYTES,
    keep: Collection[str] = (),
) -> Table:
    """Return a table file as a frame, before checking that its columns are numbers.

    Parameters
    ----------
    path, largest_bytes
        As in `read_table`.
    text_format
        Format of a text table; by default all of it is found out.
    keep
        Names of columns that are never left out, such as the column of intervention targets.
    """
    text_format = text_format or TextFormat()
    file, shown = existing_file(path, "table", TABLE_KINDS)
    suffixes = [s.lower() for s in file.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if kind in (".parquet", ".feather"):
        table = Table(_read_arrow(file, kind, shown, largest_bytes))
    elif kind in (".xlsx", ".xlsm"):
        text, notes = _read_excel(file, shown, largest_bytes)
        table = _parse(text, "\t", replace(text_format, sep="\t"), shown)
        table = table._replace(notes=(*notes, *table.notes))
    elif kind in SEPARATORS:
        raw = read_bytes(file, shown, largest_bytes, "use Parquet")
        text, encoding = decode_text(raw, shown, "text table", text_format.encoding)
        table = _parse(text, SEPARATORS[kind], text_format, shown)
        if encoding != "utf-8" and text_format.encoding is None:
            table = table._replace(notes=(f"text in the encoding {encoding}, not UTF-8", *table.notes))
    else:
        raise InputError(f"{shown}: unknown kind of table {kind!r}: give a {TABLE_KINDS} file")
    return _without_labels(table, shown, keep)


def _without_labels(table: Table, shown: str, keep: Collection[str]) -> Table:
    """Return the table without columns that count the rows or name the samples; warn if there are any."""
    for note in (note for note in table.notes if note == NUMERIC_HEADER):
        warnings.warn(f"{shown}: {note}", TableWarning, stacklevel=4)
    return without_labels(table, f"{shown}: ", keep)


def without_labels(table: Table, shown: str = "", keep: Collection[str] = ()) -> Table:
    """Return a table, of a file or of the user's, without columns that label rows; warn if there are any.

    Parameters
    ----------
    table
        The table.
    shown
        What warnings begin with.
    keep
        Names of columns that are something else.
    """
    labels = find_labels(table.frame, keep)
    for note in labels.values():
        warnings.warn(f"{shown}{note}", TableWarning, stacklevel=5)
    kept = [j for j in range(table.frame.shape[1]) if j not in labels]
    left_out = tuple(str(table.frame.columns[j]) for j in labels)
    return Table(table.frame.iloc[:, kept], (*table.notes, *labels.values()), left_out)


def _parse(text: str, usual: str, text_format: TextFormat, shown: str) -> Table:
    """Return a text table as a frame, or raise an error that names the line.

    `usual` is the separator that is tried first and needs no note.
    """
    if text.count('"') % 2:
        raise InputError(f"{shown}: a quotation mark is never closed: the file is truncated or damaged")
    notes = []
    separator = text_format.sep or find_separator(text, usual)
    if text_format.sep is None and separator != usual:
        notes.append(f"columns separated by {SEPARATOR_NAMES[separator]}")
    if separator == WHITESPACE:
        text, separator = _with_tabs(text), "\t"
    has_header = text_format.header is not False
    names = next(csv.reader([text.split("\n", 1)[0]], delimiter=separator))
    if _check_row_lengths(text, separator, len(names), shown):
        names = ["", *names]
    if not has_header:
        names = [f"x{j}" for j in range(len(names))]
    body = text.partition("\n")[2] if has_header else text
    decimal = text_format.decimal or "."
    frame = _read_body(body, separator, len(names), decimal, shown)
    if text_format.decimal is None and has_decimal_commas(frame):
        frame = _read_body(body, separator, len(names), ",", shown)
        notes.append("numbers with a decimal comma")
        decimal = ","
    if decimal == ",":
        frame = with_points(frame)
    if text_format.header is None and all(is_number(name) for name in names):
        if not is_numeric_header(names, frame):
            raise InputError(f"{shown}: the first row holds numbers: {CURE_HEADER}")
        notes.append(NUMERIC_HEADER)
    frame.columns = names
    return Table(frame, tuple(notes))


def _with_tabs(text: str) -> str:
    """Return a table separated by white space as one separated by tabs."""
    out = io.StringIO()
    csv.writer(out, delimiter="\t", lineterminator="\n").writerows(split_rows(text, WHITESPACE))
    return out.getvalue()


def _check_row_lengths(text: str, separator: str, width: int, shown: str) -> bool:
    """Return whether every row has a name of its own before `width` values, as R writes them.

    Other rows of the wrong length are an error; pandas would fill short rows with missing values.
    """
    labels: list[str] = []
    rows, first = 0, None
    try:
        for number, row in enumerate(split_rows(text, separator), start=1):
            rows += bool(row)
            if row and len(row) < width:
                raise InputError(f"{shown}: line {number} has {len(row)} values instead of {width}: is it truncated?")
            if len(row) == width + 1:
                labels.append(row[0])
            if len(row) > width and first is None:
                first = (
                    f"{shown}: line {number} has {len(row)} values for {width} names: "
                    "a name is missing, or numbers are written with commas"
                )
    except csv.Error as error:
        raise InputError(f"{shown}: not a text table ({error})") from None
    if first is None:
        return False
    if len(labels) == rows - 1 and are_row_names(labels):
        return True
    raise InputError(first)


def _read_body(body: str, separator: str, width: int, decimal: str, shown: str) -> pd.DataFrame:
    """Return the rows below the header as a frame with columns 0, 1, …"""
    try:
        frame = pd.read_csv(
            io.StringIO(body), sep=separator, decimal=decimal, header=None, skip_blank_lines=True, index_col=False,
            names=list(range(width)), on_bad_lines="error", low_memory=False,
        )  # fmt: skip
    except pd.errors.ParserError as error:
        raise InputError(f"{shown}: {str(error).strip().removeprefix('Error tokenizing data. C error: ')}") from None
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame()
    if len(frame) == 0:
        raise InputError(f"{shown} has a header but no rows")
    return frame


def _read_arrow(file: Path, kind: str, shown: str, largest: int) -> pd.DataFrame:
    """Return a Parquet or Feather table as a frame; its size is checked before reading."""
    what = kind.removeprefix(".").capitalize()
    try:
        from pyarrow.ipc import open_file
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise InputError(f"{shown}: reading {what} files needs pyarrow: pip install pyarrow") from None
    try:
        if kind == ".parquet":
            shape = ParquetFile(file).metadata
            if 8 * shape.num_rows * shape.num_columns <= largest:
                return pd.read_parquet(file)
        else:
            with open_file(str(file)) as stream:
                rows = sum(stream.get_batch(k).num_rows for k in range(stream.num_record_batches))
                columns = len(stream.schema)
            if 8 * rows * columns <= largest:
                return pd.read_feather(file)
    except Exception as error:
        raise InputError(f"{shown}: not a readable {what} file ({type(error).__name__})") from None
    raise InputError(f"{shown}: more than {largest / 2**30:.3g} GiB of numbers: too large, drop columns or rows")


def _read_excel(file: Path, shown: str, largest: int) -> tuple[str, tuple[str, ...]]:
    """Return the first sheet of an Excel file as text separated by tabs, and a note if there are others."""
    try:
        import openpyxl  # noqa: F401
    except ImportError:
        raise InputError(f"{shown}: reading Excel files needs openpyxl: pip install openpyxl") from None
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > largest:
            raise InputError(f"{shown}: more than {largest / 2**30:.3g} GiB unpacked: too large, use Parquet")
        with pd.ExcelFile(file, engine="openpyxl") as book:
            sheets = [str(name) for name in book.sheet_names]
            cells = pd.read_excel(book, header=None, dtype=object, keep_default_na=False, na_values=[""])
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{shown}: not a readable Excel file ({type(error).__name__})") from None
    cells = cells.dropna(how="all").dropna(how="all", axis=1)
    if cells.empty:
        raise InputError(f"{shown}: the first sheet, '{printable(sheets[0])}', is empty")
    note = f"read the first of {len(sheets)} sheets, '{printable(sheets[0])}'"
    return cells.to_csv(sep="\t", header=False, index=False), (note,) if len(sheets) > 1 else ()
