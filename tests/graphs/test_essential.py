import numpy as np
import pytest

from dagpost.errors import InputError
from dagpost.graphs import (
    all_dags,
    consistent_extension,
    equivalent,
    essential_graph,
    in_class,
    is_acyclic,
)
from dagpost.graphs.dags import erdos_renyi_dag


def signature(graph):
    """Skeleton and v-structures: what defines the class (Verma and Pearl 1990)."""
    skeleton = graph | graph.T
    d = graph.shape[0]
    colliders = {
        (a, c, b)
        for c in range(d)
        for a in range(d)
        for b in range(a)
        if graph[a, c] and graph[b, c] and not skeleton[a, b]
    }
    return skeleton.tobytes(), frozenset(colliders)


def classes_of(graphs):
    out = {}
    for m, graph in enumerate(graphs):
        out.setdefault(signature(graph), []).append(m)
    return list(out.values())


@pytest.mark.parametrize("d, count", [(1, 1), (2, 2), (3, 11), (4, 185), (5, 8782)])
def test_number_of_classes(d, count):
    essential = essential_graph(all_dags(d))
    assert len(np.unique(essential.reshape(len(essential), -1), axis=0)) == count


@pytest.mark.parametrize("d", [3, 4, 5])
def test_essential_graph_is_the_union_of_its_class(d):
    """Definition: an edge is directed exactly when every member of the class directs it that way."""
    graphs = all_dags(d)
    essential = essential_graph(graphs)
    for members in classes_of(graphs):
        union = graphs[members].any(axis=0)
        assert (essential[members] == union).all()


def test_extension_stays_in_the_class():
    graphs = all_dags(4)
    rng = np.random.default_rng(0)
    for graph, essential in zip(graphs, essential_graph(graphs)):
        for chosen in (None, rng):
            extension = consistent_extension(essential, chosen)
            assert is_acyclic(extension)
            assert in_class(extension, essential)
            assert equivalent(extension, graph)


def test_random_extensions_reach_the_whole_class():
    essential = essential_graph(np.triu(np.ones((4, 4), dtype=bool), 1))
    rng = np.random.default_rng(1)
    found = {consistent_extension(essential, rng).tobytes() for _ in range(500)}
    assert len(found) == 24


def test_extension_of_a_large_graph():
    rng = np.random.default_rng(2)
    for _ in range(20):
        graph = erdos_renyi_dag(rng, 30, 0.15)
        essential = essential_graph(graph)
        assert in_class(consistent_extension(essential, rng), essential)


def test_no_extension_is_said():
    square = np.zeros((4, 4), dtype=bool)
    for a, b in [(0, 1), (1, 2), (2, 3), (3, 0)]:
        square[a, b] = square[b, a] = True
    with pytest.raises(InputError, match="no consistent DAG extension"):
        consistent_extension(square)


def test_equivalent_tells_classes_apart():
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    fork = np.array([[0, 0, 0], [1, 0, 1], [0, 0, 0]])
    collider = np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]])
    assert equivalent(chain, fork)
    assert not equivalent(chain, collider)


def test_cyclic_graph_is_refused():
    graphs = np.zeros((2, 2, 2), dtype=bool)
    graphs[1, 0, 1] = graphs[1, 1, 0] = True
    with pytest.raises(InputError, match="graph 1 has a cycle"):
        essential_graph(graphs)
