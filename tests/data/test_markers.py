"""Marks of missing cells, and hints about what columns look like."""

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import as_dataset
from dagpost.errors import InputError, TableWarning

RNG = np.random.default_rng(0)
PLAIN = pd.DataFrame(RNG.normal(size=(30, 2)).round(3), columns=["a", "b"])
WORDS = [["no", "yes"][k] for k in RNG.integers(0, 2, 30)]


def marked(column, rows, text):
    out = [str(cell) for cell in column]
    for row in rows:
        out[row] = text
    return out


def both(tmp_path, frame, **options):
    """The table in memory and the same as a file, which must be equal."""
    frame.to_csv(tmp_path / "t.csv", index=False)
    one, two = as_dataset(frame, missing="keep", **options), as_dataset(tmp_path / "t.csv", missing="keep", **options)
    assert one.fingerprint == two.fingerprint and one.kinds == two.kinds
    return one, two


@pytest.mark.parametrize("text", ["?", "-", "--", ".", "None", "none", "null", "missing", "n/a", " ? "])
def test_marks_among_numbers(tmp_path, text):
    data, _ = both(tmp_path, PLAIN.assign(a=marked(PLAIN.a, [1, 4, 9], text)))
    assert np.flatnonzero(data.is_missing[:, 0]).tolist() == [1, 4, 9] and not data.is_missing[:, 1].any()
    np.testing.assert_array_equal(np.delete(data.values[:, 0], [1, 4, 9]), PLAIN.a.drop([1, 4, 9]))
    assert data.column_lines()[0].endswith(f"3 missing, written '{text.strip()}'")


@pytest.mark.parametrize("text", ["?", "None", "n/a", "null"])
def test_marks_among_categories(tmp_path, text):
    data, _ = both(tmp_path, PLAIN.assign(a=marked(WORDS, [0, 5], text)))
    assert data.levels[0] == ("no", "yes") and data.is_missing[:, 0].sum() == 2


@pytest.mark.parametrize("text", ["-", "none", "missing", "."])
def test_what_may_be_a_category_stays_one(tmp_path, text):
    data, _ = both(tmp_path, PLAIN.assign(a=marked(WORDS, [0, 5], text)))
    assert set(data.levels[0]) == {"no", "yes", text} and not data.is_missing.any()


def test_marks_that_users_name(tmp_path):
    frame = PLAIN.assign(a=PLAIN.a.where(PLAIN.index > 2, -999), c=marked(WORDS, [7], "unknown"))
    data, from_file = both(tmp_path, frame, missing_values=[-999, "unknown"])
    assert np.flatnonzero(data.is_missing[:, 0]).tolist() == [0, 1, 2] and data.levels[2] == ("no", "yes")
    assert [line.rpartition(", written ")[2] for line in from_file.column_lines()[::2]] == ["'-999'", "'unknown'"]
    assert dp.read_table(tmp_path / "t.csv", missing_values=["-999", "unknown"], missing="drop").observations == 26
    with pytest.raises(InputError, match="column 'a' has 3 missing values"):
        dp.exact(frame[["a", "b"]], missing_values=-999)
    with pytest.raises(InputError, match="missing_values=True: give numbers and texts"):
        as_dataset(frame, missing_values=True)
    with pytest.raises(InputError, match=r"missing_values is for tables: give it to `dagpost\.read_table`"):
        as_dataset(dp.Dataset(PLAIN), missing_values=["?"])


def test_levels_that_users_name_are_no_marks():
    frame = PLAIN.assign(a=marked(WORDS, [0, 5], "?"))
    assert as_dataset(frame, kinds={"a": ["no", "yes", "?"]}).levels[0] == ("no", "yes", "?")


