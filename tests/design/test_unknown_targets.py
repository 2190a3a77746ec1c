"""The next experiment where data come under conditions with unknown targets, against direct evaluation."""

from itertools import product

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, xlogy

import dagpost as dp
from dagpost.data import Dataset
from dagpost.data.conditions import as_conditions
from dagpost.design.outcomes import ClosedForm, Drawn, EvidenceRatios, Result
from dagpost.interfaces.cli import main
from dagpost.models import as_model
from tests.models.test_perturbed import direct, rows

SIGMAS = 4.0
"""Standard errors that an estimate may be off; 3 in 100,000 of right ones are further."""
PRIOR = np.array([[0.1, 0.7, 0.1], [1.0, 0.1, 0.0]])
"""Probability that the conditions a and b of `rows` change each of three nodes."""
TARGETS = {"probabilities": {label: dict(zip(["x0", "x1", "x2"], p)) for label, p in zip("ab", PRIOR.tolist())}}


def families(graph):
    return [(j, np.flatnonzero(graph[:, j]).tolist()) for j in range(len(graph))]


def log_density(model, data, graph, new, free, change="soft"):
    """log p(new | graph, data) of the free nodes: the sum over all targets, each with evidences of tables of rows."""
    place, total = data.conditions.of_row, 0.0
    for j, parents in families(graph):
        if j not in free:
            continue
        before, after = [], []
        for hit in product([False, True], repeat=2):
            p = np.prod([PRIOR[k, j] if hit[k] else 1 - PRIOR[k, j] for k in range(2)])
            if p == 0:
                continue
            given = [] if change == "hard" else parents
            own = sum(direct(model, data, j, given, place == k) for k in np.flatnonzero(hit))
            outside = ~np.isin(place, np.flatnonzero(hit))
            both = Dataset(np.concatenate([data.values, new]), levels=data.levels)
            before.append(np.log(p) + own + direct(model, data, j, parents, outside))
            more = np.concatenate([outside, np.ones(len(new), bool)])
            after.append(np.log(p) + own + direct(model, both, j, parents, more))
        total += logsumexp(after) - logsumexp(before)
    return total


@pytest.mark.parametrize("change", ["soft", "hard"])
@pytest.mark.parametrize("name", ["bge", "linear", "bdeu"])
def test_densities_sum_over_targets_with_new_rows_in_the_unchanged_mechanism(name, change):
    data, model = rows(name), as_model(name)
    post = dp.exact(data, model, targets={"change": change, **TARGETS})
    rng = np.random.default_rng(1)
    outcomes = rng.integers(2, size=(2, 4, 3)).astype(float) if name == "bdeu" else 2 * rng.normal(size=(2, 4, 3))
    for clamped in ({1: 1.0}, {}):
        free = [j for j in range(3) if j not in clamped]
        found = ClosedForm(post)
        values = found.of([Result(clamped, outcomes)], lambda amount: None)
        for g in (0, 7, 20, 24):
            graph = post.graphs[g]
            expected = [log_density(model, data, graph, new, free, change) for new in outcomes]
            at = [np.array_equal(graph, other) for other in found_graphs(post)].index(True)
            np.testing.assert_allclose(values[:, at], expected, atol=1e-8)


def found_graphs(post):
    """The distinct graphs in the order of `ClosedForm`."""
    return np.unique(post.graphs, axis=0)


def test_densities_of_additive_models_are_those_of_a_longer_table():
    """In the units of the known rows, which is what `log_predictive_of` does by summarising both tables anew."""
    data = rows("additive")
    post = dp.exact(data, "additive", targets=TARGETS)
    new = 2 * np.random.default_rng(1).normal(size=(1, 5, 3))
    found = EvidenceRatios(post, post.graphs, np.ones((len(post.graphs), 3), bool)).of(
        [Result({}, new)], lambda _: None
    )
    expected = post.model.log_predictive_of(post.graphs, data, Dataset(new[0]))
    np.testing.assert_allclose(found[0], expected, atol=1e-8)
    assert np.ptp(expected) > 0.1


