"""Graphs that lose their weakest edges until they are what they should be."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dagpost.graphs.acyclicity import find_cycle
from dagpost.typing import Graph


def without_cycles(graph: Graph, strength: Float[np.ndarray, "d d"]) -> Graph:
    """The DAG that is left when each cycle loses its weakest edge."""
    graph = graph.copy()
    while (cycle := find_cycle(graph)) is not None:
        edges = list(zip(cycle, cycle[1:] + cycle[:1]))
        graph[min(edges, key=lambda edge: strength[edge])] = False
    return graph


def with_few_parents(graph: Graph, strength: Float[np.ndarray, "d d"], most: int) -> Graph:
    """The graph in which every node keeps the edges from its `most` strongest parents."""
    graph = graph.copy()
    for j in np.flatnonzero(graph.sum(axis=0) > most):
        parents = np.flatnonzero(graph[:, j])
        strongest_first = parents[np.argsort(-strength[parents, j], kind="stable")]
        graph[strongest_first[most:], j] = False
    return graph
