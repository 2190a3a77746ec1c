"""Draws by way of orders against sums over all DAGs."""

import numpy as np
import pytest

import dagpost as dp
from dagpost._util.clock import Clock
from dagpost.graphs import all_dags, is_acyclic
from dagpost.inference.auto import EXACT_UP_TO
from dagpost.inference.exact import by_orders, orders
from dagpost.inference.exact.families import log_weights, members
from dagpost.inference.exact.layers import backward_pass, family_probabilities
from dagpost.inference.method import Problem
from dagpost.posterior.records import ExactDiagnostics
from dagpost.report.sections import assess
from dagpost.report.words import method_sentence

pytestmark = pytest.mark.slow  # compiling takes most of the time


def table_of(d, seed, spread=3.0):
    """Random log weights of families; about a tenth of them are impossible, but never the empty parent set."""
    rng = np.random.default_rng(seed)
    table = spread * rng.normal(size=(d, 1 << d)) + 40.0 * rng.normal(size=(d, 1))
    table[:, 1:][rng.random((d, (1 << d) - 1)) < 0.1] = -np.inf
    table[members(d).T] = -np.inf
    return table


def drawn(table, least, seed=0):
    """Sums, at least so many accepted orders, their edge means, and the number of proposals."""
    sums, parts, proposals = [orders.order_sums(table)], [], 0
    edges = orders.EdgeMeans.none(len(table))
    for found, proposed in orders.draw_orders(sums, np.random.default_rng(seed)):
        parts.append(found)
        edges, proposals = orders.add_edges(sums, found, edges), proposals + proposed
        if edges.orders >= least:
            return sums[0], orders.Draws(*(np.concatenate(p) for p in zip(*parts))), edges, proposals
    raise AssertionError


@pytest.mark.parametrize(("d", "seed", "spread"), [(2, 0, 1.0), (5, 1, 3.0), (5, 2, 0.3), (8, 3, 3.0), (8, 4, 20.0)])
def test_normaliser_and_edges_are_those_of_all_dags(d, seed, spread):
    """Five standard errors, and what draws cannot show; with a spread of 20 nats few graphs have all the weight."""
    table = table_of(d, seed, spread)
    sums, _, edges, proposals = drawn(table, 20_000)
    layers = backward_pass(table)
    share = edges.orders / proposals
    error = 5 * np.sqrt((1 - share) / share / proposals)
    assert sums.log_bound + np.log(share) == pytest.approx(layers.log_normaliser, abs=error + 1e-9)
    assert sums.log_bound >= layers.log_normaliser - 1e-9
    exact = (family_probabilities(layers) @ members(d)).T
    assert (np.abs(edges.mean - exact) <= 5 * edges.error + 10 / edges.orders).all()
    assert edges.error.max() < 0.01


def test_every_dag_is_drawn_as_often_as_it_should():
    """All 543 DAGs on four nodes; the deviation of each from its probability, in standard errors, is below five."""
    table = table_of(4, seed=5, spread=1.0)
    sums, draws, _, _ = drawn(table, 100_000)
    graphs = orders.graphs_of([sums], draws, np.random.default_rng(1))
    assert all(is_acyclic(g) for g in graphs[:200])
    every = all_dags(4)
    weights = log_weights(table, every)
    p = np.exp(weights - np.logaddexp.reduce(weights))
    place = {g.tobytes(): k for k, g in enumerate(every)}
    counts = np.bincount([place[g.tobytes()] for g in graphs], minlength=len(every))
    m = len(graphs)
    possible = m * p > 5
    assert (np.abs(counts - m * p)[possible] < 5 * np.sqrt(m * p * (1 - p))[possible]).all()
    assert possible.sum() > 100 and counts[~np.isfinite(weights)].sum() == 0
    # all of them together: the statistic of Pearson, whose standard deviation is sqrt(2 k)
    k = possible.sum()
    pearson = np.sum((counts - m * p)[possible] ** 2 / (m * p)[possible])
    assert abs(pearson - k) < 5 * np.sqrt(2 * k)


def test_an_order_is_the_canonical_one_of_its_graph():
    """The next node is the one of lowest rank whose parents are placed."""
    table = table_of(7, seed=6)
    sums, draws, _, _ = drawn(table, 500)
    graphs = orders.graphs_of([sums], draws, np.random.default_rng(1))
    for graph, order in zip(graphs[:500], draws.nodes):
        placed = np.zeros(7, dtype=bool)
        for node in order:
            free = [j for j in range(7) if not placed[j] and placed[graph[:, j]].all()]
            assert node == min(free, key=lambda j: sums.rank[j])
            placed[node] = True


def test_draws_do_not_depend_on_the_number_of_cores(monkeypatch):
    table = table_of(6, seed=7)
    one = drawn(table, 100)
    monkeypatch.setattr(orders, "available_cores", lambda: 5)
    np.testing.assert_array_equal(one[1].nodes, drawn(table, 100)[1].nodes)


def test_no_dag_is_possible():
    table = np.full((3, 8), -np.inf)
    table[[0, 1, 2], [2, 4, 1]] = 0.0  # a cycle
    assert orders.order_sums(table).log_bound == -np.inf


