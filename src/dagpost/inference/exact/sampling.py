"""Graphs from the tables of `layers.py`: exact draws, layer by layer, and the most probable DAG.

The most probable DAG is found by dynamic programming over sets of nodes (Silander and Myllymäki 2006).
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dagpost._util.compiled import njit
from dagpost.inference.exact.layers import Layers, first_layer, next_layer_factors, share_with_parent_in
from dagpost.typing import Graph, Graphs


@njit
def _best_dag(log_weight, graph):
    """Write the most probable DAG to `graph` and return its log weight."""
    d, size = log_weight.shape
    best = log_weight.copy()  # best weight of parents of j within U; `choice` is the set that has it
    choice = np.empty((d, size), dtype=np.int64)
    for j in range(d):
        for s in range(size):
            choice[j, s] = s
            for i in range(d):
                if s >> i & 1 and best[j, s ^ (1 << i)] > best[j, s]:
                    best[j, s] = best[j, s ^ (1 << i)]
                    choice[j, s] = choice[j, s ^ (1 << i)]
    # value of the best DAG on each set; its last node has parents among the others
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
    """Return the DAG with the largest product of family weights, and the log of that product."""
    d = log_weight.shape[0]
    graph = np.zeros((d, d), dtype=np.bool_)
    value = _best_dag(log_weight, graph)
    return graph, float(value)


@njit
def _pick(weights, count, uniform):
    """Return an index drawn in proportion to the weights, by inversion of their running sum."""
    total = 0.0
    for x in range(count):
        total += weights[x]
    target = uniform * total
    running = 0.0
    last = 0
    for x in range(count):
        if weights[x] > 0.0:
            running += weights[x]
            last = x
            if running > target:
                return x
    return last


@njit
def _draw(first, log_weight, log_total, potential, ternary, backward, uniforms, graphs):
    """Write a draw to each of `graphs`; return the number of the draw that found no next layer, or -1."""
    d = log_weight.shape[0]
    everything = (1 << d) - 1
    nodes = np.empty(d, dtype=np.int64)
    rest = np.empty(d)
    state = np.empty(1 << d, dtype=np.int64)
    factor = np.empty(1 << d)
    weights = np.empty(1 << d)
    sets = np.empty(1 << d, dtype=np.int64)
    for m in range(graphs.shape[0]):
        used = 1
        placed = layer = _pick(first, 1 << d, uniforms[m, 0])
        while placed != everything:
            count = next_layer_factors(placed, log_total, potential, ternary, nodes, state, factor)
            share_with_parent_in(layer, placed, nodes, count, log_total, rest)
            weights[0] = 1.0
            for k in range(count):
                for x in range(1 << k):
                    weights[(1 << k) + x] = weights[x] * (1.0 - rest[k])
            for x in range(1 << count):
                weights[x] *= factor[x] * backward[state[x]]
            chosen = _pick(weights, 1 << count, uniforms[m, used])
            used += 1
            following = 0
            for k in range(count):
                if chosen >> k & 1:
                    j = nodes[k]
                    following |= 1 << j
                    # parents among the placed nodes, at least one of them in the last layer
                    size = 0
                    parents = placed
                    while parents:
                        if parents & layer:
                            weights[size] = np.exp(log_weight[j, parents] - log_total[j, placed])
                            sets[size] = parents
                            size += 1
                        parents = (parents - 1) & placed
                    parents = sets[_pick(weights, size, uniforms[m, used])]
                    used += 1
                    for i in range(d):
                        if parents >> i & 1:
                            graphs[m, i, j] = True
            if following == 0:
                return m
            placed |= following
            layer = following
    return -1


def draw_graphs(rng: np.random.Generator, layers: Layers, draws: int) -> Graphs:
    """Return independent exact draws from the posterior over DAGs."""
    d = layers.log_weight.shape[0]
    graphs = np.zeros((draws, d, d), dtype=np.bool_)
    log_weight, log_total, potential, ternary, backward, _ = layers
    first = first_layer(log_total, potential, ternary, backward)
    # one uniform number per layer, and one per node for its parents
    stuck = _draw(first, log_weight, log_total, potential, ternary, backward, rng.random((draws, 2 * d + 1)), graphs)
    assert stuck < 0, "no DAG has a positive weight"
    return graphs
