"""Acyclicity: the exact combinatorial test, topological orders, and the paper's differentiable `h`.

`h(G) = tr[(I + G/d)^d] - d` (equation 4) is zero exactly for DAGs, but in floating point a long cycle
leaves a value that rounds to zero. The tests here that decide anything are therefore combinatorial.

Which node can be reached from which.

Graphs that lose their weakest edges until they are what they should be.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float
from numba import njit

from dagpost.errors import InputError
from dagpost.typing import Graph, GraphBatch


@njit(cache=True)
def order_of(graph, order):
    """Kahn's algorithm: fill `order` with a topological order, return how many nodes could be placed.

    Ties go to the smallest index, so that the order depends on nothing but the graph.
    """
    d = graph.shape[0]
    waiting = np.zeros(d, dtype=np.int64)
    for j in range(d):
        for i in range(d):
            waiting[j] += graph[i, j]
    placed = 0
    done = np.zeros(d, dtype=np.bool_)
    while placed < d:
        node = -1
        for j in range(d):
            if not done[j] and waiting[j] == 0:
                node = j
                break
        if node < 0:
            return placed
        done[node] = True
        order[placed] = node
        placed += 1
        for j in range(d):
            if graph[node, j]:
                waiting[j] -= 1
    return placed


@njit(cache=True)
def _acyclic_batch(graphs, out):
    order = np.empty(graphs.shape[1], dtype=np.int64)
    for m in range(graphs.shape[0]):
        out[m] = order_of(graphs[m], order) == graphs.shape[1]


def as_graphs(graphs) -> np.ndarray:
    """Boolean adjacency matrices of shape (..., d, d), checked."""
    array = np.asarray(graphs)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise InputError(f"an adjacency matrix must be square, got shape {array.shape}")
    if array.dtype != np.bool_:
        if not np.isin(array, (0, 1)).all():
            raise InputError("an adjacency matrix holds 0 and 1 (or False and True) only")
        array = array.astype(np.bool_)
    return np.ascontiguousarray(array)


def is_acyclic(graphs: GraphBatch) -> Bool[np.ndarray, "*batch"]:
    """Whether each graph is a DAG; exact for every size. A self-loop is a cycle.

    >>> bool(is_acyclic(np.array([[0, 1], [0, 0]])))
    True
    """
    array = as_graphs(graphs)
    flat = array.reshape(-1, *array.shape[-2:])
    out = np.empty(len(flat), dtype=np.bool_)
    _acyclic_batch(flat, out)
    return out.reshape(array.shape[:-2])


def topological_order(graph: Graph) -> np.ndarray:
    """The nodes so that every parent stands before its children; smallest index first among ties."""
    array = as_graphs(graph)
    order = np.empty(array.shape[0], dtype=np.int64)
    if order_of(array, order) < len(order):
        cycle = find_cycle(array)
        assert cycle is not None
        raise InputError("the graph has a cycle: " + " -> ".join(str(i) for i in [*cycle, cycle[0]]))
    return order


def find_cycle(graph: Graph) -> list[int] | None:
    """Nodes of one directed cycle, in order, or None for a DAG."""
    array = as_graphs(graph).copy()
    d = array.shape[0]
    order = np.empty(d, dtype=np.int64)
    placed = order_of(array, order)
    if placed == d:
        return None
    # every node that is left has a parent that is left: walking backwards must run into itself
    left = np.setdiff1d(np.arange(d), order[:placed])
    walk, seen = [int(left[0])], {int(left[0]): 0}
    while True:
        parent = int(left[np.argmax(array[left, walk[-1]])])
        if parent in seen:
            return walk[seen[parent] :][::-1]
        seen[parent] = len(walk)
        walk.append(parent)


LARGEST_GRADIENT = 1e12
"""Of `h`, by an edge. With edge probabilities of 1/2 it is 1.5^(d-1): beyond 68 nodes it is scaled down to this, which
keeps its squares finite in single precision; optimisers that divide by a gradient's size do not notice."""


def cyclicity(graph: Float[Array, "d d"]) -> Float[Array, ""]:
    """`h(G) = tr[(I + G/d)^d] - d`, equation 4: zero for DAGs, differentiable for soft graphs.

    A k-cycle on d nodes has `h = sum_m C(d, m) k / d^m` over the multiples m <= d of k. Where `h` is too large for
    single precision (dense soft graphs on more than 200 nodes) it is infinite, its gradient is not.
    """
    return _cyclicity(jnp.asarray(graph))


def _power(graph, exponent: int):
    """`(I + G/d)^exponent` as a matrix with entries of at most 1, or as they are where they are smaller than that, and
    the logarithm of its factor: by repeated squaring, scaled on the way so that nothing overflows."""
    d = graph.shape[-1]

    def scaled(matrix, log_factor):
        largest = jnp.maximum(jnp.max(jnp.abs(matrix)), 1.0)
        return matrix / largest, log_factor + jnp.log(largest)

    result, log_result = jnp.eye(d, dtype=graph.dtype), jnp.zeros((), graph.dtype)
    square, log_square = scaled(jnp.eye(d, dtype=graph.dtype) + graph / d, jnp.zeros((), graph.dtype))
    while exponent:
        if exponent % 2:
            result, log_result = scaled(result @ square, log_result + log_square)
        exponent //= 2
        if exponent:
            square, log_square = scaled(square @ square, 2 * log_square)
    return result, log_result


@jax.custom_vjp
def _cyclicity(graph):
    return _cyclicity_forward(graph)[0]


def cyclicity_gradient(graph: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """`dh/dG = ((I + G/d)^(d-1))^T`: one matrix power, no backward pass; no entry above `LARGEST_GRADIENT`."""
    return _cyclicity_forward(jnp.asarray(graph))[1]


def _cyclicity_forward(graph):
    d = graph.shape[-1]
    power, log_factor = _power(graph, d - 1)
    # tr[(I + G/d)^d] = sum_ij (I + G/d)_ij ((I + G/d)^(d-1))_ji
    step = jnp.eye(d, dtype=graph.dtype) + graph / d
    value = jnp.exp(log_factor) * jnp.sum(step * power.T) - d
    return value, jnp.exp(jnp.minimum(log_factor, np.log(LARGEST_GRADIENT))) * power.T


_cyclicity.defvjp(_cyclicity_forward, lambda gradient, cotangent: (cotangent * gradient,))


def descendants(graphs: Any) -> GraphBatch:
    """Entry (i, j) is True where a directed path leads from i to j: the transitive closure of each graph.

    >>> descendants([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    reach = as_graphs(graphs).copy()
    # Warshall: after step k, paths may pass through the nodes 0..k
    for k in range(reach.shape[-1]):
        reach |= reach[..., :, k, None] & reach[..., None, k, :]
    return reach


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
