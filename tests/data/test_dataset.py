import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from dagpost.data import Dataset, as_dataset
from dagpost.errors import InputError

GOOD = np.random.default_rng(0).normal(size=(20, 3))


def test_arrays_are_copied_and_read_only():
    values = GOOD.copy()
    data = Dataset(values)
    values[0, 0] = 99
    assert data.values[0, 0] == GOOD[0, 0]
    with pytest.raises(ValueError):
        data.values[0, 0] = 1
    with pytest.raises(ValueError):
        data.intervened[0, 0] = True
    assert data.names == ("x0", "x1", "x2")


@pytest.mark.parametrize(
    "values",
    [
        GOOD.astype(np.float32),
        (GOOD * 10).astype(int),
        GOOD > 0,
        np.asfortranarray(GOOD),
        GOOD[::2],
        GOOD.astype(object),
        GOOD.tolist(),
    ],
    ids=["float32", "int", "bool", "fortran", "strided", "object", "lists"],
)
def test_anything_numeric_is_accepted(values):
    assert Dataset(values).values.dtype == np.float64


def test_read_only_input_is_left_alone():
    values = GOOD.copy()
    values.setflags(write=False)
    Dataset(values).standardised()
    np.testing.assert_array_equal(values, GOOD)


def test_frames_keep_their_names():
    frame = pd.DataFrame(GOOD, columns=["Erk 1/2", "=cmd()", "<script>"])
    assert as_dataset(frame).names == ("Erk 1/2", "=cmd()", "<script>")
    assert as_dataset(frame, names=["a", "b", "c"]).names == ("a", "b", "c")
    assert as_dataset(frame).frame().equals(frame)


def test_nullable_and_boolean_columns_are_accepted():
    frame = pd.DataFrame({"a": pd.array([1, 2, 3], dtype="Int64"), "b": [True, False, True]})
    np.testing.assert_array_equal(as_dataset(frame).values, [[1, 1], [2, 0], [3, 1]])


@pytest.mark.parametrize(
    "values, message",
    [
        (
            np.where(np.arange(60).reshape(20, 3) == 31, np.nan, GOOD),
            r"column 'x1' has 1 missing value, the first in row 11",
        ),
        (
            np.where(np.arange(60).reshape(20, 3) == 2, np.inf, GOOD),
            r"column 'x2' has 1 infinite value\(s\), the first in row 1",
        ),
        (np.where(np.arange(60).reshape(20, 3) == 2, -np.inf, GOOD), r"column 'x2' has 1 infinite"),
        (GOOD[:, 0], "1 dimension"),
        (GOOD[None], "3 dimension"),
        (GOOD + 1j, "complex"),
        (GOOD.astype("datetime64[s]"), "dates"),
        (scipy.sparse.csr_matrix(GOOD), "sparse"),
        ([["a", "b"], ["c", "d"]], r"columns 'x0', 'x1' hold text, not numbers \(the first: row 1, 'a'\)"),
        ([[1.0, "b"], [2.0, 3.0]], "column 'x1', row 1 holds 'b'"),
        (np.zeros((5, 0)), "no columns"),
    ],
)
def test_bad_values_are_named(values, message):
    with pytest.raises(InputError, match=message):
        Dataset(values)


@pytest.mark.parametrize(
    "column, message",
    [
        (pd.date_range("2020-01-01", periods=3), "column 'when' holds dates"),
        (["x", "y", "z"], "column 'when', row 1 holds 'x', not a number"),
        ([1, "y", 3.0], "column 'when', row 2 holds 'y'"),
        (["1,5", "2,5", "3,5"], "decimal comma"),
        ([1.0, None, 2.0], "column 'when' has 1 missing value, the first in row 2"),
        ([1 + 1j, 2, 3], "complex"),
    ],
)
def test_bad_columns_of_a_frame_are_named(column, message):
    frame = pd.DataFrame({"fine": [1.0, 2.0, 4.0]})
    frame["when"] = column
    with pytest.raises(InputError, match=message):
        as_dataset(frame)


@pytest.mark.parametrize(
    "names, message",
    [
        (["a", "a", "b"], "'a' stands for two columns"),
        (["a", "", "b"], "column 2 has an empty name"),
        (["a", "  ", "b"], "column 2 has an empty name"),
        (["a", "b\x1b[31m", "c"], r"control character U\+001B"),
        (["é", "e\u0301", "c"], "look the same"),
        (["ﬁ", "fi", "c"], "look the same"),
        (["a", "b"], "2 names for 3 columns"),
        ("abc", "not a single string"),
    ],
)
def test_bad_names_are_named(names, message):
    with pytest.raises(InputError, match=message):
        as_dataset(GOOD, names=names)


