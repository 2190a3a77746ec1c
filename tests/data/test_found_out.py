"""What reading finds out by itself: encoding, separator, decimal sign, header, row labels. All of it is noted."""

import sys

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import as_dataset
from dagpost.errors import DataWarning, InputError, TableWarning

VALUES = np.random.default_rng(0).normal(size=(30, 3))
NAMES = ["Größe", "b", "c d"]
FRAME = pd.DataFrame(VALUES, columns=NAMES)


def write(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


FORMATS = {
    "plain": ({}, ()),
    "semicolons": ({"sep": ";"}, ("columns separated by semicolons",)),
    "tabs": ({"sep": "\t"}, ("columns separated by tabs",)),
    "bars": ({"sep": "|"}, ("columns separated by bars",)),
    "spaces": ({"sep": " "}, ("columns separated by spaces",)),
    "European": ({"sep": ";", "decimal": ","}, ("columns separated by semicolons", "numbers with a decimal comma")),
    "quoted decimals": ({"decimal": ","}, ("numbers with a decimal comma",)),
    "byte order mark": ({"encoding": "utf-8-sig"}, ()),
    "UTF-16": ({"encoding": "utf-16"}, ("text in the encoding utf-16, not UTF-8",)),
    "UTF-16 without a mark": ({"encoding": "utf-16-be"}, ("text in the encoding utf-16-be, not UTF-8",)),
    "Latin-1": ({"encoding": "latin-1"}, ("text in the encoding cp1252, not UTF-8",)),
}


@pytest.mark.parametrize("case", FORMATS)
def test_formats(tmp_path, case):
    options, notes = FORMATS[case]
    text = FRAME.to_csv(index=False, **{k: v for k, v in options.items() if k != "encoding"})
    path = write(tmp_path, text.encode(options.get("encoding", "utf-8")))
    data = dp.read_table(path)
    assert data.names == tuple(NAMES) and data.notes == notes
    np.testing.assert_array_equal(data.values, VALUES)
    given = dp.read_table(path, **options)
    assert given.notes == () and given.fingerprint == data.fingerprint == dp.Dataset(FRAME).fingerprint


@pytest.mark.parametrize("name, word", [("t.tsv", "tab"), ("t.txt", "\\t"), ("t.csv", ","), ("t.csv", "comma")])
def test_words_for_separators_and_the_usual_ones(tmp_path, name, word):
    sep = "," if name == "t.csv" else "\t"
    path = write(tmp_path, FRAME.to_csv(index=False, sep=sep), name)
    assert dp.read_table(path).notes == dp.read_table(path, sep=word).notes == ()


def test_aligned_columns(tmp_path):
    text = "  a      b\n  1.5    2\n 10.25  -3\n"
    np.testing.assert_array_equal(dp.read_table(write(tmp_path, text, "t.txt")).values, [[1.5, 2], [10.25, -3]])


@pytest.mark.parametrize(
    "text, values",
    [
        ("a;b\n1,5;2\n2;3,25\n", [[1.5, 2], [2, 3.25]]),
        ("a;b\n0,125;2\n1,250;3\n", [[0.125, 2], [1.25, 3]]),
        ("a;b\n1,5e3;2\n-2,5E-1;3\n", [[1500, 2], [-0.25, 3]]),
        ("a;b\n,5;2\n1;3\n", [[0.5, 2], [1, 3]]),
    ],
)
def test_decimal_commas(tmp_path, text, values):
    np.testing.assert_array_equal(dp.read_table(write(tmp_path, text)).values, values)


def test_three_digits_after_every_comma_may_be_thousands(tmp_path):
    path = write(tmp_path, "a;b\n1,500;2\n2,250;3\n")
    with pytest.raises(InputError, match="decimal comma: use --decimal ,"):
        dp.read_table(path)
    np.testing.assert_array_equal(dp.read_table(path, decimal=",").values, [[1.5, 2], [2.25, 3]])


LABELS = {
    "unnamed": ({"": range(30)}, "left out the first column, which only counts the rows"),
    "unnamed, filtered": ({"": range(0, 90, 3)}, "left out the first column, whole numbers without a name"),
    "ID": ({"ID": range(1, 31)}, "left out the first column 'ID', which only counts the rows; rename it to keep it"),
    "sample": (
        {"sample": [f"S{i}" for i in range(30)]},
        "left out the first column 'sample', which names the rows (a different text in each)",
    ),
}


@pytest.mark.parametrize("case", LABELS)
@pytest.mark.parametrize("kind", ["csv", "xlsx"])
def test_row_labels_are_left_out(tmp_path, case, kind):
    column, note = LABELS[case]
    frame = pd.concat([pd.DataFrame(column), FRAME], axis=1)
    path = tmp_path / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_excel(path, index=False)
    with pytest.warns(TableWarning) as caught:
        data = dp.read_table(path)
    assert [str(w.message) for w in caught] == [f"t.{kind}: {note}"]
    assert data.names == tuple(NAMES) and data.notes == (note,)
    with pytest.warns(TableWarning):
        assert dp.read_table(path, drop=next(iter(column))).names == tuple(NAMES)


@pytest.mark.filterwarnings("ignore::dagpost.errors.TableWarning")
def test_labels_elsewhere(tmp_path):
    FRAME.assign(id=range(30)).to_csv(tmp_path / "t.csv", index=False)
    assert dp.read_table(tmp_path / "t.csv").names == tuple(NAMES)
    for other in (range(5, 35), VALUES[:, 0] * 2 + VALUES[:, 1]):
        FRAME.assign(id=other).to_csv(tmp_path / "t.csv", index=False)
        assert dp.read_table(tmp_path / "t.csv").names == (*NAMES, "id")


@pytest.mark.parametrize(
    "first",
    [
        [f"{x}" for x in VALUES[:29, 0]] + ["three"],
        ["<0.1"] + [f"<0.{i}" for i in range(2, 31)],
        [f"{i} mg" for i in range(1, 31)],
        [f"{i}.000,5" for i in range(1, 31)],
    ],
)
def test_texts_that_are_no_row_names_are_refused(tmp_path, first):
    pd.concat([pd.DataFrame({"first": first}), FRAME], axis=1).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(InputError, match=r"column 'first', row .* holds '(three|<0.1|1 mg|1.000,5)', not a number"):
        dp.read_table(tmp_path / "t.csv")


@pytest.mark.filterwarnings("ignore::dagpost.errors.TableWarning")
@pytest.mark.parametrize("labels", [["s 1", "s 2", "s 3"], ["1", "2", "3"]])
def test_row_names_without_a_header_as_r_writes_them(tmp_path, labels):
    text = '"a" "b"\n' + "".join(f'"{label}" {i}.5 {2 * i}\n' for i, label in enumerate(labels))
    data = dp.read_table(write(tmp_path, text, "t.txt"))
    np.testing.assert_array_equal(data.values, [[0.5, 0], [1.5, 2], [2.5, 4]])
    assert data.names == ("a", "b")


@pytest.mark.parametrize("header", [["0", "1", "2"], ["1", "2", "3"], ["2019", "2020", "2021"], ["7157", "672", "675"]])
def test_whole_numbers_above_measurements_are_names(tmp_path, header):
    FRAME.set_axis(header, axis=1).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(TableWarning, match="taken as names of the columns"):
        data = dp.read_table(tmp_path / "t.csv")
    assert data.names == tuple(header) and data.observations == 30
    assert dp.read_table(tmp_path / "t.csv", header=True).notes == ()
    rows = dp.read_table(tmp_path / "t.csv", header=False)
    assert rows.names == ("x0", "x1", "x2") and rows.observations == 31


@pytest.mark.parametrize(
    "first, body",
    [
        (["0.5", "1", "2"], VALUES),  # a fraction
        (["1", "1", "2"], VALUES),  # twice the same
        (["0", "1", "2"], np.arange(90).reshape(30, 3)),  # whole numbers below
        (["2019", "2020", "2021"], np.arange(90).reshape(30, 3)),
        (["0", "2", "1"], VALUES * 3),  # within the range of the columns
        (["0", "1", "2"], VALUES[:3]),  # too few rows to tell
    ],
)
def test_other_rows_of_numbers_are_refused(tmp_path, first, body):
    pd.DataFrame(body, columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False, header=False)
    path = write(tmp_path, ",".join(first) + "\n" + (tmp_path / "t.csv").read_text())
    with pytest.raises(InputError, match="the first row holds numbers: add a row with names, or say"):
        dp.read_table(path)
    assert dp.read_table(path, header=False).observations == len(body) + 1


def test_rows_without_a_header_have_one_length(tmp_path):
    with pytest.raises(InputError, match="line 2 has 1 values instead of 2"):
        dp.read_table(write(tmp_path, "1,2\n3\n"), header=False)


def test_excel(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        FRAME.to_excel(book, sheet_name="cells", index=False)
        FRAME.to_excel(book, sheet_name="other", index=False)
    data = dp.read_table(tmp_path / "t.xlsx")
    assert data.names == tuple(NAMES) and data.notes == ("read the first of 2 sheets, 'cells'",)
    np.testing.assert_allclose(data.values, VALUES, rtol=1e-14)  # the file holds 16 digits
    with pytest.raises(InputError, match=r"t\.xlsx: more than .* too large"):
        dp.read_table(tmp_path / "t.xlsx", 1000)


def test_bad_excel_files(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"t\.xlsx: not a readable Excel file"):
        dp.read_table(write(tmp_path, b"PK\x03\x04 no", "t.xlsx"))
    pd.DataFrame().to_excel(tmp_path / "empty.xlsx")
    with pytest.raises(InputError, match="the first sheet, 'Sheet1', is empty"):
        dp.read_table(tmp_path / "empty.xlsx")
    FRAME.assign(b=["x", *FRAME.b[1:]]).to_excel(tmp_path / "text.xlsx", index=False)
    with pytest.raises(InputError, match=r"text\.xlsx: column 'b', row 1 holds 'x'"):
        dp.read_table(tmp_path / "text.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(InputError, match=r"text\.xlsx: reading Excel files needs openpyxl: pip install openpyxl"):
        dp.read_table(tmp_path / "text.xlsx")


def test_notes_travel_and_do_not_count(tmp_path):
    path = write(tmp_path, FRAME.to_csv(index=False, sep=";"))
    data = dp.read_table(path)
    assert data.standardised().rows(slice(5)).columns(["b"]).notes == data.notes == ("columns separated by semicolons",)
    post = dp.fit(path, "bge", method="exact")
    assert post.record.assumptions == {"table": "columns separated by semicolons"}
    plain = dp.fit(FRAME, "bge", method="exact")
    assert plain.record.assumptions == {} and plain.info["data_hash"] == post.info["data_hash"]


def test_format_options_are_for_files():
    with pytest.raises(InputError, match="sep is an option for files"):
        as_dataset(FRAME, sep=";")


def test_half_of_the_rows_lacking(tmp_path):
    holes = FRAME.assign(b=FRAME.b.where(FRAME.index < 12))
    with pytest.warns(DataWarning, match="18 of 30 rows are dropped .* column 'b' alone lacks 18 values"):
        assert as_dataset(holes, missing="drop").observations == 12
    with pytest.raises(InputError, match="missing=\"drop\" leaves 1 of 30 rows: column 'b' alone lacks 29 values"):
        as_dataset(FRAME.assign(b=FRAME.b.where(FRAME.index < 1)), missing="drop")
