"""Kinds of columns: which cells are categories, what users can say of them, and what happens to missing cells."""

import datetime
import sys

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import as_dataset
from dagpost.data.checks import check_for_inference, kind_problems
from dagpost.errors import DataWarning, InputError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.integers(20, 80, size=40).astype(float),
        "smoker": RNG.choice(["yes", "no"], size=40),
        "dose": RNG.choice(["low", "medium", "high"], size=40),
        "group": RNG.integers(0, 3, size=40),
    }
)
WORDS = {
    "nominal": "categorical", "factor": "categorical", "string": "categorical", "category": "categorical",
    "numeric": "continuous", "float": "continuous", "real": "continuous", "bool": "binary", "Boolean": "binary",
    "integer": "count",
}  # fmt: skip
LEVELS = ((), ("no", "yes"), ("high", "low", "medium"), ())


def test_words_are_categories_and_numbers_are_not():
    data = dp.Dataset(FRAME)
    assert data.kinds == ("continuous", "categorical", "categorical", "continuous") and data.levels == LEVELS
    codes = FRAME.smoker.map({"no": 0.0, "yes": 1.0})
    np.testing.assert_array_equal(data.values[:, 1], codes)
    pd.testing.assert_frame_equal(data.frame().astype({"dose": str, "smoker": str}), FRAME.astype({"group": float}))
    lines = data.column_lines()
    assert lines[1] == "'smoker': categorical, 2 levels ('no', 'yes')"
    assert lines[0].startswith("'age': continuous, ")


@pytest.mark.parametrize("kind", ["csv", "tsv", "xlsx", "parquet", "feather"])
def test_files_of_every_format_give_the_same(tmp_path, kind):
    path = tmp_path / f"t.{kind}"
    write = {
        "csv": lambda: FRAME.to_csv(path, index=False),
        "tsv": lambda: FRAME.to_csv(path, index=False, sep="\t"),
        "xlsx": lambda: FRAME.to_excel(path, index=False),
        "parquet": lambda: FRAME.astype({"dose": "category"}).to_parquet(path),
        "feather": lambda: FRAME.to_feather(path),
    }
    write[kind]()
    data = dp.read_table(path)
    assert data.fingerprint == dp.Dataset(FRAME).fingerprint and data.levels == LEVELS and data.notes == ()


def test_feather_and_parquet_faults_are_named(tmp_path, monkeypatch):
    (tmp_path / "t.feather").write_bytes(b"ARROW1 no")
    with pytest.raises(InputError, match=r"t\.feather: not a readable Feather file"):
        dp.read_table(tmp_path / "t.feather")
    FRAME.to_feather(tmp_path / "t.feather")
    with pytest.raises(InputError, match=r"t\.feather: more than .* too large"):
        dp.read_table(tmp_path / "t.feather", 100)
    monkeypatch.setitem(sys.modules, "pyarrow.ipc", None)
    for name in ("t.feather", "t.parquet"):
        (tmp_path / name).write_bytes(b"PAR1")
        with pytest.raises(InputError, match=r"reading (Feather|Parquet) files needs pyarrow: pip install pyarrow"):
            dp.read_table(tmp_path / name)


def test_users_can_say_otherwise(tmp_path):
    kinds = {"group": "categorical", "dose": ["low", "medium", "high"]}
    data = as_dataset(FRAME, kinds=kinds)
    assert data.levels[2:] == (("low", "medium", "high"), ("0", "1", "2"))
    np.testing.assert_array_equal(data.values[:, 3], FRAME.group)
    np.testing.assert_array_equal(data.values[:, 2], FRAME.dose.map({"low": 0, "medium": 1, "high": 2}))
    (tmp_path / "kinds.toml").write_text('group = "categorical"\ndose = ["low", "medium", "high"]\n')
    FRAME.to_csv(tmp_path / "t.csv", index=False)
    for other in (
        dp.read_table(tmp_path / "t.csv", kinds=tmp_path / "kinds.toml"),
        dp.Dataset(FRAME, kinds=kinds),
        dp.Dataset(FRAME).with_kinds(kinds),
    ):
        assert other.levels == data.levels and other.fingerprint == data.fingerprint
    as_list = dp.Dataset(FRAME, kinds=["continuous", "categorical", ["low", "medium", "high"], "categorical"])
    assert as_list.levels == data.levels
    with pytest.raises(InputError, match="2 kinds for 4 columns"):
        dp.Dataset(FRAME, kinds=["continuous", "categorical"])
    back = data.with_kinds({"group": "continuous"})
    assert back.kinds[3] == "continuous" and back.values[:, 3].tolist() == FRAME.group.tolist()