# ---- the method


def data_of(nodes, rows=100, seed=1):
    return dp.simulate("linear", nodes=nodes, observations=rows, seed=seed, interventional_sets=0).train


@pytest.mark.parametrize(
    ("model", "prior"),
    [("bge", "erdos-renyi"), ("linear", "uniform"), ("bge", "unknown-density"), ("additive", "scale-free")],
)
def test_exact_by_orders_is_exact_by_layers(model, prior):
    knowledge, data = dp.Knowledge(required=["x0 -> x5"], forbidden=["x1 -> x2"]), data_of(7)
    layers = dp.exact(data, model, prior, knowledge=knowledge)
    options = {"algorithm": "orders", "draws": 500, "knowledge": knowledge, "progress": False}
    found = dp.fit(data, model, prior, "exact", **options)
    error = np.asarray(found.record.diagnostics.edge_errors)
    assert (np.abs(found.edge_marginals - layers.edge_marginals) <= 5 * error + 0.002).all() and error.max() <= 0.005
    assert found.log_normaliser == pytest.approx(layers.log_normaliser, abs=0.1)
    assert found.log_evidence == pytest.approx(layers.log_evidence, abs=0.2)
    np.testing.assert_array_equal(found.map_graph, layers.map_graph)
    few = layers.graphs[:5]
    np.testing.assert_allclose(found.log_probability(few), layers.log_probability(few), atol=0.1)
    assert found.graphs[:, 0, 5].all() and not found.graphs[:, 1, 2].any()
    assert found.sample(30, seed=1).shape == (30, 7, 7)
    names = [s.parents for s in found.parents("x5")]
    assert all("x0" in parents for parents in names)


def test_auto_takes_orders_beyond_the_layers(tmp_path):
    data, nodes = data_of(EXACT_UP_TO + 1), EXACT_UP_TO + 1
    post = dp.fit(data, "bge", draws=200, seed=3)
    diagnostics = post.record.diagnostics
    assert isinstance(diagnostics, ExactDiagnostics) and diagnostics.algorithm == "orders"
    assert post.record.verdict.trusted and "independent draws" in post.record.verdict.text
    assert post.is_sample and post.graphs.shape == (200, nodes, nodes)
    assert np.abs(post.graphs.mean(axis=0) - post.edge_marginals).max() < 5 * 0.5 / np.sqrt(200)
    intervals = post.edge_intervals(0.9)
    assert intervals.attrs["source"] == "orders" and (intervals.upper > intervals.lower).any()
    assert "orders" in method_sentence("auto", diagnostics)
    verdict = assess(post)
    assert verdict.level == "good" and "independent draws" in verdict.headline
    again = dp.load(post.save(tmp_path / "posterior.nc"))
    assert again.record.diagnostics == diagnostics
    chains = dp.fit(data, "bge", precision=0.01, max_moves=30_000_000, progress=False)
    assert np.abs(chains.edge_marginals - post.edge_marginals).max() < 0.08


def test_what_orders_cannot_take_goes_to_chains(monkeypatch):
    def chosen(model, prior, limit=None):
        return dp.Auto().is_exact(Problem(data_of(EXACT_UP_TO + 2, 20), model, prior, 0, Clock(limit)))

    assert chosen(dp.BGe(), dp.ErdosRenyi()) and not chosen(dp.BGe(), dp.ErdosRenyi(), limit=0.1)
    assert chosen(dp.BGe(), dp.UnknownDensity())
    assert not chosen(dp.GaussianProcess(), dp.ErdosRenyi())
    plan = dp.Auto().plan(Problem(data_of(20, 20), dp.BGe(), dp.UnknownDensity(), 0, Clock(None)))
    assert plan == "exact draws from sums over all orders of 20 columns, about 48 s"
    monkeypatch.setattr("dagpost.inference.auto.available_memory", lambda: 0.01)
    assert not chosen(dp.BGe(), dp.ErdosRenyi())


def test_too_few_accepted_orders_are_an_error(monkeypatch):
    monkeypatch.setattr(by_orders, "MOST_PROPOSALS", 1)
    with pytest.raises(dp.InputError, match="orders were accepted"):
        dp.fit(data_of(6), "bge", method="exact", algorithm="orders", draws=10**6, progress=False)


@pytest.mark.slow
def test_with_too_few_accepted_orders_auto_runs_chains(monkeypatch):
    monkeypatch.setattr("dagpost.inference.auto.EXACT_UP_TO", 5)
    assert dp.fit(data_of(6), "bge", draws=100, progress=False).record.verdict.text.startswith("exact")
    monkeypatch.setattr(by_orders, "MOST_PROPOSALS", 0)
    post = dp.fit(data_of(6), "bge", draws=10**5, max_moves=None, progress=False, time_limit=20)
    assert "chains agree" in post.record.verdict.text
    exact = dp.exact(data_of(6), "bge")
    assert np.abs(post.edge_marginals - exact.edge_marginals).max() < 0.05
