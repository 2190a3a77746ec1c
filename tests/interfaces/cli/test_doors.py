"""One table, four doors, one answer: `dp.fit`, `dp.exact`, `StructureLearner` and `dagpost fit` have one default."""

import json

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from tests.networks import asia


@pytest.fixture(scope="module")
def frame():
    """Columns in very different units."""
    return dp.simulate(nodes=6, observations=80, seed=5).train.frame() * [1, 1000, 0.01, 3, 50, 1] + 7


@pytest.fixture(scope="module")
def answer(frame):
    return dp.fit(frame, progress=False)


def test_exact(frame, answer):
    exact = dp.exact(frame)
    np.testing.assert_allclose(exact.edge_marginals, answer.edge_marginals, atol=1e-12)
    assert exact.model == answer.model and exact.prior == answer.prior
    assert exact.record.assumptions["model"] == answer.record.assumptions["model"]


def test_estimator(frame, answer):
    learner = dp.StructureLearner().fit(frame)
    np.testing.assert_allclose(learner.edge_probabilities_, answer.edge_probabilities, atol=1e-12)


def test_command_line(frame, answer, tmp_path, dagpost):
    frame.to_csv(tmp_path / "table.csv", index=False)
    assert dagpost("fit", tmp_path / "table.csv", "--out", tmp_path / "run", "--quiet").code == 0
    edges = pd.read_csv(tmp_path / "run" / "edges.csv").set_index(["cause", "effect"]).probability
    for (cause, effect), probability in edges.items():
        assert probability == pytest.approx(answer.edge_probabilities.loc[cause, effect], abs=1e-9)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["assumed"]["prior"] == answer.record.assumptions["prior"]


def test_units_leave_no_trace(frame, answer):
    again = dp.fit(frame * [3, 0.1, 7, 1, 1, 1e6] - 4, progress=False)
    np.testing.assert_allclose(again.edge_marginals, answer.edge_marginals, atol=1e-9)


def test_a_named_model_is_the_papers(frame):
    post = dp.fit(frame, "linear", progress=False)
    assert post.model == dp.LinearGaussian() and post.prior == dp.ErdosRenyi() and post.record.assumptions == {}


def test_categories_have_one_answer_too(tmp_path, dagpost):
    frame = asia().sample(300, seed=1)[["smoke", "lung", "bronc", "dysp"]]
    answer = dp.fit(frame, progress=False)
    assert answer.model == dp.BDeu()
    np.testing.assert_allclose(dp.exact(frame).edge_marginals, answer.edge_marginals, atol=1e-12)
    learner = dp.StructureLearner().fit(frame)
    np.testing.assert_allclose(learner.edge_probabilities_, answer.edge_probabilities, atol=1e-12)
    held_out = asia().sample(40, seed=2)[list(frame)].astype(str)
    assert learner.score(held_out) == pytest.approx(dp.metrics.log_predictive_density(answer, held_out) / 40, abs=1e-9)
    frame.to_csv(tmp_path / "table.csv", index=False)
    ended = dagpost("fit", "table.csv", "--out", "run", "--report")
    assert ended.code == 0, ended.err
    assert "  'smoke': categorical, 2 levels ('no', 'yes')" in ended.err and "(bdeu)" in ended.err
    edges = pd.read_csv(tmp_path / "run" / "edges.csv").set_index(["cause", "effect"]).probability
    for (cause, effect), probability in edges.items():
        assert probability == pytest.approx(answer.edge_probabilities.loc[cause, effect], abs=1e-9)
    page = (tmp_path / "run" / "report.html").read_text()
    assert "Categorical network, tables of probabilities integrated out" in page and "no → yes: yes" in page
    loaded = dp.load(tmp_path / "run" / "posterior.nc")
    assert loaded.levels == answer.levels and loaded.model == answer.model


def test_kinds_on_the_command_line(tmp_path, dagpost):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"ward": rng.integers(3, 6, 80), "dose": rng.choice(["low", "mid", "high"], 80)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "kinds.toml").write_text('ward = "categorical"\ndose = ["low", "mid", "high"]\n')
    ended = dagpost("exact", "t.csv", "--columns", "kinds.toml", "--out", "run")
    assert ended.code == 0 and "'dose': categorical, 3 levels ('low', 'mid', 'high')" in ended.err
    assert "'ward': categorical, 3 levels ('3', '4', '5')" in ended.err
    ended = dagpost("exact", "t.csv", "--kinds", "ward=number", "--out", "other")
    assert ended.code == 2 and "kind 'number' of column 'ward': did you mean 'continuous'?" in ended.err
    ended = dagpost("exact", "t.csv", "--out", "other")
    assert ended.code == 2 and "column 'dose' holds categories without an order and column 'ward' numbers" in ended.err
