"""Models side by side: held-out densities against their definition, evidence in raw units, and the sentence."""

import json

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.comparison import Comparison, _summary
from dagpost.errors import InputError
from tests.networks import asia

RNG = np.random.default_rng(0)
X = RNG.normal(size=150)
BENT = pd.DataFrame({"x": X, "y": 100 * (X**2 + 0.1 * RNG.normal(size=150)), "z": RNG.normal(size=150)})


@pytest.fixture(scope="module")
def found():
    return dp.compare(BENT, ["bge", "additive"], folds=3, progress=False)


@pytest.mark.slow
def test_a_bent_relation_needs_more_than_lines(found):
    assert found.best == "additive" and found.table.loc["bge", "behind"] > 0.3
    assert found.sentence.startswith("additive predicts held-out rows best: ") and "bge, the next" in found.sentence
    assert found.table.loc["additive", "log_evidence"] > found.table.loc["bge", "log_evidence"] + 50
    assert found.table.loc["additive", "behind"] == 0 and found.by_fold.shape == (2, 3)


@pytest.mark.slow
def test_units_do_not_matter_but_for_their_jacobian(found):
    again = dp.compare(BENT * [1, 0.01, 1], ["bge", "additive"], folds=3, progress=False)
    np.testing.assert_allclose(again.table["behind"], found.table["behind"], atol=1e-6)
    np.testing.assert_allclose(again.table["log_density"] - np.log(100), found.table["log_density"], atol=1e-6)
    difference = again.table["log_evidence"] - found.table["log_evidence"]
    np.testing.assert_allclose(difference, 150 * np.log(100), rtol=1e-6)


@pytest.mark.slow
def test_densities_are_those_of_fits_without_the_fold():
    frame = asia().sample(120, seed=1)[["smoke", "bronc", "dysp"]]
    found = dp.compare(frame, ["bdeu"], "uniform", "exact", folds=2, seed=3, progress=False)
    from dagpost._util.numerics import generator, key_from_seed

    part = generator(key_from_seed(3)).permutation(120) % 2
    for fold in range(2):
        post = dp.exact(frame[part != fold], "bdeu", "uniform")
        expected = dp.metrics.log_predictive_density(post, frame[part == fold]) / (part == fold).sum()
        assert found.by_fold[0, fold] == pytest.approx(expected, abs=1e-9)
    assert found.table.loc["bdeu", "log_evidence"] == pytest.approx(dp.exact(frame, "bdeu", "uniform").log_evidence)
    assert found.sentence == "Only bdeu was compared."


def test_models_without_a_name_go_by_the_kinds_of_columns():
    frame = asia().sample(100, seed=1)[["smoke", "bronc"]]
    found = dp.compare(frame, folds=2, progress=False)
    assert len(found.table) == 4 and repr(dp.BDeu(10.0)) in found.table.index
    assert "smoke" not in repr(found) and found.sentence in repr(found)


def test_close_models_are_not_told_apart():
    table = _summary(["one", "two"], np.array([[-1.0, -2.0, -3.0], [-1.1, -1.9, -3.02]]), np.zeros(2), np.zeros(2))
    assert isinstance(table, Comparison) and table.best == "one"
    assert table.sentence.startswith(
        "No clear difference: one predicts held-out rows best, but two is within the error"
    )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"models": "bge"}, "models='bge': give a list of models"),
        ({"models": []}, "give a list of models"),
        ({"models": ["bge", "bge"]}, "'bge' is there twice"),
        ({"models": ["bgee"]}, "unknown model 'bgee': did you mean 'bge'"),
        ({"models": ["bdeu"]}, "the model 'bdeu' takes categories alone"),
        ({"folds": 1}, "folds=1"),
        ({"folds": 100}, "folds=100: 150 rows are too few"),
    ],
)
def test_bad_questions(options, message):
    with pytest.raises(InputError, match=message):
        dp.compare(BENT, progress=False, **options)


def test_a_fold_that_leaves_a_constant_column_is_named():
    frame = asia().sample(40, seed=1)[["smoke", "bronc"]].astype(str).assign(rare=["yes"] + ["no"] * 39)
    with pytest.raises(InputError, match=r"without fold \d of 2: column 'rare' is constant .* fewer folds"):
        dp.compare(frame, ["bdeu"], folds=2, progress=False)


@pytest.mark.slow
def test_the_command(tmp_path, capsys, monkeypatch):
    from dagpost.interfaces.cli import main
    from dagpost.interfaces.cli import options as environment

    monkeypatch.setattr(environment, "use_caches", lambda: None)
    BENT.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["compare", str(tmp_path / "t.csv"), "--model", "bge", "--model", "additive", "--folds", "3"]
    assert main([*arguments, "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    content = json.loads(printed.out)
    assert content["best"] == "additive" and [row["model"] for row in content["models"]] == ["additive", "bge"]
    assert printed.err == ""
    assert main(arguments) == 0
    printed = capsys.readouterr()
    assert content["sentence"] in printed.out and "'x': continuous" in printed.err
    assert main(["compare", str(tmp_path / "t.csv"), "--model", "bgee"]) == 2
    assert "did you mean 'bge'" in capsys.readouterr().err
