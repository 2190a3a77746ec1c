"""GES, against the same search over single DAGs and against causal-learn."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.graphs import all_dags, consistent_extension, essential_graph
from dagpost.graphs.essential import complete
from dagpost.inference.bootstrap import ges
from dagpost.inference.bootstrap.ges import greedy_search, improve, limited_search, workspace
from dagpost.models.counts import no_counts

DAGS = all_dags(4)
CLASSES = essential_graph(DAGS)

pytestmark = pytest.mark.slow  # compiling takes as long as all of these tests


def drawn(prior, nodes, rows, seed):
    sim = dp.simulate("linear", prior, nodes=nodes, observations=rows, seed=seed, interventional_sets=0)
    return sim.train.values[np.random.default_rng(seed).integers(rows, size=rows)]


def bic(values, penalty=1.0):
    """Of each DAG on four nodes, by least squares, with a factor on its penalty."""
    n, centred = len(values), values - values.mean(axis=0)
    out = np.zeros(len(DAGS))
    for m, graph in enumerate(DAGS):
        for j in range(4):
            parents = centred[:, graph[:, j]]
            left = centred[:, j] - parents @ np.linalg.lstsq(parents, centred[:, j])[0]
            out[m] -= 0.5 * n * np.log(np.mean(left**2)) + penalty * 0.5 * np.log(n) * parents.shape[1]
    return out


def by_single_dags(values, penalty=1.0):
    """What GES stands for: go to the best class among those whose DAGs have one edge more than a DAG of this one, while
    that helps; then likewise with one edge less."""
    scores = bic(values, penalty)
    sizes = DAGS.sum(axis=(1, 2))
    now = int(np.flatnonzero(sizes == 0)[0])
    for change in (1, -1):
        while True:
            members = np.flatnonzero((CLASSES[now] == CLASSES).all(axis=(1, 2)))
            near = [
                k
                for k in np.flatnonzero(sizes == sizes[now] + change)
                if any((DAGS[k] ^ DAGS[m]).sum() == 1 for m in members)
            ]
            best = max(near, key=lambda k: scores[k], default=now)
            if scores[best] <= scores[now] + 1e-9:
                break
            now = best
    return CLASSES[now]


@pytest.mark.parametrize("penalty", [1.0, 3.0])
@pytest.mark.parametrize("rows", [12, 40, 400])
def test_steps_are_those_of_single_dags(rows, penalty):
    for seed in range(8):
        values = drawn("erdos-renyi", 4, rows, seed)
        assert (greedy_search(values, penalty=penalty) == by_single_dags(values, penalty)).all(), seed


class Expired:
    expired = True


def test_a_time_limit_ends_the_search_with_the_graph_reached():
    values = drawn("erdos-renyi", 25, 60, 0)
    whole, (part, complete) = greedy_search(values), limited_search(values, clock=Expired())
    assert not complete and limited_search(values[:, :3], clock=Expired()).complete
    ends = whole.astype(int).sum() - (whole & whole.T).sum() // 2, part.astype(int).sum() - (part & part.T).sum() // 2
    assert ends[1] == ges.STEPS < ends[0]
    assert consistent_extension(part).sum() == ges.STEPS


def without_bounds(values):
    """The same search, in which every step looks at all pairs."""
    n, d = values.shape
    graph, scratch = np.zeros((d, d), dtype=bool), workspace(d, no_counts(d))
    for inserting in (True, False):
        scratch.bounds[:] = np.inf
        while improve(graph, np.cov(values.T, ddof=0), n, 0.5 * np.log(n), inserting, scratch):
            scratch.bounds[:] = np.inf
    return graph


@pytest.mark.parametrize("prior", ["erdos-renyi", "scale-free"])
@pytest.mark.parametrize(("nodes", "rows"), [(6, 20), (12, 30), (25, 60)])
def test_bounds_pass_over_no_better_step(prior, nodes, rows):
    for seed in range(40):
        values = drawn(prior, nodes, rows, 200 + seed)
        assert (greedy_search(values) == without_bounds(values)).all(), seed


@pytest.mark.parametrize("prior", ["erdos-renyi", "scale-free"])
def test_bounds_that_are_kept_are_those_of_the_graph(prior):
    for seed in range(30):
        values = drawn(prior, 8, 30, 300 + seed)
        n, d = values.shape
        covariance, price = np.cov(values.T, ddof=0), 0.5 * np.log(n)
        graph, scratch, anew = np.zeros((d, d), dtype=bool), *(workspace(d, no_counts(d)) for _ in range(2))
        clique = np.zeros(d, dtype=bool)
        for inserting in (True, False):
            scratch.bounds[:] = np.inf
            while improve(graph, covariance, n, price, inserting, scratch):
                for y, x in zip(*np.nonzero(scratch.bounds < np.inf)):
                    if x != y and graph[x, y] != inserting and not (inserting and graph[y, x]):
                        anew.listed[:] = -1
                        ges._best_of_pair(x, y, graph, covariance, n, price, inserting, ges.UNBEATEN, clique, anew)
                        assert scratch.bounds[y, x] == pytest.approx(anew.bounds[y, x], abs=1e-9), (seed, x, y)


def by_causal_learn(values):
    found = pytest.importorskip("causallearn.search.ScoreBased.GES", reason="make setup-bench installs it")
    return found.ges(values, score_func="local_score_BIC")["G"].graph == -1  # tails


@pytest.mark.slow
@pytest.mark.parametrize("prior", ["erdos-renyi", "scale-free"])
@pytest.mark.parametrize(("nodes", "rows"), [(2, 30), (6, 25), (8, 100), (10, 1000)])
def test_causal_learn_finds_the_same(prior, nodes, rows):
    for seed in range(5):
        values = drawn(prior, nodes, rows, 100 + seed)
        assert (greedy_search(values) == by_causal_learn(values)).all(), seed


@pytest.mark.slow
@pytest.mark.parametrize("rare", [("scale-free", 6, 25, 28), ("erdos-renyi", 8, 40, 29), ("erdos-renyi", 12, 60, 29)])
def test_neighbours_that_both_ends_share_must_be_a_clique(rare):
    """Data sets, one in a hundred, on which a step where they are not would be taken."""
    values = drawn(*rare)
    assert (greedy_search(values) == by_causal_learn(values)).all()


@pytest.mark.slow
def test_what_causal_learn_found_without_it():
    found = greedy_search(drawn("scale-free", 6, 25, 28))
    assert list(zip(*np.nonzero(found))) == [(1, 0), (2, 0), (2, 3), (3, 1), (4, 0), (4, 3), (5, 0)]


def test_columns_can_come_in_any_order():
    values = drawn("scale-free", 12, 60, 3)
    order = np.random.default_rng(0).permutation(12)
    assert (greedy_search(values[:, order]) == greedy_search(values)[np.ix_(order, order)]).all()


def test_columns_that_others_determine_end_the_search_too():
    values = np.random.default_rng(1).standard_normal((50, 3))
    values = np.column_stack([values, values[:, 0] + values[:, 1], values[:, 2]])
    found = greedy_search(values)
    assert found[2, 4] or found[4, 2]
    assert (found[0, 3] or found[3, 0]) and (found[1, 3] or found[3, 1])


def test_one_column_has_no_edge():
    assert greedy_search(np.arange(5.0)[:, None]).tolist() == [[False]]


def test_completing_gives_the_class_of_an_extension():
    for graph, essential in zip(DAGS[::7], CLASSES[::7]):
        half = graph.copy()
        assert complete(half) and (half == essential).all()
        partly = essential.copy()
        assert complete(partly) and (partly == essential_graph(consistent_extension(essential))).all()
    square = np.zeros((4, 4), dtype=bool)  # undirected and without a chord: any direction makes a new v-structure
    for a in range(4):
        square[a, (a + 1) % 4] = square[(a + 1) % 4, a] = True
    assert not complete(square)
