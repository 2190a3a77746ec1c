"""Markov equivalence: essential graphs (CPDAGs), consistent extensions, and structural Hamming distances.

An essential graph is stored as a boolean matrix in which an undirected edge i - j has both entries set.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int

from dagpost._util.compiled import njit
from dagpost.errors import InputError
from dagpost.graphs.acyclicity import as_graphs, fill_topological_order, is_acyclic
from dagpost.typing import Graph, GraphBatch


@njit
def _label_edges(graph, order, compelled):
    """Mark the compelled edges of one DAG (Chickering 1995, algorithms Order-Edges and Label-Edges).

    Edges are visited by the position of their head, ascending, then of their tail, descending. An undecided edge
    x -> y is compelled if some compelled w -> x has no w -> y, or if y has another parent that is not a parent of x;
    otherwise it is reversible. The other undecided edges into y get the same label.
    """
    d = graph.shape[0]
    known = np.zeros((d, d), dtype=np.bool_)
    compelled[:, :] = False
    for a in range(d):
        y = order[a]
        for b in range(a - 1, -1, -1):
            x = order[b]
            if not graph[x, y] or known[x, y]:
                continue
            all_compelled = False
            for w in range(d):
                if graph[w, x] and compelled[w, x]:
                    if not graph[w, y]:
                        all_compelled = True
                        break
                    compelled[w, y] = True
                    known[w, y] = True
            if not all_compelled:
                for z in range(d):
                    if graph[z, y] and z != x and not graph[z, x]:
                        all_compelled = True
                        break
            for z in range(d):
                if graph[z, y] and not known[z, y]:
                    compelled[z, y] = all_compelled
                    known[z, y] = True


@njit
def _write_essential(graph, order, compelled, out):
    """Add to `out`, which may be the DAG itself, the edges of a DAG and the reverse of those that are not compelled."""
    d = graph.shape[0]
    _label_edges(graph, order, compelled)
    for i in range(d):
        for j in range(d):
            if graph[i, j]:
                out[i, j] = True
                if not compelled[i, j]:
                    out[j, i] = True


@njit
def _essential_batch(graphs, out):
    """Write the essential graph of each DAG to `out`; return the index of the first graph with a cycle, or -1."""
    d = graphs.shape[1]
    order = np.empty(d, dtype=np.int64)
    compelled = np.empty((d, d), dtype=np.bool_)
    for m in range(graphs.shape[0]):
        if fill_topological_order(graphs[m], order) < d:
            return m
        _write_essential(graphs[m], order, compelled, out[m])
    return -1


def essential_graph(graphs: GraphBatch) -> GraphBatch:
    """Return the essential graph of each DAG.

    Parameters
    ----------
    graphs
        Adjacency matrices of DAGs, of shape (..., d, d); a cycle is an error.

    Returns
    -------
    GraphBatch
        Matrices of the same shape; compelled edges are directed, all others have both entries set.

    Examples
    --------
    >>> essential_graph(np.array([[0, 1], [0, 0]])).astype(int).tolist()
    [[0, 1], [1, 0]]
    """
    array = as_graphs(graphs)
    flat = array.reshape(-1, *array.shape[-2:])
    out = np.zeros_like(flat)
    cyclic = _essential_batch(flat, out)
    if cyclic >= 0:
        raise InputError(f"graph {cyclic} has a cycle, so it has no essential graph: give DAGs")
    return out.reshape(array.shape)


def equivalent(first: GraphBatch, second: GraphBatch) -> Bool[np.ndarray, "*batch"]:
    """Return whether the DAGs are in the same Markov equivalence class.

    Parameters
    ----------
    first, second
        Adjacency matrices of DAGs, of shapes that broadcast.

    Returns
    -------
    np.ndarray
        Booleans, one per pair of DAGs.
    """
    return (essential_graph(first) == essential_graph(second)).all(axis=(-2, -1))


def in_class(graphs: GraphBatch, essential: Graph) -> Bool[np.ndarray, "*batch"]:
    """Return whether each DAG belongs to the equivalence class of an essential graph.

    Parameters
    ----------
    graphs
        Adjacency matrices of DAGs, of shape (..., d, d).
    essential
        Essential graph of the class.

    Returns
    -------
    np.ndarray
        Booleans of shape (...).
    """
    return (essential_graph(graphs) == as_graphs(essential)).all(axis=(-2, -1))


def consistent_extension(essential: Graph, rng: np.random.Generator | None = None) -> Graph:
    """Return a DAG with the same skeleton and v-structures (Dor and Tarsi 1992).

    Repeatedly take a node that has no outgoing directed edge and whose undirected neighbours are adjacent to all its
    other neighbours, direct its undirected edges towards it, and remove it.

    Parameters
    ----------
    essential
        Partially directed graph; one without an extension is an error.
    rng
        Generator that shuffles the candidates at each step; None takes them in order.

    Returns
    -------
    Graph
        Adjacency matrix of the DAG.
    """
    graph = as_graphs(essential).copy()
    d = graph.shape[0]
    if graph.diagonal().any():
        raise InputError("a partially directed graph has no self-loops")
    rest = graph.copy()
    left = list(range(d))
    while left:
        candidates = np.array(left) if rng is None else rng.permutation(left)
        sink = _remove_sink(graph, rest, candidates)
        if sink < 0:
            raise InputError("this partially directed graph has no consistent DAG extension")
        left.remove(sink)
    assert is_acyclic(graph)
    return graph


@njit
def _is_extension_sink(rest, x):
    """Return whether all undirected edges of x can be directed towards it without a new v-structure."""
    d = rest.shape[0]
    for y in range(d):
        if not rest[x, y]:
            continue
        if not rest[y, x]:
            return False
        for z in range(d):
            if z != y and (rest[x, z] or rest[z, x]) and not (rest[y, z] or rest[z, y]):
                return False
    return True


@njit
def _remove_sink(graph, rest, candidates):
    """Direct the undirected edges of the first sink among the candidates towards it, and remove it from `rest`.

    Return the sink, or -1 if there is none.
    """
    for x in candidates:
        if _is_extension_sink(rest, x):
            _remove(graph, rest, x)
            return x
    return -1


@njit
def _remove(graph, rest, x):
    """Direct the undirected edges of a sink towards it, and remove it from `rest`."""
    for y in range(rest.shape[0]):
        if rest[x, y]:
            graph[x, y] = False
        rest[x, y] = rest[y, x] = False


@njit
def complete(graph):
    """Replace a partially directed graph by the essential graph of its extensions; return False if it has none."""
    d = graph.shape[0]
    rest, left, listed = graph.copy(), np.ones(d, dtype=np.bool_), np.ones(d, dtype=np.bool_)
    candidates, many, removed = np.arange(d - 1, -1, -1), d, 0
    while many > 0:  # a node that was no sink may be one after the removal of an adjacent node alone
        many -= 1
        x = candidates[many]
        listed[x] = False
        if not left[x] or not _is_extension_sink(rest, x):
            continue
        left[x] = False
        removed += 1
        for y in range(d):
            if (rest[x, y] or rest[y, x]) and not listed[y]:
                listed[y], candidates[many] = True, y
                many += 1
        _remove(graph, rest, x)
    if removed < d:
        return False
    order, compelled = np.empty(d, dtype=np.int64), np.empty((d, d), dtype=np.bool_)
    fill_topological_order(graph, order)
    _write_essential(graph, order, compelled, graph)
    return True


def literal_essential_graph(graph: Graph) -> Graph:
    """Return the essential graph by its definition: skeleton, v-structures and Meek's rules.

    For a DAG this is the essential graph (Meek 1995), which `essential_graph` computes faster. A digraph with a cycle
    has none, but the same construction still gives a partially directed graph; published comparisons with a cyclic
    "consensus network" rely on it.

    Parameters
    ----------
    graph
        Adjacency matrix without self-loops and without edges in both directions.

    Returns
    -------
    Graph
        Matrix in which undirected edges have both entries set.

    Examples
    --------
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
        new = undirected & _implied(directed, undirected, adjacent)
        new &= ~new.T  # where a cycle implies both directions, neither is compelled
        if not new.any():
            return directed | undirected
        directed = directed | new


