"""Graphs that lose their weakest edges until they are what they should be."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numba import njit

from dagpost.graphs.acyclicity import find_cycle
from dagpost.typing import Graph

DENSE = 10
"""Edges for each node from which on cycles are too many to be broken up one by one."""


def without_cycles(graph: Graph, strength: Float[np.ndarray, "d d"]) -> Graph:
    """The DAG that is left when each cycle loses its weakest edge. A dense graph is built anew, from the strongest edge
    on, without those that close a cycle."""
    if graph.sum() > DENSE * len(graph):
        out = np.zeros_like(graph)
        _from_the_strongest(np.argsort(-strength, axis=None, kind="stable"), graph, out)
        return out
    graph = graph.copy()
    while (cycle := find_cycle(graph)) is not None:
        edges = list(zip(cycle, cycle[1:] + cycle[:1]))
        graph[min(edges, key=lambda edge: strength[edge])] = False
    return graph


@njit(cache=True)
def _from_the_strongest(order, graph, out):
    """Fill in the edges of `graph` in this order, unless they close a cycle; sets of nodes are bits of 64-bit words."""
    d = graph.shape[0]
    reached = np.zeros((d, (d + 63) // 64), np.uint64)  # from a node, itself included
    one = np.uint64(1)
    for i in range(d):
        reached[i, i >> 6] |= one << np.uint64(i & 63)
    for edge in order:
        i, j = edge // d, edge % d
        word, bit = i >> 6, one << np.uint64(i & 63)
        if graph[i, j] and not reached[j, word] & bit:
            out[i, j] = True
            for r in range(d):
                if reached[r, word] & bit:
                    for w in range(reached.shape[1]):
                        reached[r, w] |= reached[j, w]


def with_few_parents(graph: Graph, strength: Float[np.ndarray, "d d"], most: int) -> Graph:
    """The graph in which every node keeps the edges from its `most` strongest parents."""
    graph = graph.copy()
    for j in np.flatnonzero(graph.sum(axis=0) > most):
        parents = np.flatnonzero(graph[:, j])
        strongest_first = parents[np.argsort(-strength[parents, j], kind="stable")]
        graph[strongest_first[most:], j] = False
    return graph
