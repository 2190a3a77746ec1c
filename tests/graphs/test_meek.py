"""Skeleton, v-structures and Meek's rules give the essential graph of every DAG; cycles are taken as they come."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.graphs import all_dags, essential_graph, literal_essential_graph


def test_equals_the_essential_graph_for_all_dags_on_four_nodes():
    dags = all_dags(4)
    np.testing.assert_array_equal(np.stack([literal_essential_graph(g) for g in dags]), essential_graph(dags))


@pytest.mark.parametrize("seed", range(20))
def test_equals_the_essential_graph_for_random_dags(seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(9)
    graph = np.triu(rng.random((9, 9)) < rng.uniform(0.2, 0.6), 1)[np.ix_(order, order)]
    np.testing.assert_array_equal(literal_essential_graph(graph), essential_graph(graph))


def test_a_cycle_is_no_obstacle():
    graph = dp.sachs_graph("cdt").to_numpy()
    found = literal_essential_graph(graph)
    np.testing.assert_array_equal(found | found.T, graph | graph.T)  # the skeleton stays
    triangle = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=bool)
    assert literal_essential_graph(triangle).sum() == 6  # no v-structure: nothing is directed


def test_what_is_not_a_simple_digraph_is_refused():
    for bad in (np.eye(3, dtype=bool), np.array([[0, 1], [1, 0]], dtype=bool)):
        with pytest.raises(dp.InputError, match="v-structures"):
            literal_essential_graph(bad)
