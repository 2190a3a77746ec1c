"""Acyclicity: the exact test, topological orders, descendants, the paper's differentiable `h`, and repair of graphs.

`h(G) = tr[(I + G/d)^d] - d` (equation 4) is zero exactly for DAGs, but in floating point the value of a long cycle
rounds to zero. Every decision about acyclicity is therefore combinatorial; `h` serves only for its gradient.

`without_cycles` and `with_few_parents` remove the weakest edges of a graph until it is a DAG or has few parents.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from dagpost._util.compiled import njit
from dagpost.errors import InputError
from dagpost.typing import Graph, GraphBatch


@njit
def fill_topological_order(graph, order):
    """Fill `order` with a topological order by Kahn's algorithm; return how many nodes could be placed.

    Ties go to the smallest index, so the order depends on the graph alone.
    """
    d = graph.shape[0]
    waiting = np.zeros(d, dtype=np.int64)
    for i in range(d):
        for j in range(d):
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


@njit
def _acyclic_batch(graphs, out):
    """Write to `out` whether each graph is acyclic."""
    order = np.empty(graphs.shape[1], dtype=np.int64)
    for m in range(graphs.shape[0]):
        out[m] = fill_topological_order(graphs[m], order) == graphs.shape[1]


@njit
def _fill_descendants(graphs, reach):
    """Write the transitive closure of each graph to `reach`."""
    count, d, _ = graphs.shape
    order = np.empty(d, dtype=np.int64)
    for m in range(count):
        graph, out = graphs[m], reach[m]
        if fill_topological_order(graph, order) == d:
            for place in range(d - 1, -1, -1):  # children come before their parents
                i = order[place]
                for child in range(d):
                    if graph[i, child]:
                        out[i, child] = True
                        for j in range(d):
                            out[i, j] |= out[child, j]
        else:  # Warshall: after step k, paths may pass through the nodes 0..k
            out[:] = graph
            for k in range(d):
                for i in range(d):
                    if out[i, k]:
                        for j in range(d):
                            out[i, j] |= out[k, j]


def as_graphs(graphs) -> np.ndarray:
    """Return the input as boolean adjacency matrices of shape (..., d, d), or raise an error."""
    array = np.asarray(graphs)
    if array.ndim < 2 or array.shape[-1] != array.shape[-2]:
        raise InputError(f"an adjacency matrix must be square, got shape {array.shape}")
    if array.dtype != np.bool_:
        if not np.isin(array, (0, 1)).all():
            raise InputError("an adjacency matrix holds 0 and 1 (or False and True) only")
        array = array.astype(np.bool_)
    return np.ascontiguousarray(array)


def is_acyclic(graphs: GraphBatch) -> Bool[np.ndarray, "*batch"]:
    """Return whether each graph is a DAG; exact for every size. A self-loop is a cycle.

    Parameters
    ----------
    graphs
        Adjacency matrices of shape (..., d, d), of booleans or of 0 and 1.

    Returns
    -------
    np.ndarray
        Booleans of shape (...).

    Examples
    --------
    >>> bool(is_acyclic(np.array([[0, 1], [0, 0]])))
    True
    """
    array = as_graphs(graphs)
    flat = array.reshape(-1, *array.shape[-2:])
    out = np.empty(len(flat), dtype=np.bool_)
    _acyclic_batch(flat, out)
    return out.reshape(array.shape[:-2])


def topological_order(graph: Graph) -> np.ndarray:
    """Return the nodes in an order that puts every parent before its children.

    Parameters
    ----------
    graph
        Adjacency matrix of a DAG; a cycle is an error.

    Returns
    -------
    np.ndarray
        Node indices; ties go to the smallest index.
    """
    array = as_graphs(graph)
    order = np.empty(array.shape[0], dtype=np.int64)
    if fill_topological_order(array, order) < len(order):
        cycle = find_cycle(array)
        assert cycle is not None
        raise InputError("the graph has a cycle: " + " -> ".join(str(i) for i in [*cycle, cycle[0]]))
    return order


def find_cycle(graph: Graph) -> list[int] | None:
    """Return the nodes of one directed cycle.

    Parameters
    ----------
    graph
        Adjacency matrix.

    Returns
    -------
    list[int] | None
        Node indices in the order of the cycle; None for a DAG.
    """
    array = as_graphs(graph).copy()
    d = array.shape[0]
    order = np.empty(d, dtype=np.int64)
    placed = fill_topological_order(array, order)
    if placed == d:
        return None
    # every node that is left has a parent that is left, so walking to parents must revisit a node
    left = np.setdiff1d(np.arange(d), order[:placed])
    walk, seen = [int(left[0])], {int(left[0]): 0}
    while True:
        parent = int(left[np.argmax(array[left, walk[-1]])])
        if parent in seen:
            return walk[seen[parent] :][::-1]
        seen[parent] = len(walk)
        walk.append(parent)


LARGEST_GRADIENT = 1e12
"""Largest derivative of `h` with respect to an edge. With edge probabilities of 1/2 the derivative is 1.5^(d-1); beyond
68 nodes the gradient is scaled down to this value, which keeps its squares finite in single precision. Optimisers that
normalise the gradient are not affected."""


def cyclicity(graph: Float[Array, "d d"]) -> Float[Array, ""]:
    """Return `h(G) = tr[(I + G/d)^d] - d`, equation 4: zero for DAGs, differentiable for soft graphs.

    A k-cycle on d nodes has `h = sum_m C(d, m) k / d^m` over the multiples m <= d of k. Where `h` overflows single
    precision (dense soft graphs on more than 200 nodes) it is infinite, but its gradient is finite.

    Parameters
    ----------
    graph
        Adjacency matrix with entries in [0, 1].

    Returns
    -------
    Array
        Scalar, 0 for a DAG and positive otherwise.
    """
    return _cyclicity(jnp.asarray(graph))


MOST_UNSCALED = 100
"""Most nodes with which powers fit into single precision: with entries of G in [0, 1], no entry of `(I + G/d)^(d-1)` is
above 2^(d-1)."""


def _power(graph, exponent: int):
    """Return `(I + G/d)^exponent` as a matrix, and the logarithm of a factor that it has to be multiplied by.

    Computed by repeated squaring; with many nodes scaling after each product avoids overflow.
    """
    d = graph.shape[-1]

    def scaled(matrix, log_factor):
        if d <= MOST_UNSCALED:
            return matrix, log_factor
        largest = jnp.maximum(jnp.max(jnp.abs(matrix)), 1.0)
        return matrix / largest, log_factor + jnp.log(largest)

    result: Any = None
    square, log_square = scaled(jnp.eye(d, dtype=graph.dtype) + graph / d, jnp.zeros((), graph.dtype))
    while exponent:
        if exponent % 2:
            result = (square, log_square) if result is None else scaled(result[0] @ square, result[1] + log_square)
        exponent //= 2
        if exponent:
            square, log_square = scaled(square @ square, 2 * log_square)
    return (jnp.eye(d, dtype=graph.dtype), jnp.zeros((), graph.dtype)) if result is None else result


@jax.custom_vjp
def _cyclicity(graph):
    """Return `h` with a custom gradient."""
    return _cyclicity_forward(graph)[0]


def cyclicity_gradient(graph: Float[Array, "d d"]) -> Float[Array, "d d"]:
    """Return `dh/dG = ((I + G/d)^(d-1))^T`, by one matrix power instead of a backward pass.

    Parameters
    ----------
    graph
        Adjacency matrix with entries in [0, 1].

    Returns
    -------
    Array
        Gradient of shape (d, d), with no entry above `LARGEST_GRADIENT`.
    """
    return _cyclicity_forward(jnp.asarray(graph))[1]


def _cyclicity_forward(graph):
    """Return `h` and its gradient."""
    d = graph.shape[-1]
    power, log_factor = _power(graph, d - 1)
    # tr[(I + G/d)^d] = sum_ij (I + G/d)_ij ((I + G/d)^(d-1))_ji
    step = jnp.eye(d, dtype=graph.dtype) + graph / d
    value = jnp.exp(log_factor) * jnp.sum(step * power.T) - d
    if 2.0 ** (d - 1) <= LARGEST_GRADIENT:
        return value, power.T
    largest = jnp.maximum(jnp.max(jnp.abs(power)), 1.0)
    factor = jnp.exp(jnp.minimum(log_factor, np.log(LARGEST_GRADIENT) - jnp.log(largest)))
    return value, factor * power.T


_cyclicity.defvjp(_cyclicity_forward, lambda gradient, cotangent: (cotangent * gradient,))


def descendants(graphs: Any) -> GraphBatch:
    """Return the transitive closure of each graph.

    Parameters
    ----------
    graphs
        Adjacency matrices of shape (..., d, d).

    Returns
    -------
    np.ndarray
        Booleans of the same shape; entry (i, j) is True where a directed path leads from i to j.

    Examples
    --------
    >>> descendants([[0, 1, 0], [0, 0, 1], [0, 0, 0]]).astype(int).tolist()
    [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    """
    array = as_graphs(graphs)
    flat = array.reshape(-1, *array.shape[-2:])
    reach = np.zeros(flat.shape, dtype=np.bool_)
    _fill_descendants(flat, reach)
    return reach.reshape(array.shape)


DENSE = 10
"""Edges per node above which a graph has too many cycles to break them one by one."""


def without_cycles(graph: Graph, strength: Float[np.ndarray, "d d"]) -> Graph:
    """Return a DAG: the graph without the weakest edge of each cycle.

    A dense graph is rebuilt instead: its edges are added from the strongest to the weakest, except those that would
    close a cycle.

    Parameters
    ----------
    graph
        Adjacency matrix.
    strength
        Strength of each edge, of shape (d, d).

    Returns
    -------
    Graph
        Acyclic subgraph.
    """
    if graph.sum() > DENSE * len(graph):
        out = np.zeros_like(graph)
        _add_strongest_first(np.argsort(-strength, axis=None, kind="stable"), graph, out)
        return out
    graph = graph.copy()
    while (cycle := find_cycle(graph)) is not None:
        edges = list(zip(cycle, cycle[1:] + cycle[:1]))
        graph[min(edges, key=lambda edge: strength[edge])] = False
    return graph


@njit
def _add_strongest_first(order, graph, out):
    """Add the edges of `graph` to `out` in this order, except those that close a cycle.

    Sets of nodes are bits of 64-bit words.
    """
    d = graph.shape[0]
    reached = np.zeros((d, (d + 63) // 64), np.uint64)  # nodes reachable from each node, itself included
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
    """Return the graph with at most `most` parents per node.

    Parameters
    ----------
    graph
        Adjacency matrix.
    strength
        Strength of each edge, of shape (d, d); the strongest parents are kept.
    most
        Largest number of parents.

    Returns
    -------
    Graph
        Subgraph.
    """
    graph = graph.copy()
    for j in np.flatnonzero(graph.sum(axis=0) > most):
        parents = np.flatnonzero(graph[:, j])
        strongest_first = parents[np.argsort(-strength[parents, j], kind="stable")]
        graph[strongest_first[most:], j] = False
    return graph
