"""Columns and rows that are dropped on request, and interventions beside them."""

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import as_dataset
from dagpost.errors import InputError

VALUES = np.random.default_rng(0).normal(size=(12, 3))
FRAME = pd.DataFrame(VALUES, columns=["a", "b", "c"])


def test_named_columns():
    data = as_dataset(FRAME.assign(text="x"), drop=["text", "b"])
    assert data.names == ("a", "c") and data.notes == ("dropped columns 'b', 'text', as asked",)
    assert as_dataset(VALUES, drop="x1").names == ("x0", "x2")
    assert as_dataset(dp.Dataset(FRAME).standardised(), drop="a").scaling.mean.shape == (2,)
    with pytest.raises(InputError, match="drop='aa': not a column: did you mean 'a'"):
        as_dataset(FRAME, drop="aa")


def test_constant_and_empty_columns():
    frame = FRAME.assign(one=1.0, batch="x", nothing=np.nan)
    data = as_dataset(frame, drop="constant")
    assert data.names == ("a", "b", "c")
    assert data.notes == ("dropped columns 'one', 'batch', 'nothing': constant or empty",)
    assert as_dataset(FRAME.rename(columns={"a": "constant"}), drop="constant").names == ("b", "c")


def test_duplicates_repeat_the_first():
    frame = FRAME.assign(d=FRAME.a, e=FRAME.a, f=1 - 3 * FRAME.b)
    data = as_dataset(frame, drop="duplicate")
    assert data.names == ("a", "b", "c")
    assert data.notes[-1] == "dropped column 'f': repeats 'b' up to scale and offset"


def test_a_column_may_become_constant_when_rows_are_dropped():
    frame = FRAME.assign(d=[1.0] + [2.0] * 11, a=FRAME.a.where(FRAME.index > 0))
    data = as_dataset(frame, drop="constant", missing="drop")
    assert data.names == ("a", "b", "c") and data.notes[-1] == "dropped column 'd': constant"


def test_interventions_stay_with_their_rows_and_columns(tmp_path):
    """Rows that lack values are dropped from the mask too; a target that is dropped counts for nothing."""
    targets = ["a", "b", "", "c"] * 3
    holes = FRAME.assign(c=FRAME.c.where(FRAME.index != 4), target=targets)
    holes.to_csv(tmp_path / "t.csv", index=False)
    pd.get_dummies(holes.target)[["a", "b", "c"]].astype(int).to_csv(tmp_path / "mask.csv", index=False)
    holes.drop(columns="target").to_csv(tmp_path / "values.csv", index=False)
    expected = np.array([[t == "a", t == "c"] for row, t in enumerate(targets) if row != 4])
    for source, interventions in [
        (holes, "target"),
        (tmp_path / "t.csv", "target"),
        (tmp_path / "values.csv", tmp_path / "mask.csv"),
        (tmp_path / "values.csv", targets),
    ]:
        data = as_dataset(source, interventions=interventions, drop="b", missing="drop")
        assert data.names == ("a", "c") and data.observations == 11
        np.testing.assert_array_equal(data.intervened, expected)


def test_a_first_column_of_different_targets_is_no_column_of_row_names(tmp_path):
    FRAME[:3].assign(a=["b", "c", "b;c"])[["a", "b", "c"]].to_csv(tmp_path / "t.csv", index=False)
    data = as_dataset(tmp_path / "t.csv", interventions="a")
    np.testing.assert_array_equal(data.intervened, [[1, 0], [0, 1], [1, 1]])


def test_conditions_share_their_options(tmp_path):
    first, second = tmp_path / "one.csv", tmp_path / "two.csv"
    FRAME.assign(kind=1.0, text="x").to_csv(first, index=False, sep=";")
    FRAME.assign(kind=2.0, text="y", b=FRAME.b.where(FRAME.index > 2)).to_csv(second, index=False)
    data = dp.read_conditions({first: None, second: "c"}, drop=["text", "constant"], missing="drop")
    assert data.names == ("a", "b", "c", "kind") and data.observations == 12 + 9  # kind differs between the tables
    assert data.notes == (
        "one.csv: columns separated by semicolons",
        "one.csv: dropped column 'text', as asked",
        "two.csv: dropped column 'text', as asked",
        "two.csv: dropped 3 of 12 rows, which lack values",
    )


@pytest.mark.parametrize(
    "frame, message",
    [
        (
            FRAME.assign(b=[f"x{i}" for i in range(len(FRAME))], c=[f"y{i}" for i in range(len(FRAME))]),
            r"columns 'b', 'c' hold text, not numbers, another in each row as .* \(the first: row 1, 'x0'\): recode",
        ),
        (FRAME.assign(b=np.nan), "column 'b' is empty: leave out"),
        (FRAME.where(VALUES < 1), r"columns 'a', .* have missing values \(\d+ in all\): drop such rows \(--missing"),
        (FRAME.assign(a=[np.nan, np.inf, *range(10)]), "2 problems: .*1 missing value, .*; .*1 infinite value"),
        (FRAME.set_axis(["a", "", "a"], axis=1), "2 problems: column 2 has an empty name.*; the name 'a' stands"),
        (
            FRAME.set_axis(["a", "", "c"], axis=1).assign(a=["x", *range(11)]),
            "2 problems: column 2 has an empty.*; column 'a', row",
        ),
    ],
)
def test_problems_are_listed_at_once(frame, message):
    with pytest.raises(InputError, match=message) as error:
        as_dataset(frame)
    assert "\n" not in str(error.value)


def test_problems_of_inference_are_listed_at_once():
    frame = FRAME.assign(d=3.0, e=4.0, f=FRAME.a, g=FRAME.a + FRAME.b, h=1e300 * FRAME.c, i=FRAME.b - FRAME.c)
    with pytest.raises(InputError, match=r"^5 problems: column 'h' reaches") as error:
        dp.data.check_for_inference(as_dataset(frame))
    for part in ("'d', 'e' are constant (values 3, 4)", "'a' and 'f' are identical", "is a linear combination of"):
        assert part in str(error.value)