def test_numbers_of_categories_keep_their_values():
    """Levels of numbers are in numerical order, not in that of their texts, and 1 and 1.0 are the same."""
    data = dp.Dataset(pd.DataFrame({"n": [10, 9, 100, 9, 10]}), kinds={"n": "categorical"})
    assert data.levels == (("9", "10", "100"),) and data.values[:, 0].tolist() == [1, 0, 2, 0, 1]
    assert data.with_kinds({"n": "continuous"}).values[:, 0].tolist() == [10, 9, 100, 9, 10]
    whole = dp.Dataset(pd.DataFrame({"n": [1.0, 2.5, 1.0]})).with_kinds({"n": "categorical"})
    assert whole.levels == (("1", "2.5"),)
    held_out = dp.Dataset(pd.DataFrame({"n": [2.5, 1]})).with_levels(whole.levels)
    assert held_out.values[:, 0].tolist() == [1, 0]


@pytest.mark.parametrize(
    "kinds, message",
    [
        ({"smokr": "categorical"}, "kinds names 'smokr', not a column: did you mean 'smoker'"),
        ({"smoker": "categorial"}, "kind 'categorial' of column 'smoker': did you mean 'categorical'"),
        *(({"dose": word}, f"kind '{word}' of column 'dose': did you mean '{kind}'") for word, kind in WORDS.items()),
        ({"dose": ["low", "high"]}, "column 'dose', row .* holds 'medium', none of its levels"),
        ({"dose": ["low", "low"]}, "kinds of column 'dose': give one of continuous, .*, different levels, or an order"),
        ({"dose": "low<low"}, "kinds of column 'dose': give one of continuous, .*, different levels, or an order"),
        ({"dose": "low<<high"}, "kinds of column 'dose': give one of continuous, .*, different levels, or an order"),
        ({"dose": "low<high"}, "column 'dose', row .* holds 'medium', none of its levels"),
        ({"dose": "ordinal"}, "column 'dose' is called ordinal and holds words: give its levels in their order"),
        ({"dose": "binary"}, "column 'dose' is called binary and holds 3 different values: call it ordinal"),
        ({"dose": "count"}, "column 'dose', row 1 holds .*, not a number"),
        ({"dose": "ordinals"}, "kind 'ordinals' of column 'dose': did you mean 'ordinal'"),
        ({"dose": ["low"]}, "kinds of column 'dose': give at least two levels"),
        ({"dose": 3}, "kinds of column 'dose'"),
        ({"dose": "continuous"}, "column 'dose', row 1 holds .*, not a number"),
        ("nowhere.toml", r"nowhere\.toml: no such file"),
        (3, "kinds=3: give a dictionary"),
    ],
)
def test_bad_kinds_are_named(kinds, message):
    with pytest.raises(InputError, match=message):
        as_dataset(FRAME, kinds=kinds)


@pytest.mark.parametrize("cells", [[0.5, 1.0, 2.0], [-1.0, 0.0, 3.0]])
def test_what_is_no_count_is_named(cells):
    frame = pd.DataFrame({"visits": cells, "other": [1.0, 2.0, 4.0]})
    with pytest.raises(InputError, match=r"column 'visits', row 1 holds .*, no count: give whole numbers from 0 on"):
        dp.Dataset(frame, kinds={"visits": "count"})
    with pytest.raises(InputError, match=r"column 'visits', row 1 holds .*, no count"):
        dp.Dataset(frame).with_kinds({"visits": "count"})


