import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError, WeightingWarning
from dagpost.graphs import all_dags, essential_graph
from dagpost.models import MODELS, as_model
from dagpost.posterior import Posterior, log_joint_of
from dagpost.posterior.records import RunRecord, Sampling
from dagpost.priors import as_prior


def posterior_of(graphs, weights=None, **options):
    graphs = np.asarray(graphs, dtype=bool)
    weights = np.zeros(len(graphs)) if weights is None else np.log(weights)
    names = tuple("abcdefgh"[: graphs.shape[1]])
    return Posterior(graphs, weights, names, dp.BGe(), dp.Uniform(), **options)


A = [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
B = [[0, 1, 1], [0, 0, 0], [0, 0, 0]]
C = [[0, 1, 0], [0, 0, 0], [0, 1, 0]]


def test_weights_are_normalised_and_read_only():
    post = posterior_of([A, B], [2.0, 6.0])
    np.testing.assert_allclose(post.weights, [0.25, 0.75])
    with pytest.raises(ValueError):
        post.graphs[0, 0, 1] = False
    assert len(post) == 2 and post.nodes == 3


def test_edges_and_features():
    post = posterior_of([A, B, C], [0.5, 0.3, 0.2])
    frame = post.edge_probabilities
    assert frame.loc["a", "b"] == pytest.approx(1.0)
    assert frame.loc["b", "c"] == pytest.approx(0.5)
    assert frame.loc["a", "c"] == pytest.approx(0.3)
    assert post.expected_edges == pytest.approx(2.0)
    assert post.probability(lambda g: g[0, 1] and g[1, 2]) == pytest.approx(0.5)
    table = post.edge_table()
    assert list(table.iloc[0])[:3] == ["a", "b", pytest.approx(1.0)] and len(table) == 6


def test_pairs_come_before_directions():
    """a and b are certainly joined, in either direction; b -> c has more probability than either of the two."""
    forth, back = np.zeros((2, 3, 3), dtype=bool)
    forth[0, 1] = back[1, 0] = forth[1, 2] = back[1, 2] = True
    post = posterior_of([forth, back, np.zeros((3, 3), dtype=bool)], [0.4, 0.5, 0.1])
    pairs = post.pair_table()
    assert len(pairs) == 3 and list(pairs.iloc[0])[:2] in (["b", "a"], ["b", "c"])
    joined = pairs[(pairs.cause == "b") & (pairs.effect == "a")].iloc[0]
    assert (joined.adjacent, joined.direction) == (pytest.approx(0.9), pytest.approx(5 / 9))
    assert pairs.adjacent.is_monotonic_decreasing and pairs.adjacent.iloc[-1] == 0
    edges = post.edge_table().set_index(["cause", "effect"])
    assert edges.loc[("a", "b"), "adjacent"] == pytest.approx(0.9) and edges.loc[("b", "c"), "direction"] == 1


def test_median_and_map_graph():
    post = posterior_of([A, B, C, B], [0.35, 0.3, 0.05, 0.3])
    np.testing.assert_array_equal(post.map_graph, B)  # B counts twice
    np.testing.assert_array_equal(post.median_graph, B)
    np.testing.assert_array_equal(posterior_of([A, C], [0.5, 0.5]).median_graph, np.array(A) & np.array(C))


def test_essential_graphs():
    reverse = np.array(A).T
    post = posterior_of([A, reverse, C], [0.3, 0.3, 0.4])
    first, second = post.essential_graphs()
    assert first.probability == pytest.approx(0.6)
    np.testing.assert_array_equal(first.graph, essential_graph(np.array(A)))
    np.testing.assert_array_equal(second.graph, C)
    assert len(post.essential_graphs(top=1)) == 1


def test_posterior_weighting_merges_duplicates():
    post = posterior_of([A, B, A], log_joint=np.array([-10.0, -11.0, -10.0]))
    weighted = post.weighted("posterior")
    assert len(weighted) == 2
    np.testing.assert_allclose(weighted.weights, np.exp([-10, -11]) / np.exp([-10, -11]).sum())
    np.testing.assert_allclose(weighted.weighted("uniform").weights, [2 / 3, 1 / 3])
    np.testing.assert_allclose(post.weighted("uniform").weights, [1 / 3] * 3)
    np.testing.assert_allclose(post.merged().weights, [2 / 3, 1 / 3])


def test_same_graph_with_other_parameters_is_another_particle():
    theta = np.zeros((3, 3, 3))
    theta[2, 0, 1] = 1.0
    post = posterior_of([A, A, A], theta=theta, log_joint=np.array([-1.0, -1.0, -2.0]))
    weighted = post.weighted("posterior")
    assert len(weighted) == 2 and weighted.theta.shape == (2, 3, 3)
    np.testing.assert_allclose(weighted.weights, np.exp([-1, -2]) / np.exp([-1, -2]).sum())


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("prior_name", ["erdos-renyi", "scale-free"])
def test_log_joint_contains_prior_and_likelihood(name, prior_name):
    model, prior = as_model(name), as_prior(prior_name)
    sim = dp.simulate(name, nodes=4, observations=30, seed=0, interventional_sets=0)
    graphs = all_dags(4)[::100]
    thetas = [model.sample_theta(key, 4) for key in jax.random.split(jax.random.key(0), len(graphs))]
    theta = jax.tree.map(lambda *leaves: np.stack(leaves), *thetas)
    stats = model.summarise(sim.train)
    found = log_joint_of(graphs, theta, model, prior, stats)
    assert found.dtype == np.float64
    with jax.enable_x64(True):
        for m, graph in enumerate(graphs):
            one = jax.tree.map(lambda leaf, m=m: leaf[m], theta)
            expected = float(prior.log_density(graph.astype(float))) + float(model.log_joint(graph, one, stats))
            assert found[m] == pytest.approx(expected, rel=1e-9)


def test_weights_are_float64_where_it_matters():
    """Two graphs whose log joints differ by 0.5 at a size of 1e8: float32 could not tell them apart."""
    post = posterior_of([A, B], log_joint=np.array([-1e8, -1e8 - 0.5]))
    np.testing.assert_allclose(post.weighted("posterior").weights[0], 1 / (1 + np.exp(-0.5)), rtol=1e-6)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: posterior_of(np.zeros((0, 3, 3))), "at least one graph"),
        (lambda: posterior_of([[[0, 1], [1, 0]]]), "graph 0 of the posterior has a cycle"),
        (lambda: posterior_of([A], [0.0]), "not all of them -inf"),
        (lambda: posterior_of([A, B], [1.0]), "one number for each graph"),
        (lambda: posterior_of([A]).weighted("posterior"), "does not know the log density"),
        (lambda: posterior_of([A]).weighted("postrior"), "did you mean 'posterior'"),
    ],
)
def test_errors_name_the_cause(make, message):
    with np.errstate(divide="ignore"), pytest.raises(InputError, match=message):
        make()