@pytest.mark.parametrize("name", ["=cmd()", "<script>alert(1)</script>", "../x", "p44/42", "β2cAMP", "a b"])
def test_odd_names_pass_unchanged(name):
    assert as_dataset(GOOD, names=[name, "b", "c"]).names[0] == name


def test_message_does_not_carry_control_characters():
    with pytest.raises(InputError) as error:
        as_dataset(GOOD, names=["a\x07", "b", "c"])
    assert "\x07" not in str(error.value)


def test_standardising_is_recorded_and_reversible():
    data = Dataset(GOOD * [1, 10, 1e-3] + [5, 0, -1])
    scaled = data.standardised()
    np.testing.assert_allclose(scaled.values.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.values.std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(scaled.raw().values, data.values, rtol=1e-12)
    assert data.scaling is None and scaled.scaling is not None
    twice = Dataset(scaled.values * 2 + 1, scaling=scaled.scaling).standardised()
    np.testing.assert_allclose(twice.values, scaled.values, atol=1e-12)


def test_standardising_a_constant_column_names_it():
    with pytest.raises(InputError, match="column 'x1' is constant"):
        Dataset([[1, 2], [3, 2], [4, 2]]).standardised()


@pytest.mark.parametrize(
    "mask, message",
    [
        (np.zeros((20, 2), dtype=bool), "shape"),
        (np.full((20, 3), 2), "True/False or 0/1"),
        (np.full((20, 3), np.nan), "True/False or 0/1"),
    ],
)
def test_bad_masks_are_named(mask, message):
    with pytest.raises(InputError, match=message):
        as_dataset(GOOD, interventions=mask)


def test_regimes_group_equal_columns():
    mask = np.zeros((20, 3), dtype=bool)
    mask[:5, 2] = True
    columns, group = as_dataset(GOOD, interventions=mask).regimes
    assert len(columns) == 2
    assert group[0] == group[1] != group[2]
    np.testing.assert_array_equal(columns[group[2]], mask[:, 2])
    assert len(Dataset(GOOD).regimes[0]) == 1


def test_rows_keep_everything_else():
    mask = np.zeros((20, 3), dtype=bool)
    mask[3, 1] = True
    part = as_dataset(GOOD, names=["a", "b", "c"], interventions=mask).rows(slice(2, 5))
    assert part.observations == 3 and part.names == ("a", "b", "c") and part.intervened[1, 1]


def test_a_frame_given_to_the_constructor_keeps_its_names():
    frame = pd.DataFrame(GOOD, columns=["Erk 1/2", "b", "c"])
    assert Dataset(frame).names == ("Erk 1/2", "b", "c")
    with pytest.raises(InputError, match="column 'b' has 1 missing value"):
        Dataset(frame.assign(b=frame.b.where(frame.index != 4)))


@pytest.mark.parametrize(
    "values, message",
    [
        (np.ma.masked_array(GOOD, mask=np.arange(60).reshape(20, 3) == 31), "column 'x1' has 1 missing value"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        (np.zeros((2, 2), dtype=[("a", float)]), "structured array"),
        ([[10**400, 1], [2, 3]], "too large for a float"),
        (None, "not a table"),
        ({"a": 1}, "not a table"),
    ],
)
def test_foreign_shapes_are_named(values, message):
    with pytest.raises(InputError, match=message):
        Dataset(values)


def test_decimals_and_fractions_are_numbers():
    from decimal import Decimal
    from fractions import Fraction

    data = Dataset([[Decimal("1.5"), Fraction(1, 4)], [Decimal("2"), Fraction(3)]])
    np.testing.assert_array_equal(data.values, [[1.5, 0.25], [2, 3]])


@pytest.mark.parametrize("name", [None, float("nan")])
def test_missing_names_are_empty_names(name):
    with pytest.raises(InputError, match="column 2 has an empty name"):
        Dataset(GOOD, ("a", name, "c"))


@pytest.mark.parametrize("name", ["a\u200b", "\u202eabc", "a\u2028b"])
def test_invisible_characters_are_refused(name):
    with pytest.raises(InputError, match="invisible character"):
        Dataset(GOOD, ("a", name, "c"))


def test_masks_are_aligned_by_name():
    mask = pd.DataFrame({"c": np.arange(20) < 5, "a": False})
    data = as_dataset(GOOD, names=["a", "b", "c"], interventions=mask)
    np.testing.assert_array_equal(data.intervened.sum(axis=0), [0, 0, 5])
    with pytest.raises(InputError, match="unknown column: known: 'a', 'b', 'c'"):
        as_dataset(GOOD, names=["a", "b", "c"], interventions=mask.rename(columns={"c": "zzz"}))


def test_columns_can_be_picked_by_name():
    data = as_dataset(GOOD, names=["a", "b", "c"]).standardised().columns(["c", "a"])
    assert data.names == ("c", "a") and data.scaling.mean.shape == (2,)