def test_ordinal_count_and_binary_columns(tmp_path):
    """Kinds that users name, in a dictionary, in a file and afterwards; and kinds that a frame says by itself."""
    wanted = {"dose": "low<medium<high", "smoker": "binary", "group": "count", "age": "ordinal"}
    kinds = ("ordinal", "binary", "ordinal", "count")
    path = tmp_path / "kinds.toml"
    path.write_text("\n".join(f'{name} = "{kind}"' for name, kind in wanted.items()))
    for data in (dp.Dataset(FRAME, kinds=wanted), dp.Dataset(FRAME).with_kinds(wanted), as_dataset(FRAME, kinds=path)):
        assert data.kinds == kinds and data.is_categorical.tolist() == [True, True, True, False]
        assert data.levels[2] == ("low", "medium", "high") and data.levels[1] == ("no", "yes")
        assert [int(level) for level in data.levels[0]] == sorted(FRAME.age.unique())
        np.testing.assert_array_equal(data.values[:, 2], FRAME.dose.map({"low": 0, "medium": 1, "high": 2}))
        assert data.columns(["group", "dose"]).kinds == ("count", "ordinal")
        assert data.rows(slice(0, 9)).kinds == kinds and data.with_kinds({"dose": "ordinal"}) is data
        assert data.column_lines()[2] == "'dose': ordinal, 3 levels ('low', 'medium', 'high', in this order)"
        assert data.column_lines()[3].startswith("'group': count, 0 to ")
    ordered = FRAME.astype({"dose": pd.CategoricalDtype(["low", "medium", "high"], ordered=True)})
    assert dp.Dataset(ordered).kinds[2] == "ordinal" and dp.Dataset(ordered).levels[2] == ("low", "medium", "high")
    assert dp.Dataset(ordered, kinds={"dose": "categorical"}).kinds[2] == "categorical"


def test_clear_counts_alone_are_taken_as_counts():
    rng = np.random.default_rng(1)
    columns = {
        "poisson": rng.poisson(2.0, size=200), "codes": rng.integers(0, 3, size=200),
        "score": rng.binomial(10, 0.5, size=200), "age": rng.integers(20, 80, size=200), "size": rng.normal(size=200),
    }  # fmt: skip
    data = dp.Dataset(pd.DataFrame(columns))
    assert data.kinds == ("count", *["continuous"] * 4)
    assert data.standardised().kinds == data.kinds and data.standardised().raw().kinds == data.kinds
    assert dp.Dataset(pd.DataFrame(columns), kinds={"poisson": "continuous"}).kinds[0] == "continuous"


def test_bad_files_of_kinds_are_named(tmp_path):
    (tmp_path / "kinds.toml").write_text("smoker = categorical\n")
    with pytest.raises(InputError, match=r"kinds\.toml: not a TOML file .* smoker = \"categorical\""):
        as_dataset(FRAME, kinds=tmp_path / "kinds.toml")


@pytest.mark.parametrize(
    "cells",
    [
        ["2020-01-31", "2020-02-01", "2020-02-01"],
        ["31.1.2020", "1.2.2020", "1.2.2020"],
        ["1/31/20", "2/1/20", "2/1/20"],
        ["31 Jan 2020", "1 Feb 2020", "1 Feb 2020"],
        ["Jan 31, 2020", "Feb 1, 2020", "Feb 1, 2020"],
        ["2020-01-31 12:00:00", "2020-02-01 12:00:00", "2020-02-01 12:00:00"],
        ["12:30", "12:31", "12:30"],
        [datetime.date(2020, 1, 31)] * 2 + [datetime.date(2020, 1, 30)],
        pd.to_datetime(["2020-01-31", "2020-02-01", "2020-02-01"]),
    ],
    ids=str,
)
def test_dates_are_refused_by_name(cells):
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "when": cells})
    with pytest.raises(InputError, match=r"column 'when' holds dates.*: turn into numbers, .*--drop NAME"):
        dp.Dataset(frame)


@pytest.mark.parametrize("cells", [["18-25", "26-40", "18-25"], ["stage 1", "stage 2", "stage 1"], ["A+", "B-", "A+"]])
def test_texts_with_digits_that_are_categories(cells):
    assert dp.Dataset(pd.DataFrame({"x": cells})).kinds == ("categorical",)


def test_row_names_are_kept_if_they_are_called_categories(tmp_path):
    frame = FRAME.assign(age=[f"s{i}" for i in range(40)])
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert "age" in dp.read_table(tmp_path / "t.csv", kinds={"age": "categorical"}).names
    with pytest.warns(DataWarning):
        assert "age" not in dp.read_table(tmp_path / "t.csv").names


