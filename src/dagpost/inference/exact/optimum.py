"""The most probable DAG, by dynamic programming over sets of nodes (Silander and Myllymäki 2006)."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numba import njit

from dagpost.typing import Graph


@njit(cache=True)
def _best(log_weight, graph):
    d, size = log_weight.shape
    best = log_weight.copy()  # best weight of parents of j within U, and which set has it
    choice = np.empty((d, size), dtype=np.int64)
    for j in range(d):
        for s in range(size):
            choice[j, s] = s
            for i in range(d):
                if s >> i & 1 and best[j, s ^ (1 << i)] > best[j, s]:
                    best[j, s] = best[j, s ^ (1 << i)]
                    choice[j, s] = choice[j, s ^ (1 << i)]
    # value of the best DAG on each set, which ends in a node whose parents come from the rest
    value = np.full(size, -np.inf)
    last = np.full(size, -1, dtype=np.int64)
    value[0] = 0.0
    for s in range(1, size):
        for j in range(d):
            if s >> j & 1:
                rest = s ^ (1 << j)
                candidate = value[rest] + best[j, rest]
                if candidate > value[s]:
                    value[s] = candidate
                    last[s] = j
    s = size - 1
    while s and last[s] >= 0:
        j = last[s]
        s ^= 1 << j
        for i in range(d):
            graph[i, j] = choice[j, s] >> i & 1
    return value[size - 1]


def most_probable_graph(log_weight: Float[np.ndarray, "d s"]) -> tuple[Graph, float]:
    """The DAG with the largest product of family weights, and the log of that product."""
    d = log_weight.shape[0]
    graph = np.zeros((d, d), dtype=np.bool_)
    value = _best(log_weight, graph)
    return graph, float(value)
