"""One table, four doors, one answer: `dp.fit`, `dp.exact`, `StructureLearner` and `dagpost fit` have one default."""

import json

import numpy as np
import pandas as pd
import pytest

import dagpost as dp


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
