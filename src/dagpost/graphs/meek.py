"""The essential graph by its definition: skeleton, v-structures and Meek's rules; for digraphs with cycles as well.

For a DAG the result is its essential graph (Meek 1995), which `essential_graph` finds faster. A digraph with a cycle
has none; the same construction still gives a partially directed graph, and published comparisons with such a
"consensus network" rest on it.
"""

from __future__ import annotations

import numpy as np

from dagpost.errors import InputError
from dagpost.graphs.acyclicity import as_graphs
from dagpost.typing import Graph


def literal_essential_graph(graph: Graph) -> Graph:
    """Directed edges once, undirected ones in both directions.

    >>> literal_essential_graph(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])).astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    edges = as_graphs(graph)
    if edges.diagonal().any() or (edges & edges.T).any():
        raise InputError("a digraph with self-loops or edges in both directions has no v-structures to start from")
    adjacent = edges | edges.T
    directed = _v_structures(edges, adjacent)
    while True:
        undirected = adjacent & ~directed & ~directed.T
        found = undirected & _implied(directed, undirected, adjacent)
        found &= ~found.T  # where a cycle asks for both directions, neither is compelled
        if not found.any():
            return directed | undirected
        directed = directed | found


def _v_structures(edges: Graph, adjacent: Graph) -> Graph:
    """Edges i -> k with another parent j of k that is not joined to i."""
    d = len(edges)
    out = np.zeros_like(edges)
    for i, k in zip(*np.nonzero(edges)):
        out[i, k] = any(edges[j, k] and j != i and not adjacent[i, j] for j in range(d))
    return out


def _implied(directed: Graph, undirected: Graph, adjacent: Graph) -> Graph:
    """Where an undirected edge i - j must be i -> j by one of Meek's first three rules."""
    d = len(directed)
    out = np.zeros_like(directed)
    for i, j in zip(*np.nonzero(undirected)):
        arrow = any(directed[k, i] and not adjacent[k, j] and k != j for k in range(d))  # k -> i - j
        chain = bool((directed[i] & directed[:, j]).any())  # i -> k -> j
        between = np.flatnonzero(undirected[i] & directed[:, j])  # i - k -> j and i - l -> j, k and l not joined
        kite = any(not adjacent[k, m] for k in between for m in between if k < m)
        out[i, j] = arrow or chain or kite
    return out
