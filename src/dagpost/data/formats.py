"""Formats of text tables: find out encoding, separator, decimal sign and header, and say what was found.

Plain UTF-8 with decimal points and the separator of the file extension needs no words; anything else is a note.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pandas as pd

from dagpost.data.markers import MARKERS, MARKERS_OF_NUMBERS
from dagpost.data.values import has_decimal_comma, is_number
from dagpost.errors import InputError

WHITESPACE = " "
"""Separator that stands for any run of spaces and tabs."""

SEPARATOR_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars", WHITESPACE: "spaces"}
"""Separators that are tried, in this order."""

SEPARATOR_WORDS = {
    "comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "bar": "|", "pipe": "|", "space": WHITESPACE,
    "whitespace": WHITESPACE,
}  # fmt: skip
"""Words for separators, which are easier to type in a shell."""

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
"""Byte order marks of UTF-16."""

MARKS = (*MARKERS, *MARKERS_OF_NUMBERS)
"""Texts beside numbers that stand for missing cells."""

SAMPLE_LINES = 100
"""Number of lines that the choice of the separator is based on."""

ROUNDED_BY_CHANCE = 1e-4
"""A first row of whole numbers is a header if the rows below make such a row less probable than this."""


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """Format of a text table; None for what is to be found out.

    Attributes
    ----------
    sep
        Separator: a character, or one of `SEPARATOR_WORDS`.
    decimal
        Decimal sign, "." or ",".
    encoding
        Name of the encoding, such as "latin-1".
    header
        Whether the first row names the columns.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None
    header: bool | None = None

    def __post_init__(self):
        if self.sep is not None:
            sep = SEPARATOR_WORDS.get(self.sep, self.sep)
            if not isinstance(sep, str) or len(sep) != 1 or sep in '"\n\r':
                raise InputError(f"sep={self.sep!r}: give one character, or one of {', '.join(SEPARATOR_WORDS)}")
            object.__setattr__(self, "sep", sep)
        if self.decimal not in (None, ".", ","):
            raise InputError(f"decimal={self.decimal!r}: give '.' or ','")
        if self.encoding is not None:
            try:
                "a".encode(self.encoding)
            except (LookupError, TypeError, ValueError):
                raise InputError(f"encoding={self.encoding!r}: unknown: try utf-8, utf-16, cp1252 or latin-1") from None

    @property
    def given(self) -> list[str]:
        """Names of the settings that are not None."""
        return [name for name, value in vars(self).items() if value is not None]


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


def decode_text(raw: bytes, shown: str, what: str, encoding: str | None = "utf-8") -> tuple[str, str]:
    """Return bytes as text with normalised line ends, and their encoding.

    Parameters
    ----------
    raw
        Content of a file.
    shown, what
        Printable name of the file, and the expected kind of file, for errors.
    encoding
        Name of the encoding; None to find it out: UTF-8, UTF-16 or, for anything else, Windows-1252 or Latin-1.
    """
    found = encoding or _find_encoding(raw, shown, what)
    utf8 = codecs.lookup(found).name in ("utf-8", "utf-8-sig")
    if utf8 and raw.startswith(UTF16_MARKS):
        raise InputError(f"{shown} is UTF-16 text: save it as UTF-8")
    if b"\x00" in raw and utf8:
        line = raw[: raw.index(b"\x00")].count(b"\n") + 1
        raise InputError(f"{shown}: NUL byte in line {line}: the file is damaged or not a {what}")
    try:
        text = raw.decode("utf-8-sig" if utf8 else found)
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        hint = " (Latin-1, perhaps)" if utf8 else ""
        raise InputError(f"{shown}: line {line} is not {found.upper()}{hint}: save the file as UTF-8") from None
    text = text.removeprefix("\ufeff")
    if not text.strip():
        raise InputError(f"{shown} is empty")
    return text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\n"), "utf-8" if utf8 else found


def _find_encoding(raw: bytes, shown: str, what: str) -> str:
    """Return the encoding of a text: by its byte order mark, its NUL bytes, or because it can be decoded."""
    if raw.startswith(UTF16_MARKS):
        return "utf-16"
    start = raw[:2000]
    if start.count(b"\x00") * 4 > len(start):
        return "utf-16-le" if start[1::2].count(b"\x00") > start[::2].count(b"\x00") else "utf-16-be"
    try:
        raw.decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    control = re.search(rb"[\x00-\x08\x0e-\x1f\x7f]", raw)
    if control is not None:
        line = raw[: control.start()].count(b"\n") + 1
        kind = "NUL byte" if control[0] == b"\x00" else f"control character U+{control[0][0]:04X}"
        raise InputError(f"{shown}: {kind} in line {line}: the file is damaged or not a {what}")
    try:
        raw.decode("cp1252")
        return "cp1252"
    except UnicodeDecodeError:
        return "latin-1"