def test_marks_beside_decimal_commas_and_empty_cells(tmp_path):
    cells = [f"{x:.2f}".replace(".", ",") for x in PLAIN.a]
    cells[3], cells[4] = "?", ""
    text = "a;b\n" + "\n".join(f"{cell};{k},5" for k, cell in enumerate(cells))
    (tmp_path / "t.csv").write_text(text)
    for options in ({}, {"decimal": ","}):
        data = dp.read_table(tmp_path / "t.csv", missing="keep", **options)
        np.testing.assert_allclose(np.delete(data.values[:, 0], [3, 4]), PLAIN.a.drop([3, 4]), atol=0.005001)
        assert data.column_lines()[0].endswith("2 missing, written '?' or empty or NA")


def test_marks_travel_with_their_columns():
    data = as_dataset(PLAIN.assign(a=marked(PLAIN.a, [1], "?")), missing="keep", lags=1)
    assert [line.endswith("written '?'") for line in data.column_lines()] == [True, False, True, False]
    assert dp.Dataset(PLAIN.assign(a=marked(PLAIN.a, [1], "?")), missing="keep").is_missing.sum() == 1


def test_hints():
    frame = pd.DataFrame(
        {
            "x": RNG.normal(size=40),
            "patient_id": RNG.permutation(40) + 100,
            "score": RNG.integers(1, 6, 40),
            "lab": np.where(np.arange(40) < 5, -999, RNG.normal(size=40)),
            "age": np.where(np.arange(40) < 3, -9, RNG.integers(20, 90, 40)),
            "acid": RNG.permutation(40),
        }
    )
    with pytest.warns(TableWarning) as caught:
        lines = as_dataset(frame).column_lines()
    assert [str(one.message).split("'")[1] for one in caught] == ["patient_id", "lab", "age"]
    assert [";" in line for line in lines] == [False, True, True, True, True, False]
    assert "looks like names of rows: leave it out (--drop patient_id, " in lines[1]
    assert "--kinds score=ordinal, kinds={'score': 'ordinal'}" in lines[2]
    assert "-999 in 5 rows lies far outside the rest" in lines[3] and "missing_values=[-9]" in lines[4]
    said = dict.fromkeys(["patient_id", "lab", "age"], "continuous")
    assert ";" not in as_dataset(frame, kinds={"score": "ordinal", **said}).column_lines()[2]


# ---- columns that label rows: one rule for frames and files


@pytest.mark.parametrize("first", [{"id": range(30)}, {"Unnamed: 0": range(30)}, {"index": range(1, 31)}])
def test_frames_lose_labels_of_rows_as_files_do(tmp_path, first):
    frame = pd.concat([pd.DataFrame(first), PLAIN], axis=1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(TableWarning, match="left out the first column.*only counts the rows"):
        one = as_dataset(frame)
    with pytest.warns(TableWarning):
        two = as_dataset(tmp_path / "t.csv")
    assert one.names == ("a", "b") and (one.notes, one.fingerprint) == (two.notes, two.fingerprint)
    name = next(iter(first))
    assert (
        as_dataset(frame, keep=[name]).names == as_dataset(frame, kinds={name: "continuous"}).names == (name, "a", "b")
    )
    assert as_dataset(frame, names=["n", "a", "b"]).names == ("n", "a", "b")
    mask = np.zeros((30, 3), dtype=bool)
    mask[0, 2] = True
    for marks in (mask, pd.DataFrame(mask, columns=frame.columns)):
        with pytest.warns(TableWarning):
            assert as_dataset(frame, interventions=marks).intervened.sum(axis=0).tolist() == [0, 1]


def test_a_first_column_of_dates(tmp_path):
    dates = pd.date_range("2020-01-01", periods=30)
    for column in (dates, dates.astype(str)):
        with pytest.warns(TableWarning, match="'when', dates taken as names of the rows: if .* lags=1 "):
            assert as_dataset(PLAIN.assign(when=column)[["when", "a", "b"]]).names == ("a", "b")
    with pytest.raises(InputError, match="column 'when' holds dates"):
        as_dataset(PLAIN.assign(when=dates))