def table(model, seed=0, count=30):
    """Three nodes; in rows of A x1 was set, in those of B x2."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3 * count, 3))
    x[:, 1] += 0.7 * x[:, 0]
    x[:, 2] += 0.5 * x[:, 1]
    x[count : 2 * count, 1] = rng.normal(size=count) + 2
    x[2 * count :, 2] = rng.normal(size=count) - 1
    frame = pd.DataFrame(x, columns=["x0", "x1", "x2"])
    if model == "bdeu":
        frame = frame.gt(0).replace({True: "yes", False: "no"})
    return frame.assign(drug=np.repeat(["none", "A", "B"], count), target=np.repeat([None, "x1", "x2"], count))


@pytest.mark.parametrize("model", ["bge", "linear", "bdeu"])
@pytest.mark.parametrize("about", [None, ("x0", "x2")])
def test_known_targets_are_rows_left_out(model, about):
    """With targets that are certain, of hard changes, the answer is that of known interventions, number by number."""
    frame = table(model, count=10)
    known = dp.exact(frame.drop(columns="drug"), model, interventions="target")
    targets = dp.Targets("hard", 0.0, {"A": {"x1": 1.0}, "B": {"x2": 1.0}})
    found = dp.exact(frame.drop(columns="target"), model, conditions="drug", targets=targets)
    options = {"about": about, "rows": 3, "outcomes": 16, "draws": 40}
    one, other = (dp.next_experiment(post, **options).table for post in (known, found))
    assert one["experiment"].tolist() == other["experiment"].tolist()
    np.testing.assert_allclose(other[["gain", "error"]], one[["gain", "error"]], rtol=1e-6, atol=1e-9)
    ignored = dp.next_experiment(dp.exact(frame[["x0", "x1", "x2"]], model), **options).table
    assert abs(ignored["gain"] / one["gain"] - 1).max() > 0.1 and one["gain"].max() > 0.005


@pytest.mark.parametrize("model", ["bge", "linear"])
def test_soft_known_targets_are_rows_left_out_given_the_graph(model):
    frame = table(model)
    targets = dp.Targets("soft", 0.0, {"A": {"x1": 1.0}, "B": {"x2": 1.0}})
    soft = dp.exact(frame.drop(columns="target"), model, conditions="drug", targets=targets)
    known = dp.exact(frame.drop(columns="drug"), model, interventions="target")
    new = [Result({0: 1.0}, np.random.default_rng(2).normal(size=(3, 4, 3)))]
    chosen = np.ones((25, 3), bool)
    one, other = (EvidenceRatios(post, soft.graphs, chosen).of(new, lambda _: None) for post in (known, soft))
    np.testing.assert_allclose(other, one, atol=1e-9)


@pytest.fixture(scope="module")
def categories():
    """x1 copies x0, and is a coin under both conditions; neither is sure to be found."""
    rng = np.random.default_rng(3)
    labels = ["none"] * 20 + ["a"] * 10 + ["b"] * 6
    a = rng.integers(2, size=36)
    b = np.where((rng.random(36) < 0.9) & (np.arange(36) < 20), a, rng.integers(2, size=36))
    c = np.where(rng.random(36) < 0.7, b, rng.integers(2, size=36))
    data = Dataset(np.column_stack([a, b, c]).astype(float), ("x0", "x1", "x2"), levels=(("0", "1"),) * 3)
    return Dataset(data.values, data.names, levels=data.levels, conditions=as_conditions(labels, 36))


def exact_gain(model, post, data, clamped, count=1):
    """Mutual information of graph and outcome, summed over all outcomes."""
    free = [j for j in range(3) if j != clamped]
    joint = []
    for cells in product(range(2), repeat=count * len(free)):
        new = np.ones((count, 3))
        new[:, free] = np.reshape(cells, (count, len(free)))
        joint.append([log_density(model, data, graph, new, free) for graph in post.graphs])
    assert np.allclose(logsumexp(np.array(joint), axis=0), 0, atol=1e-9)  # a density given every graph
    joint = np.exp(np.array(joint)) * post.weights
    return float((xlogy(joint, joint) - xlogy(joint, joint.sum(axis=1, keepdims=True) * post.weights)).sum())


@pytest.mark.slow
def test_gain_is_the_sum_over_all_targets_and_outcomes(categories):
    model = dp.BDeu(2.0)
    post = dp.exact(categories, model, targets=TARGETS)
    assert 0.05 < post.record.targets.probability[0][1] < 0.995
    found = dp.next_experiment(post, rows=1, outcomes=1024).table.set_index("experiment")
    for j, name in enumerate(post.names):
        row = found.loc[name]
        assert abs(row["gain"] - exact_gain(model, post, categories, j)) < SIGMAS * row["error"]
        assert 0 < row["error"] < 0.02


def test_drawn_parameters_are_those_without_a_condition():
    """Models without predictive ratios, and effects, draw them: rows of a strong condition must not enter."""
    frame = table("bge", count=60)
    targets = dp.Targets("soft", 0.0, {"A": {"x1": 1.0}, "B": {"x2": 1.0}})
    post = dp.exact(frame.drop(columns="target"), "bge", conditions="drug", targets=targets)
    drawn = Drawn(post, 400, jax.random.key(0))
    new = np.zeros((2, 1, 3))
    new[1, 0, 1] = 1.0
    given = drawn.of([Result({}, new)], lambda _: None)
    closed = EvidenceRatios(post, drawn.graphs, np.ones((400, 3), bool)).of([Result({}, new)], lambda _: None)
    # the mean over parameters of a graph is its density with parameters integrated out
    codes = np.unique(drawn.graphs.reshape(400, -1), axis=0, return_inverse=True)[1].reshape(-1)
    common = codes == np.bincount(codes).argmax()
    assert common.sum() > 30
    mean = logsumexp(given[:, common], axis=1) - np.log(common.sum())
    np.testing.assert_allclose(mean, closed[:, common][:, 0], atol=0.1)


def test_variants_without_ratios_have_drawn_tables(categories):
    post = dp.exact(categories, dp.BDeu(2.0, "bds"), targets=TARGETS)
    found = dp.next_experiment(post, ["x0"], rows=1, draws=60, outcomes=64)
    assert "not below" in found.bound and found.table["gain"].iloc[0] > 0


def test_the_command_line_plans_after_conditions(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table("bge").drop(columns="target").to_csv("cells.csv", index=False)
    assert main(["exact", "cells.csv", "--conditions", "drug", "--quiet"]) == 0
    capsys.readouterr()
    assert main(["next", "run", "--outcomes", "16", "--quiet"]) == 0
    shown = capsys.readouterr().out
    frame = pd.read_csv("cells.csv", keep_default_na=False)
    again = dp.next_experiment(dp.load("run/posterior.nc").with_data(frame), outcomes=16)
    assert shown.strip() == repr(again)
