"""The DAG that MCMC edits, against networkx and against enumeration."""

import networkx as nx
import numpy as np
import pytest

from dagpost.graphs import all_dags, is_acyclic
from dagpost.inference.mcmc.structure import add_edge, has, has_detour, neighbours, remove_edge, structure_of, to_matrix


def matrix(sets, d):
    return np.array([[bool(has(sets[j], i)) for j in range(d)] for i in range(d)])


def neighbouring_dags(graph):
    """All DAGs one addition, deletion or reversal away, by trying."""
    found = []
    d = len(graph)
    for i in range(d):
        for j in range(d):
            if i == j:
                continue
            other = graph.copy()
            other[i, j] = not graph[i, j]
            found.append(other)
            if graph[i, j]:
                turned = other.copy()
                turned[j, i] = True
                found.append(turned)
    return [g for g in found if is_acyclic(g[None])[0]]


@pytest.mark.parametrize("d", [5, 64, 70])
def test_ancestors_follow_random_edits(d):
    rng = np.random.default_rng(d)
    dag = structure_of(np.zeros((d, d), dtype=bool))
    graph = np.zeros((d, d), dtype=bool)
    edits = 0
    while edits < 150:
        i, j = rng.choice(d, 2, replace=False)
        if graph[i, j]:
            remove_edge(dag, i, j)
            graph[i, j] = False
        elif not has(dag.ancestors[i], j):
            add_edge(dag, i, j)
            graph[i, j] = True
        else:
            graph[i, j] = True
            assert not is_acyclic(graph[None])[0]
            graph[i, j] = False
            continue
        edits += 1
        if edits % 10 == 0:
            np.testing.assert_array_equal(matrix(dag.parents, d), graph)
            closure = nx.to_numpy_array(nx.transitive_closure_dag(nx.from_numpy_array(graph, create_using=nx.DiGraph)))
            np.testing.assert_array_equal(matrix(dag.ancestors, d), closure > 0)
    out = np.empty((d, d), dtype=bool)
    to_matrix(dag, out)
    np.testing.assert_array_equal(out, graph)


def test_neighbours_and_detours_of_all_dags_on_four_nodes():
    for graph in all_dags(4):
        dag = structure_of(graph)
        assert neighbours(dag) == len(neighbouring_dags(graph))
        for i, j in np.argwhere(graph):
            turned = graph.copy()
            turned[i, j], turned[j, i] = False, True
            assert has_detour(dag, i, j) != is_acyclic(turned[None])[0]