def split_rows(text: str, separator: str) -> Iterator[list[str]]:
    """Return an iterator over the cells of each line."""
    if separator != WHITESPACE:
        return csv.reader(io.StringIO(text), delimiter=separator)
    lines = (line.replace("\t", " ").strip() for line in text.split("\n"))
    return csv.reader(lines, delimiter=" ", skipinitialspace=True)


def find_separator(text: str, usual: str) -> str:
    """Return the separator of a table.

    The usual one holds wherever it cuts all of the first lines into the same number of cells, two at least; then the
    others are tried in the same way. A table in which none does gets the one that fits most lines.
    """
    sample = "".join(islice((line for line in io.StringIO(text) if line.strip()), SAMPLE_LINES))
    fits = {sep: _fit(sample, sep) for sep in dict.fromkeys([usual, *SEPARATOR_NAMES])}
    whole = [sep for sep, share in fits.items() if share == 1]
    if whole:
        return whole[0]
    if _width(sample, usual) > 1:
        return usual
    best = max(fits, key=lambda sep: fits[sep])
    return best if fits[best] >= 0.5 else usual


def _fit(sample: str, separator: str) -> float:
    """Return the share of rows with as many cells as the header, or all with one more (row names); 0 for one cell."""
    try:
        width, *widths = [len(row) for row in split_rows(sample, separator) if row]
    except (csv.Error, ValueError):
        return 0.0
    if width < 2:
        return 0.0
    return 1.0 if set(widths) <= {width + 1} else sum(w == width for w in widths) / len(widths)


def _width(sample: str, separator: str) -> int:
    """Return the number of cells in the first line."""
    return len(next(split_rows(sample.split("\n", 1)[0], separator), []))


def has_decimal_commas(frame: pd.DataFrame) -> bool:
    """Return whether the table writes all of its fractions with a comma.

    Columns of text are looked at that hold nothing but whole numbers and numbers with a comma. A table with decimal
    points beside them is mixed, and one in which every comma is followed by three digits may mean thousands: both are
    left to the user.
    """
    cells: list[str] = []
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j].dropna()
        if pd.api.types.is_float_dtype(column.dtype) and (column % 1 != 0).any():
            return False
        if pd.api.types.is_numeric_dtype(column.dtype) or not len(column):
            continue
        texts = [text for text in (str(cell).strip() for cell in column) if text not in MARKS]
        with_comma = [text for text in texts if has_decimal_comma(text)]
        if with_comma and all("." not in text and is_number(text.replace(",", ".", 1)) for text in texts):
            cells += with_comma
    return any(re.fullmatch(r"[+-]?[1-9]\d{0,2},\d{3}", text) is None for text in cells)


def with_points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with points for decimal commas in columns of texts, which hold marks of missing cells besides."""
    out = frame.copy(deep=False)
    for j in range(frame.shape[1]):
        if not pd.api.types.is_numeric_dtype(frame.iloc[:, j].dtype):
            cells = [
                cell.replace(",", ".", 1) if isinstance(cell, str) and has_decimal_comma(cell) else cell
                for cell in frame.iloc[:, j]
            ]
            texts = [cell.strip() for cell in cells if isinstance(cell, str)]
            if texts and all(is_number(text) or text in MARKS for text in texts):
                out[out.columns[j]] = cells
    return out


def is_numeric_header(header: Sequence[str], body: pd.DataFrame) -> bool:
    """Return whether a first row of numbers names the columns, judged by the rows below it.

    Names are different whole numbers above a body that is not whole: years or gene identifiers above measurements.
    With `k` whole numbers among the `n` cells of a column, a row of data has one there with probability about
    `(k + 1) / (n + 2)`; the product over the columns must be tiny. Besides, they count the columns, or half of them
    lie outside the range of their column. A table of whole numbers is left to the user.
    """
    cells = [cell.strip() for cell in header]
    if len(set(cells)) < len(cells) or not all(re.fullmatch(r"\d{1,15}", cell) for cell in cells):
        return False
    names = [int(cell) for cell in cells]
    probability, outside = 1.0, 0
    for j, name in enumerate(names):
        column = body.iloc[:, j].dropna()
        numbers: pd.Series = pd.to_numeric(column, errors="coerce").dropna()  # type: ignore[assignment]
        probability *= (int((numbers % 1 == 0).sum()) + 1) / (len(column) + 2)
        outside += len(numbers) == 0 or not numbers.min() <= name <= numbers.max()
    counts = names in (list(range(len(names))), list(range(1, len(names) + 1)))
    return probability < ROUNDED_BY_CHANCE and (counts or 2 * outside >= len(names))
