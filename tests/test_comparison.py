"""Models side by side: held-out densities against their definition, evidence in raw units, and the sentence."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal

import dagpost as dp
from dagpost.comparison import Comparison, _names, _splits, _summary
from dagpost.data import as_dataset
from dagpost.errors import InputError
from tests.inference.test_lags import chain, series
from tests.inference.test_targets import table
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


@pytest.mark.slow
def test_models_without_a_name_go_by_the_kinds_of_columns():
    frame = asia().sample(100, seed=1)[["smoke", "bronc"]]
    found = dp.compare(frame, folds=2, progress=False)
    assert len(found.table) == 4 and "bdeu (equivalent sample size 10)" in found.table.index
    assert "smoke" not in repr(found) and found.sentence in repr(found)


@pytest.mark.slow
def test_standardising_beforehand_changes_nothing():
    frame = BENT[["x", "y"]]
    one, two = (dp.compare(data, ["bge"], "uniform", "exact", folds=2, progress=False)
                for data in (frame, dp.Dataset(frame).standardised()))  # fmt: skip
    assert one.table.loc["bge", "log_evidence"] == pytest.approx(two.table.loc["bge", "log_evidence"], abs=1e-4)
    np.testing.assert_allclose(one.by_fold, two.by_fold, atol=0.05)  # there the scale is that of all rows


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


# ---- time series and conditions


def raw_evidence(post, counted):
    """The evidence in the units of the table: `counted` cells of each column have been divided by its scale."""
    return post.log_evidence - (0 if post.scaling is None else counted @ np.log(post.scaling.scale))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bge", "linear", "additive"])
def test_evidence_of_a_series_is_the_exact_one(model):
    frame = series(40, 2, within=[(0, 1)], across=[(0, 0)], weight=0.4) * [100, 1]
    found = dp.compare(frame, [model], "uniform", "exact", folds=2, lags=1, progress=False)
    data = dp.data.lagged(dp.Dataset(frame)).standardised().rounded()
    built = dp.LinearGaussian(noise_variance=None) if model == "linear" else model
    expected = raw_evidence(dp.exact(data, built, "uniform"), np.full(4, 39))
    assert found.table.loc[model, "log_evidence"] == pytest.approx(expected, abs=1e-9)


def test_evidence_of_a_series_of_categories_is_the_exact_one():
    frame = chain(40).assign(unit=["p"] * 15 + ["q"] * 25)
    found = dp.compare(frame, ["bdeu"], "uniform", "exact", folds=2, lags=1, series="unit", progress=False)
    expected = dp.exact(frame, "bdeu", "uniform", lags=1, series="unit").log_evidence
    assert found.table.loc["bdeu", "log_evidence"] == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("conditions", [None, "drug"])
def test_stretches_of_time_add_up_to_the_evidence(conditions):
    """Predicting one stretch after the other is the evidence of all but the first half, given that half; past columns
    are given, and every one of them is the root of a family without targets, which does not count."""
    frame = series(41, 2, within=[(0, 1)], across=[(0, 0)], weight=0.4).assign(drug=["", "A", "", "B"] * 10 + [""])
    flat = as_dataset(frame if conditions else frame.drop(columns="drug"), conditions=conditions).standardised()
    model, data = dp.LinearGaussian(noise_variance=0.5), dp.data.lagged(flat)
    found = dp.compare(flat, [model], "uniform", "exact", folds=4, lags=1, progress=False)

    def evidence(rows):
        roots = (multivariate_normal(np.zeros(len(x)), 0.5 * np.eye(len(x))).logpdf(x) for x in rows.values.T[2:])
        return dp.exact(rows, model, "uniform").log_evidence - sum(roots)

    expected = evidence(data) - evidence(data.rows(slice(0, 20))) - 20 * np.log(flat.scaling.scale).sum()
    assert found.by_fold.sum() * 5 == pytest.approx(expected, abs=1e-8)


def test_no_row_that_is_predicted_was_seen():
    rng = np.random.default_rng(0)
    for units in (1, 2, 3, 7):
        frame = pd.DataFrame({"row": np.arange(60.0), "unit": rng.integers(units, size=60)})
        data = as_dataset(frame, lags=1, series="unit")
        splits = _splits(data, 3, np.random.default_rng(1))
        assert len(splits) == 3 and all(unseen.any() and seen.any() for seen, unseen in splits)
        assert np.sum([unseen for _, unseen in splits], axis=0).max() == 1
        for seen, unseen in splits:
            known, new = data.values[seen], data.values[unseen, 0]
            assert not np.isin(new, known).any()
            of_row = data.series.of_row
            for unit in range(units):
                mine = data.values[seen & (of_row == unit), 0]
                theirs = data.values[unseen & (of_row == unit), 0]
                if units >= 3:
                    assert not (len(mine) and len(theirs))
                elif len(theirs):
                    assert mine.max() < theirs.min()


def test_every_fold_has_its_share_of_a_condition():
    data = as_dataset(table(7, d=2), conditions="drug")
    splits = _splits(data, 3, np.random.default_rng(0))
    assert np.array_equal(np.sum([unseen for _, unseen in splits], axis=0), np.ones(21))
    for seen, unseen in splits:
        assert np.array_equal(seen, ~unseen)
        assert set(np.bincount(data.conditions.of_row[unseen] + 1)) <= {2, 3}


@pytest.mark.slow
@pytest.mark.parametrize("model", ["bge", "additive"])
def test_conditions_are_summed_out_of_evidence_and_densities(model):
    frame = table(12, d=2) * [100, 1, 1]
    found = dp.compare(frame, [model], "uniform", "exact", folds=2, seed=1, conditions="drug", progress=False)
    data = as_dataset(frame, conditions="drug")
    post = dp.exact(data.standardised().rounded(), model, "uniform")
    expected = raw_evidence(post, np.full(2, 36))
    assert found.table.loc[model, "log_evidence"] == pytest.approx(expected, abs=1e-9)
    from dagpost._util.numerics import generator, key_from_seed

    seen, unseen = _splits(data, 2, generator(key_from_seed(1)))[0]
    post = dp.exact(data.rows(seen).standardised().rounded(), model, "uniform")
    expected = dp.metrics.log_predictive_density(post, data.rows(unseen)) / unseen.sum()
    assert found.by_fold[0, 0] == pytest.approx(expected, abs=1e-9)


def test_known_targets_are_compared_without_conditions():
    frame = table(12, d=2).assign(target=lambda f: f.drug.map({"none": "", "A": "v1", "B": "v0"})).drop(columns="drug")
    options = {"interventions": "target", "targets": "known"}
    found = dp.compare(frame, ["bge"], "uniform", "exact", folds=2, progress=False, **options)
    post = dp.exact(as_dataset(frame, interventions="target").standardised().rounded(), "bge", "uniform",
                    targets="known")  # fmt: skip
    assert found.table.loc["bge", "log_evidence"] == pytest.approx(raw_evidence(post, np.full(2, 36)), abs=1e-9)
    assert np.isfinite(found.by_fold).all()


@pytest.mark.parametrize(
    "frame, options, message",
    [
        (series(20, 2), {"lags": 2}, "lags=2: give 1"),
        (series(20, 2), {"series": "v0"}, "no lags: add lags=1"),
        (series(9, 2), {"lags": 1}, "folds=5: 8 rows are too few"),
        (table(12, d=2), {"conditions": "drugs"}, "the column that names the conditions, 'drugs', is unknown"),
        (table(12, d=2), {"conditions": "drug", "models": ["gp"]}, "the model 'gp' takes no conditions: use 'bge'"),
        (table(12, d=2), {"conditions": "drug", "method": "dibs"}, "method 'dibs' takes no conditions"),
        (series(20, 2), {"targets": "unknown"}, "no conditions: name their column"),
        (table(2, d=2), {"conditions": "drug", "folds": 2}, r"without fold 1 of 2: condition 'A' has a single row"),
    ],
)
def test_bad_questions_about_time_and_conditions(frame, options, message):
    with pytest.raises(InputError, match=message):
        dp.compare(frame, **{"models": ["bge"], "progress": False, **options})


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


def test_the_command_takes_series_and_conditions(tmp_path, capsys, monkeypatch):
    from dagpost.interfaces.cli import main
    from dagpost.interfaces.cli import options as environment

    monkeypatch.setattr(environment, "use_caches", lambda: None)
    frame = table(12, d=2).assign(unit=["p", "q"] * 18)
    frame.to_csv(tmp_path / "t.csv", index=False)
    arguments = ["compare", str(tmp_path / "t.csv"), "--model", "bge", "--folds", "2", "--json", "--quiet"]
    given = {
        "time": (["--lags", "1", "--series", "unit", "--drop", "drug"], {"lags": 1, "series": "unit"}, ["drug"]),
        "drug": (["--conditions", "drug", "--change", "hard", "--drop", "unit"],
                 {"conditions": "drug", "targets": dp.Targets("hard")}, ["unit"]),
    }  # fmt: skip
    for words, options, dropped in given.values():
        assert main([*arguments, *words]) == 0
        found = json.loads(capsys.readouterr().out)["models"][0]
        expected = dp.compare(frame.drop(columns=dropped), ["bge"], folds=2, progress=False, **options).table.loc["bge"]
        for name in ("log_density", "log_evidence"):
            assert found[name] == pytest.approx(expected[name], abs=1e-9)
    assert main([*arguments, "--conditions", "drug", "--drop", "unit", "--targets", "knwon"]) == 2
    assert "did you mean 'known'" in capsys.readouterr().err


def test_names_of_models_are_short():
    models = ["bge", dp.BDeu(), dp.BDeu(10.0), dp.BDeu(variant="k2"), dp.BDeu(variant="bds")]
    expected = ["bge", "bdeu", "bdeu (equivalent sample size 10)", "bdeu (K2)", "bdeu (BDs)"]
    assert _names(models) == expected and _names([dp.BDeu(10.0)]) == ["bdeu"]
    with pytest.raises(InputError, match="'bdeu' is there twice"):
        _names(["bdeu", dp.BDeu()])
