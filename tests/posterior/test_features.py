import networkx as nx
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import all_dags, descendants, is_acyclic
from dagpost.posterior import Posterior

RNG = np.random.default_rng(0)
DAGS = all_dags(4)
SIM = dp.simulate(nodes=4, observations=40, seed=5, interventional_sets=0)


def weighted_dags(names=("a", "b", "c", "d")) -> Posterior:
    return Posterior(DAGS, np.log(np.random.default_rng(1).gamma(0.1, size=len(DAGS))), names, dp.BGe(), dp.Uniform())


def test_descendants_against_networkx():
    graphs = np.triu(RNG.uniform(size=(30, 12, 12)) < 0.2, 1)
    order = RNG.permutation(12)
    graphs = graphs[:, order][:, :, order]
    for graph, reach in zip(graphs, descendants(graphs)):
        plain = nx.from_numpy_array(graph, create_using=nx.DiGraph)
        expected = [[j in nx.descendants(plain, i) for j in range(12)] for i in range(12)]
        np.testing.assert_array_equal(reach, expected)


def test_ancestors_and_paths_against_brute_force():
    post = weighted_dags()
    expected = np.zeros((4, 4))
    path = 0.0
    for graph, weight in zip(post.graphs, post.weights):
        plain = nx.from_numpy_array(graph, create_using=nx.DiGraph)
        for i in range(4):
            for j in nx.descendants(plain, i):
                expected[i, j] += weight
        path += weight * (plain.has_edge(0, 2) and plain.has_edge(2, 1))
    np.testing.assert_allclose(post.ancestor_probabilities, expected, atol=1e-12)
    assert post.ancestor_probability("a", "c") == pytest.approx(expected[0, 2])
    assert post.path_probability("a", "c", "b") == pytest.approx(path)
    assert post.path_probability("a", "c") == pytest.approx(post.edge_probabilities.loc["a", "c"])
    assert list(post.ancestor_probabilities.index) == ["a", "b", "c", "d"]


def test_parents():
    post = weighted_dags()
    found = post.parents_of("b", top=None)
    assert (
        found.probabilities.index.tolist() == post.edge_probabilities["b"].drop("b").sort_values()[::-1].index.tolist()
    )
    assert sum(p for _, p in found.sets) == pytest.approx(1)
    for parents, probability in found.sets:
        column = [name in parents for name in post.names]
        assert probability == pytest.approx(post.weights[(post.graphs[:, :, 1] == column).all(axis=1)].sum())
    assert len(post.parents_of(1, top=2).sets) == 2


def test_parents_of_exact_posteriors_are_exact():
    post = dp.exact(SIM.train, "bge", algorithm="layers", draws=5)
    listed = dp.exact(SIM.train, "bge")
    found, expected = post.parents_of("x1", top=3), Posterior.parents_of(listed, "x1", top=3)
    np.testing.assert_allclose([p for _, p in found.sets], [p for _, p in expected.sets], rtol=1e-8)
    assert post.parents("x1", top=3) == found.sets


def test_expectation_and_its_error():
    post = weighted_dags().resampled(400, seed=2)
    mean, error = post.expectation(lambda g: g.sum())
    counts = post.graphs.sum(axis=(1, 2))
    assert mean == pytest.approx(counts.mean()) and error == pytest.approx(counts.std() / 20)
    exact = dp.exact(SIM.train, "bge")
    assert exact.expectation(lambda g: g[0, 1]).mean == pytest.approx(exact.edge_marginals[0, 1])
    assert exact.expectation(lambda g: g[0, 1]).error == 0
    sampled = dp.exact(SIM.train, "bge", algorithm="layers")
    found = sampled.expectation(lambda g: g[0, 1])
    assert 0 < found.error < 0.006 and abs(found.mean - sampled.edge_marginals[0, 1]) < 5 * found.error + 1e-9


def test_expectation_of_arrays_is_that_of_their_entries():
    exact, drawn = dp.exact(SIM.train, "bge"), weighted_dags()
    for post in (exact, drawn):
        found = post.expectation(lambda g: g)
        assert found.mean.shape == found.error.shape == (post.nodes, post.nodes)
        for i, j in ((0, 1), (1, 0), (2, 1)):
            one = post.expectation(lambda g, i=i, j=j: g[i, j])
            assert found.mean[i, j] == pytest.approx(one.mean) and found.error[i, j] == pytest.approx(one.error)
        assert isinstance(post.expectation(lambda g: g.sum()).mean, float)
    np.testing.assert_allclose(exact.expectation(lambda g: g).mean, exact.edge_marginals)
    with pytest.raises(dp.InputError, match="different shapes"):
        exact.expectation(lambda g: np.zeros(g.sum()))


def test_resampled_draws_have_equal_weights():
    post = weighted_dags().resampled(2000, seed=0)
    assert len(post) == 2000 and (post.weights == post.weights[0]).all()
    np.testing.assert_allclose(post.edge_marginals, weighted_dags().edge_marginals, atol=0.03)


def test_consensus_is_the_best_dag_when_no_cycle_is_in_the_way():
    post = weighted_dags()
    p = post.edge_marginals
    loss = [np.sum(np.where(g, 1 - p, p)) for g in DAGS]
    best = DAGS[int(np.argmin(loss))]
    if is_acyclic(p > 0.5):
        np.testing.assert_array_equal(post.consensus_graph(), best)
    for threshold in (0.0, 0.1, 0.3, 0.5, 0.9):
        graph = post.consensus_graph(threshold)
        assert is_acyclic(graph) and (p[graph] > threshold).all()


def test_consensus_breaks_a_cycle_at_its_weakest_edge():
    """Three DAGs, each a path along the cycle a -> b -> c -> a: every edge has probability 2/3 or more."""
    paths = [[(0, 1), (1, 2)], [(1, 2), (2, 0)], [(2, 0), (0, 1)]]
    graphs = np.zeros((3, 3, 3), dtype=bool)
    for m, edges in enumerate(paths):
        for edge in edges:
            graphs[m][edge] = True
    post = Posterior(graphs, np.log([0.36, 0.34, 0.3]), ("a", "b", "c"), dp.BGe(), dp.Uniform())
    assert not is_acyclic(post.median_graph)
    assert post.edges_of(post.consensus_graph()) == ["a -> b", "b -> c"]
    assert post.edges_of(graphs[0] | graphs[0].T) == ["a - b", "b - c"]


@pytest.mark.parametrize(
    "ask, message",
    [
        (lambda p: p.ancestor_probability("a", "bb"), "unknown node 'bb': did you mean 'b'"),
        (lambda p: p.path_probability("a"), "at least two nodes"),
        (lambda p: p.parents_of(4), "there are 4 nodes"),
        (lambda p: p.parents_of(-1), "there are 4 nodes"),
        (lambda p: p.consensus_graph(1.0), "threshold=1.0"),
        (lambda p: p.consensus_graph(True), "threshold=True"),
    ],
)
def test_errors_name_the_cause(ask, message):
    with pytest.raises(InputError, match=message):
        ask(weighted_dags())