def test_copies_of_a_graph_are_one_where_parameters_are_integrated_out():
    """Each copy has a fresh draw of its parameters, which tells nothing apart."""
    graphs = np.asarray([A, B, A, A], dtype=bool)
    joint = np.log([0.2, 0.6, 0.2, 0.2])
    theta = np.random.default_rng(0).standard_normal((4, 3, 3))
    names, model = ("a", "b", "c"), dp.LinearGaussian()

    def of(collapsed):
        record = RunRecord("dibs", Sampling(collapsed=collapsed))
        return Posterior(graphs, np.zeros(4), names, model, dp.Uniform(), theta=theta, log_joint=joint, record=record)

    weighted = of(True).weighted("posterior")
    assert len(weighted) == 2
    np.testing.assert_allclose(weighted.weights, [0.25, 0.75])  # A's posterior counts once, not three times
    np.testing.assert_array_equal(weighted.theta, theta[:2])
    assert len(of(False).weighted("posterior")) == 4  # graphs with different parameters are different particles


def test_draws_of_the_posterior_are_not_weighed_twice():
    record = RunRecord("dibs", Sampling(collapsed=True, sample=True))
    marginals = np.full((3, 3), 0.25)
    post = posterior_of([A, A, B], log_joint=np.log([0.1, 0.1, 0.9]), record=record, marginals=marginals)
    with pytest.warns(WeightingWarning, match="'dibs' are draws of the posterior"):
        same = post.weighted("posterior")
    np.testing.assert_allclose(same.weights, [1 / 3] * 3)
    np.testing.assert_array_equal(same.edge_marginals, marginals)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "model", "options", "sample"),
    [
        ("dibs", "linear", {"steps": 20, "particles": 8, "moves": 200}, True),
        ("dibs", "linear", {"steps": 20, "particles": 30, "moves": 0}, False),  # of 25 DAGs: some twice
        ("mc3", "bge", {"particles": 8, "burn_in": 200, "thin": 20}, True),
        ("g-mc3", "linear", {"particles": 4, "burn_in": 20, "thin": 5}, True),
        ("auto", "bge", {"draws": 20, "max_moves": 50_000}, True),
    ],
)
def test_methods_say_whether_they_sample_the_posterior(method, model, options, sample):
    data = dp.simulate("linear", nodes=3, observations=50, seed=2, interventional_sets=0).train
    post = dp.fit(data, model, method=method, progress=False, **options)
    assert post.is_sample == sample
    if sample:
        with pytest.warns(WeightingWarning):
            weighted = post.weighted("posterior")
        np.testing.assert_array_equal(weighted.edge_marginals, post.edge_marginals)
    else:
        distinct = len(np.unique(post.graphs.reshape(len(post), -1), axis=0))
        assert len(post.weighted("posterior")) == distinct < len(post)


@pytest.mark.slow
def test_results_are_tables_in_a_notebook():
    names = ("<b>a", "b", "c", "d", "e", "f")
    data = dp.Dataset(dp.simulate(nodes=6, observations=50, seed=1).train.values, names=names)
    post = dp.exact(data, model="bge", draws=50)
    shown = post._repr_html_()
    assert "&lt;b&gt;a" in shown and "<b>a" not in shown and "5 more rows are not shown" in shown
    best = post.pair_table().iloc[0]
    assert f"{best.adjacent:.3g}" in shown and shown.count("<tr") == 11
    effect = post.effect("<b>a", "b")
    assert f"{effect.mean:.3g}" in effect._repr_html_() and "<b>a" not in effect._repr_html_()
    found = dp.next_experiment(post, ["b", "c"], outcomes=8, rows=1)
    assert found.sentence.split(" (")[0] in found._repr_html_()
