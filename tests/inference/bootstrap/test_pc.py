"""PC: against d-separation, against tests one by one, and against causal-learn."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import dagpost as dp
from dagpost.graphs import all_dags, essential_graph
from dagpost.inference.bootstrap.pc import _apply_meek_rules, pc_of_correlations, pc_search

SETS = [(5, 50), (5, 1000), (8, 100), (12, 40), (12, 1000), (20, 100)]

pytestmark = pytest.mark.slow  # compiling takes as long as all of these tests


def drawn(prior, nodes, rows, seed):
    """Rows of a simulated network, drawn with replacement as the bootstrap does."""
    sim = dp.simulate("linear", prior, nodes=nodes, observations=rows, seed=seed, interventional_sets=0)
    return sim.train.values[np.random.default_rng(seed).integers(rows, size=rows)]


def population_correlations(graph, rng):
    """Of a linear network with this graph and weights between 0.5 and 1.5 in size: `(I - W)^-T (I - W)^-1`, scaled."""
    weights = graph * rng.uniform(0.5, 1.5, graph.shape) * rng.choice([-1, 1], graph.shape)
    inverse = np.linalg.inv(np.eye(len(graph)) - weights)
    covariance = inverse.T @ inverse
    scale = np.sqrt(np.diag(covariance))
    return covariance / np.outer(scale, scale)


@pytest.mark.slow
def test_every_class_on_four_nodes_is_found_from_its_correlations():
    """With 10^14 rows a partial correlation of 2.6e-7 is significant: tests tell d-separation."""
    rng = np.random.default_rng(0)
    for graph in all_dags(4):
        found = pc_of_correlations(population_correlations(graph, rng), 10**14, 0.01)
        assert (found == essential_graph(graph)).all(), graph


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [7, 12])
def test_classes_of_larger_graphs_are_found_from_their_correlations(nodes):
    rng = np.random.default_rng(nodes)
    for _ in range(40):
        order = rng.permutation(nodes)
        graph = np.triu(rng.random((nodes, nodes)) < 2.5 / nodes, 1)[np.ix_(order, order)]
        found = pc_of_correlations(population_correlations(graph, rng), 10**14, 0.01)
        assert (found == essential_graph(graph)).all(), graph


def p_value(values, x, y, given):
    """Fisher's z by its textbook formula, from the precision matrix."""
    precision = np.linalg.inv(np.corrcoef(values[:, [x, y, *given]].T))
    r = -precision[0, 1] / math.sqrt(precision[0, 0] * precision[1, 1])
    return 2 * norm.sf(math.sqrt(len(values) - len(given) - 3) * abs(math.atanh(r)))


def skeleton_one_by_one(values, significance):
    """PC-stable in plain Python."""
    d = values.shape[1]
    adjacent = ~np.eye(d, dtype=bool)
    for size in range(d - 1):
        before = adjacent.copy()
        for x, y in itertools.permutations(range(d), 2):
            if before[x, y]:
                others = [k for k in np.flatnonzero(before[x]) if k != y]
                if any(p_value(values, x, y, given) > significance for given in itertools.combinations(others, size)):
                    adjacent[x, y] = adjacent[y, x] = False
    return adjacent


@pytest.mark.parametrize("significance", [0.2, 0.01])
def test_the_skeleton_is_that_of_tests_one_by_one(significance):
    for seed, rows in enumerate([12, 20, 50, 200]):
        values = drawn("erdos-renyi", 7, rows, seed)
        found = pc_search(values, significance)
        assert ((found | found.T) == skeleton_one_by_one(values, significance)).all(), rows


def test_separators_are_all_nodes_of_all_sets_that_separate():
    """x and z are independent given a, and given b: neither is the middle of a collider."""
    correlations = np.eye(4)
    x, z, a, b = range(4)
    for i, j, value in [(x, a, 0.6), (x, b, 0.6), (z, a, 0.6), (z, b, 0.6), (x, z, 0.36), (a, b, 0.0)]:
        correlations[i, j] = correlations[j, i] = value
    rows = 60  # given one of them nothing is left of x and z; given none they are dependent
    found = pc_of_correlations(correlations, rows, 0.05)
    assert not found[x, z] and not found[z, x]
    assert found[a, x] and found[a, z] and found[b, x] and found[b, z]  # only a and b can be ends of colliders


def test_no_rule_closes_a_directed_cycle():
    """From u -> x the first rule has x -> y for x - y; y -> v -> x says otherwise, and so does the second rule."""
    u, x, y, v = range(4)
    directed = np.zeros((4, 4), dtype=bool)
    directed[u, x] = directed[y, v] = directed[v, x] = True
    adjacent = directed | directed.T
    adjacent[x, y] = adjacent[y, x] = True
    assert _apply_meek_rules(adjacent, directed) and not _apply_meek_rules(adjacent, directed)
    assert directed[y, x] and not directed[x, y]


def test_columns_can_come_in_any_order():
    values = drawn("scale-free", 12, 60, 3)
    order = np.random.default_rng(0).permutation(12)
    one, two = pc_search(values[:, order], 0.05), pc_search(values, 0.05)[np.ix_(order, order)]
    assert ((one | one.T) == (two | two.T)).all()


def test_columns_that_others_determine_are_no_error():
    values = np.random.default_rng(1).standard_normal((50, 3))
    values = np.column_stack([values, values[:, 0] + values[:, 1], values[:, 2], np.ones(50)])
    found = pc_search(values, 0.05)
    found |= found.T
    assert found[2, 4] and found[0, 3] and found[1, 3]
    assert not found[5].any()  # constant: nothing depends on it


def test_few_rows_and_one_column_are_no_error():
    assert pc_search(np.arange(5.0)[:, None], 0.05).tolist() == [[False]]
    few = np.random.default_rng(2).standard_normal((4, 6))
    assert pc_search(few, 0.5).shape == (6, 6)


def by_causal_learn(values, significance):
    """Its graph; an edge with two arrows has no direction."""
    found = pytest.importorskip("causallearn.search.ConstraintBased.PC", reason="make setup-bench installs it")
    marks = found.pc(values, alpha=significance, indep_test="fisherz", show_progress=False).G.graph
    return (marks == -1) | ((marks == 1) & (marks.T == 1))


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.parametrize("prior", ["erdos-renyi", "scale-free"])
@pytest.mark.parametrize("significance", [0.05, 0.01])
def test_causal_learn_finds_the_same(prior, significance):
    """Skeletons always; directions depend on the order of rules where tests contradict each other."""
    same = []
    for (nodes, rows), seed in itertools.product(SETS, range(3)):
        values = drawn(prior, nodes, rows, 500 + seed)
        ours, theirs = pc_search(values, significance), by_causal_learn(values, significance)
        assert ((ours | ours.T) == (theirs | theirs.T)).all(), (nodes, rows, seed)
        same.append((ours == theirs).all())
    assert np.mean(same) >= 0.95