def _v_structures(edges: Graph, adjacent: Graph) -> Graph:
    """Return the edges i -> k for which k has another parent j that is not adjacent to i."""
    d = len(edges)
    out = np.zeros_like(edges)
    for i, k in zip(*np.nonzero(edges)):
        out[i, k] = any(edges[j, k] and j != i and not adjacent[i, j] for j in range(d))
    return out


def _implied(directed: Graph, undirected: Graph, adjacent: Graph) -> Graph:
    """Return where one of Meek's first three rules directs an undirected edge i - j as i -> j."""
    d = len(directed)
    out = np.zeros_like(directed)
    for i, j in zip(*np.nonzero(undirected)):
        arrow = any(directed[k, i] and not adjacent[k, j] and k != j for k in range(d))  # k -> i - j
        chain = bool((directed[i] & directed[:, j]).any())  # i -> k -> j
        between = np.flatnonzero(undirected[i] & directed[:, j])  # i - k -> j and i - l -> j, k and l not adjacent
        kite = any(not adjacent[k, m] for k in between for m in between if k < m)
        out[i, j] = arrow or chain or kite
    return out


def structural_hamming_distance(first: GraphBatch, second: GraphBatch) -> Int[np.ndarray, "*batch"]:
    """Return the number of node pairs whose edge differs (absent, i -> j, j -> i or undirected).

    A missing, an additional and a reversed edge each count once, for DAGs and for essential graphs alike.

    Parameters
    ----------
    first, second
        Adjacency matrices, of shapes that broadcast.

    Returns
    -------
    np.ndarray
        Integers, one per pair of graphs.
    """
    differs = as_graphs(first) != as_graphs(second)
    pair = differs | np.swapaxes(differs, -1, -2)
    return np.triu(pair, 1).sum(axis=(-2, -1))


def essential_hamming_distance(first: GraphBatch, second: GraphBatch) -> Int[np.ndarray, "*batch"]:
    """Return the structural Hamming distance between the essential graphs of two DAGs, the paper's SHD.

    Parameters
    ----------
    first, second
        Adjacency matrices of DAGs, of shapes that broadcast.

    Returns
    -------
    np.ndarray
        Integers, one per pair of graphs.
    """
    return structural_hamming_distance(essential_graph(first), essential_graph(second))
