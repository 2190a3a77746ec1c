"""Read tables from disk: CSV, TSV and Parquet; text may be gzip-compressed. Errors name the file and the line."""

from __future__ import annotations

import csv
import gzip
import io
import os
import warnings
import zlib
from pathlib import Path

import numpy as np
import pandas as pd

from dagpost._util.files import existing_file
from dagpost.data.dataset import Dataset, is_number
from dagpost.errors import DataWarning, InputError, printable


def read_bytes(file: Path, shown: str, largest: int, cure: str) -> bytes:
    """Return the content of a file, decompressed if its name ends in .gz; more than `largest` bytes are an error.

    `shown` is the printable name of the file and `cure` the advice for a file that is too large.
    """
    try:
        if file.suffix.lower() == ".gz":
            with gzip.open(file) as stream:
                raw = stream.read(largest + 1)
        else:
            with open(file, "rb") as stream:
                raw = stream.read(largest + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{shown}: cannot be read ({error})") from None
    if len(raw) > largest:
        raise InputError(f"{shown}: more than {largest / 2**30:.3g} GiB of text: too large, {cure}")
    return raw


def decode_text(raw: bytes, shown: str, what: str) -> str:
    """Return UTF-8 bytes as text with normalised line ends; `what` names the expected kind of file in errors."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{shown} is UTF-16 text: save it as UTF-8")
    if raw[:2000].count(b"\x00") * 4 > len(raw[:2000]):
        raise InputError(f"{shown} is UTF-16 text: save it as UTF-8")
    if b"\x00" in raw:
        line = raw[: raw.index(b"\x00")].count(b"\n") + 1
        raise InputError(f"{shown}: NUL byte in line {line}: the file is damaged or not a {what}")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{shown}: line {line} is not UTF-8 (Latin-1, perhaps): save the file as UTF-8") from None
    if not text.strip():
        raise InputError(f"{shown} is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n")


LARGEST_BYTES = 2 * 2**30
"""Largest accepted size of a table after decompression; protects against decompression bombs."""

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
"""Separator by file extension."""


def read_table(path: str | os.PathLike[str], largest_bytes: int = LARGEST_BYTES) -> Dataset:
    """Read a CSV, TSV or Parquet file whose first row names the columns.

    Parameters
    ----------
    path
        Path of a .csv, .tsv, .txt (tabs) or .parquet file; text may be gzip-compressed (.gz).
    largest_bytes
        Largest accepted size after decompression; default 2 GiB.

    Returns
    -------
    Dataset
        The table, with every column numeric.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     _ = file.write("dose,weight\\n1,2\\n3,5\\n")
    ...     file.flush()
    ...     read_table(file.name)
    Dataset(2 rows, 2 columns: dose, weight)
    """
    frame = read_frame(path, largest_bytes)
    return _with_file_name(printable(Path(path).name), lambda: Dataset(frame))


def read_frame(path: str | os.PathLike[str], largest_bytes: int = LARGEST_BYTES) -> pd.DataFrame:
    """Return a table file as a frame, before checking that its columns are numbers."""
    file, shown = existing_file(path, "table", ".csv, .tsv or .parquet")
    suffixes = [s.lower() for s in file.suffixes]
    kind = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if kind == ".parquet":
        return _drop_index(_read_parquet(file, shown, largest_bytes), shown)
    if kind not in SEPARATORS:
        raise InputError(f"{shown}: unknown kind of table {kind!r}: give a .csv, .tsv or .parquet file")
    text = decode_text(read_bytes(file, shown, largest_bytes, "use Parquet"), shown, "text table")
    return _drop_index(_parse(text, SEPARATORS[kind], shown), shown)


def _with_file_name(shown: str, read) -> Dataset:
    """Return `read()`, with the file name prefixed to any InputError."""
    try:
        return read()
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(shown) else f"{shown}: {message}") from None


def _parse(text: str, separator: str, shown: str) -> pd.DataFrame:
    """Return a text table as a frame, or raise an error that names the line."""
    if text.count('"') % 2:
        raise InputError(f"{shown}: a quotation mark is never closed: the file is truncated or damaged")
    header = _header(text, separator, shown)
    _check_row_lengths(text, separator, len(header), shown)
    try:
        frame = pd.read_csv(
            io.StringIO(text), sep=separator, header=None, skiprows=1, skip_blank_lines=True, index_col=False,
            names=list(range(len(header))), on_bad_lines="error", low_memory=False,
        )  # fmt: skip
    except pd.errors.ParserError as error:
        raise InputError(f"{shown}: {str(error).strip().removeprefix('Error tokenizing data. C error: ')}") from None
    except pd.errors.EmptyDataError:
        frame = pd.DataFrame(columns=list(range(len(header))))
    if len(frame) == 0:
        raise InputError(f"{shown} has a header but no rows")
    frame.columns = header
    return frame


def _header(text: str, separator: str, shown: str) -> list[str]:
    """Return the column names in the first line, or raise an error if it does not look like a header."""
    line = text.split("\n", 1)[0]
    header = next(csv.reader([line], delimiter=separator))
    others = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", " ": "spaces"}
    if len(header) == 1:
        other = next((s for s in others if s != separator and s in line), None)
        if other is not None:
            raise InputError(
                f"{shown}: columns seem to be separated by {others[other]}, not {others[separator]}: "
                "save it with the separator of its extension (.csv commas, .tsv tabs)"
            )
    if header and all(is_number(cell) for cell in header):
        raise InputError(f"{shown}: the first row holds numbers: add a row with the names of the columns")
    return header


def _check_row_lengths(text: str, separator: str, width: int, shown: str) -> None:
    """Raise an error for rows of the wrong length; pandas would fill short rows with missing values."""
    try:
        for number, row in enumerate(csv.reader(io.StringIO(text), delimiter=separator), start=1):
            if row and len(row) < width:
                raise InputError(f"{shown}: line {number} has {len(row)} values instead of {width}: is it truncated?")
            if len(row) > width:
                raise InputError(
                    f"{shown}: line {number} has {len(row)} values for {width} names: "
                    "a name is missing, or numbers are written with commas"
                )
    except csv.Error as error:
        raise InputError(f"{shown}: not a text table ({error})") from None


def _read_parquet(file: Path, shown: str, largest: int) -> pd.DataFrame:
    """Return a Parquet table as a frame; its size is checked before reading."""
    from pyarrow.parquet import ParquetFile

    try:
        shape = ParquetFile(file).metadata
        if 8 * shape.num_rows * shape.num_columns <= largest:
            return pd.read_parquet(file)
    except Exception as error:
        raise InputError(f"{shown}: not a readable Parquet file ({type(error).__name__})") from None
    raise InputError(f"{shown}: more than {largest / 2**30:.3g} GiB of numbers: too large, drop columns or rows")


def _drop_index(frame: pd.DataFrame, shown: str) -> pd.DataFrame:
    """Return the frame without an unnamed first column that only counts the rows; warn if one was dropped."""
    first = str(frame.columns[0]).strip().lower() if frame.shape[1] > 1 else None
    if first is None or not (first in ("", "index", "id", "row") or first.startswith("unnamed:")):
        return frame
    column = np.asarray(pd.to_numeric(frame.iloc[:, 0], errors="coerce"), dtype=float)
    if np.array_equal(column, np.arange(len(frame)) + column[0]):
        warnings.warn(
            f"{shown}: left out the first column, which only counts the rows",
            DataWarning,
            stacklevel=4,
        )
        return frame.iloc[:, 1:]
    return frame