def test_missing_cells_can_be_kept_and_models_refuse_them():
    holes = FRAME.assign(age=FRAME.age.where(FRAME.index != 3), smoker=FRAME.smoker.where(FRAME.index > 1))
    with pytest.raises(InputError, match=r"columns 'age', 'smoker' have missing values \(3 in all\)"):
        as_dataset(holes)
    data = as_dataset(holes, missing="keep")
    assert data.is_missing.sum() == 3 and data.levels == LEVELS
    assert data.column_lines()[1] == "'smoker': categorical, 2 levels ('no', 'yes'), 2 missing"
    assert data.rows(slice(4, 9)).is_missing.sum() == 0
    assert data.frame().isna().to_numpy().sum() == 3
    with pytest.raises(
        InputError, match=r"2 problems: .*'smoker', 'dose' hold categories.*; .*'gp' needs all of them.*\"bge\""
    ):
        dp.fit(data, "gp")
    with pytest.raises(InputError, match="column 'age' is empty"):
        as_dataset(holes.assign(age=np.nan), missing="keep")


def test_models_for_numbers_refuse_categories_by_name():
    for model in ("bge", "linear", "additive", "gp", "mlp"):
        message = f"columns 'smoker', 'dose' hold categories, and the model '{model}' takes numbers alone"
        with pytest.raises(InputError, match=message):
            dp.fit(FRAME, model)
    with pytest.raises(InputError, match=r"column 'smoker' has categories: it cannot be standardised"):
        dp.Dataset(FRAME).standardised()
    assert kind_problems(dp.Dataset(FRAME), "own", categories=True) == []


def test_conditions_share_their_levels():
    one = pd.DataFrame({"a": ["x", "y", "x"], "b": [1.0, 2.0, 3.0]})
    two = pd.DataFrame({"a": ["z", "y", "z"], "b": [1.0, 2.0, 5.0]})
    data = dp.read_conditions([(one, None), (two, "b")])
    assert data.levels == (("x", "y", "z"), ()) and data.values[:, 0].tolist() == [0, 1, 0, 2, 1, 2]
    with pytest.raises(InputError, match="column 'a' is continuous in one table and categorical in another"):
        dp.read_conditions([(one, None), (two.assign(a=[1.0, 2.0, 3.0]), None)])


def test_levels_are_part_of_the_data():
    data = dp.Dataset(FRAME)
    other = dp.Dataset(FRAME.assign(smoker=FRAME.smoker.replace({"yes": "yea"})))
    np.testing.assert_array_equal(data.values, other.values)
    assert data.fingerprint != other.fingerprint
    part = data.columns(["dose", "age"])
    assert part.levels == (LEVELS[2], ()) and part.kinds == ("categorical", "continuous")
    with pytest.raises(
        InputError, match=r"column 'smoker', row .* holds 'yea', which is none of its levels: 'no', 'yes'"
    ):
        data.followed_by(other)


def test_constant_and_repeated_categories():
    frame = FRAME[["smoker", "dose"]].assign(copy=FRAME.smoker.map({"yes": "ja", "no": "nein"}))
    with pytest.warns(DataWarning, match="columns 'smoker' and 'copy' are the same"):
        check_for_inference(dp.Dataset(frame))
    with pytest.raises(InputError, match=r"column 'copy' is constant \(value 'x'\)"):
        check_for_inference(dp.Dataset(frame.assign(copy="x")))


def test_the_command_line_says_what_each_column_is(tmp_path, capsys):
    from dagpost.interfaces.cli.tables import columns_text, parse_kinds

    text = columns_text(dp.Dataset(FRAME))
    assert text.split("\n")[3] == "  'dose': categorical, 3 levels ('high', 'low', 'medium')"
    many = dp.Dataset(np.eye(3)[:, [0, 1, 2] * 20] + RNG.random((3, 60)))
    assert columns_text(many).endswith("… and 20 continuous more")
    (tmp_path / "k.toml").write_text('dose = ["low", "high"]\nage = "categorical"\n')
    found = parse_kinds(["age=continuous", "a=b=categorical"], str(tmp_path / "k.toml"))
    assert found == {"dose": ["low", "high"], "age": "continuous", "a=b": "categorical"}
    with pytest.raises(InputError, match="--kinds age: write NAME=KIND"):
        parse_kinds(["age"], None)
