"""Exchanging regions leaves the joint distribution of all levels invariant; affinities are what their weights say."""

import numpy as np
import pytest

from dagpost.graphs import is_acyclic
from dagpost.inference.mcmc.ensembles import advance, graphs_of, recipe, start
from dagpost.inference.mcmc.parent_sets import affinity_of, near, near_pair
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.inference.mcmc.structure import structure_of
from dagpost.inference.mcmc.swaps import _find_regions, swap_regions, swap_scratch

from .test_moves import counts_of, exact_probabilities, p_value, problem

HEATS = np.array([1.0, 0.55, 0.2])


@pytest.mark.slow
def test_every_level_keeps_its_distribution():
    """An exchange after every 40 moves; each level against all 25 DAGs."""
    model, prior, stats = problem(rows=40)
    scoring = scorer_for(model, prior, stats, 3)
    chains = [start(np.zeros((3, 3, 3), dtype=bool), scoring, seed) for seed in range(4)]
    drawn = [[], [], []]
    advance(chains, scoring, HEATS, recipe(pair=40), 50)
    for _ in range(1500):
        advance(chains, scoring, HEATS, recipe(pair=40), 1)
        for chain in chains:
            for level, graph in enumerate(graphs_of(chain.parents)):
                drawn[level].append(graph)
    for level, heat in enumerate(HEATS):
        graphs, exact = exact_probabilities(model, prior, stats, 3, heat, reference=scoring.scorer.reference)
        assert p_value(counts_of(np.array(drawn[level]), graphs), exact) > 1e-3, heat


def ensemble(d=12, seed=1):
    model, prior, stats = problem(d=d, rows=60)
    scoring = scorer_for(model, prior, stats, d)
    out = start(np.zeros((3, d, d), dtype=bool), scoring, seed)
    advance([out], scoring, HEATS, recipe(pair=300), 20)
    return out, scoring


def test_exchanges_move_families_and_nothing_else():
    """Two levels have the same pairs of families before and after; graphs are DAGs, ancestors and scores theirs."""
    chain, scoring = ensemble()
    changed = 0
    for repeat in range(160):
        before, scores = chain.parents.copy(), chain.scores.copy()
        swap_regions(chain, scoring.scorer, HEATS, repeat % 2, swap_scratch(12, 1))
        k = repeat % 2
        for j in range(12):
            same = (chain.parents[k, j] == before[k, j]).all()
            changed += not same
            for a, b in ((k, k), (k + 1, k + 1)) if same else ((k, k + 1), (k + 1, k)):
                assert (chain.parents[a, j] == before[b, j]).all()
                assert (chain.scores[a, j] == scores[b, j]).all()
        graphs = graphs_of(chain.parents)
        assert is_acyclic(graphs).all()
        for level, graph in enumerate(graphs):
            np.testing.assert_array_equal(chain.ancestors[level], structure_of(graph).ancestors)
        advance([chain], scoring, HEATS, recipe(pair=50), 1)
    assert changed > 50


@pytest.mark.parametrize("reversed_only", [False, True])
def test_regions_are_components_and_the_same_after_an_exchange(reversed_only):
    import networkx as nx

    chain, _ = ensemble(seed=3)
    one, two = graphs_of(chain.parents[:2])
    differ = one != two
    nodes = [j for j in range(12) if differ[:, j].any()]
    links = nx.Graph()
    links.add_nodes_from(nodes)
    for i in nodes:
        for j in nodes:
            if differ[i, j] and (differ[j, i] or not reversed_only):
                links.add_edge(i, j)
    region = np.zeros(12, np.int64)
    _find_regions(chain.parents, 0, reversed_only, region)
    assert {j: int(region[j]) for j in nodes} == {j: min(c) for c in nx.connected_components(links) for j in c}
    assert all(region[j] == -1 for j in range(12) if j not in nodes)
    again = np.zeros(12, np.int64)
    _find_regions(np.ascontiguousarray(chain.parents[::-1]), 1, reversed_only, again)  # levels the other way round
    np.testing.assert_array_equal(region, again)


def test_near_nodes_have_the_frequencies_of_their_weights():
    rng = np.random.default_rng(0)
    weights = rng.gamma(0.3, size=(7, 7)) + 0.01
    affinity, state = affinity_of(weights), np.array([5], np.uint64)
    wanted = np.where(np.eye(7, dtype=bool), 0.0, weights)
    of_nodes = wanted.sum(axis=1) / wanted.sum()
    of_others = wanted / wanted.sum(axis=1, keepdims=True)
    for i, probabilities in enumerate([*of_others, of_nodes]):
        counts = np.bincount([near(affinity, i, state) for _ in range(20_000)], minlength=7)
        assert p_value(counts, probabilities) > 1e-4
    pairs = np.array([near_pair(affinity, state) for _ in range(20_000)])
    counts = np.bincount(pairs @ [7, 1], minlength=49)
    assert (counts[:: 7 + 1] == 0).all()
    assert p_value(counts, wanted.ravel() / wanted.sum()) > 1e-4


def test_an_affinity_of_other_nodes_is_refused():
    chain, scoring = ensemble()
    with pytest.raises(ValueError, match="of 3 nodes, and graphs have 12"):
        advance([chain], scoring, HEATS, recipe(affinity=affinity_of(np.ones((3, 3))), near_pair=1), 1)
