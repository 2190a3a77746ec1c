"""Mutable DAGs for compiled loops, with sets of nodes as words of 64 bits.

A `Structure` holds the set of parents and the set of ancestors of every node and updates both when edges are added or
removed. Whether i -> j would close a cycle is then one lookup: it does if j is an ancestor of i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost.typing import Graph

ONE = np.uint64(1)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # its 64 windows of 6 bits are all different
POSITION = np.zeros(64, np.int64)  # of a single bit, by the window that multiplying with it brings to the top
POSITION[[(0x03F79D71B4CB0A89 << i & (1 << 64) - 1) >> 58 for i in range(64)]] = np.arange(64)


@njit(inline="always")
def has(words, i):
    """Return whether i is in the set."""
    return (words[i >> 6] >> np.uint64(i & 63)) & ONE != 0


@njit(inline="always")
def holds(sets, row, i):
    """Return whether i is in the set of this row; avoids a view of the row, which costs time in loops."""
    return (sets[row, i >> 6] >> np.uint64(i & 63)) & ONE != 0


@njit(inline="always")
def insert(words, i):
    """Add i to the set."""
    words[i >> 6] |= ONE << np.uint64(i & 63)


@njit(inline="always")
def discard(words, i):
    """Remove i from the set, if it is there."""
    words[i >> 6] &= ~(ONE << np.uint64(i & 63))


@njit(inline="always")
def clear(words):
    """Empty the set."""
    for w in range(words.shape[0]):
        words[w] = 0


@njit(inline="always")
def copy_row(words, sets, row):
    """Copy this row to `words`; a loop, since assigning slices costs ten times as much."""
    for w in range(words.shape[0]):
        words[w] = sets[row, w]


@njit
def copy_rows(sets, others):
    """Copy all rows of `others` to `sets`."""
    for row in range(sets.shape[0]):
        for w in range(sets.shape[1]):
            sets[row, w] = others[row, w]


@njit(inline="always")
def copy(words, other):
    """Copy `other` to `words`."""
    for w in range(words.shape[0]):
        words[w] = other[w]


@njit(inline="always")
def lowest(word):
    """Return the position of the lowest bit of a word that is not 0."""
    return POSITION[((word & (~word + ONE)) * DE_BRUIJN) >> np.uint64(58)]


@njit
def count(words):
    """Return the number of members."""
    total = 0
    for w in range(words.shape[0]):
        x = words[w]
        while x:
            x &= x - ONE
            total += 1
    return total


def words_for(d: int) -> int:
    """Return the number of words of a set of d nodes."""
    return (d + 63) // 64


def members(words: np.ndarray, d: int) -> np.ndarray:
    """Return the members of the set, ascending."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[:d])


def pack_parents(graph: Graph) -> np.ndarray:
    """Return the set of parents of every node, (d, words)."""
    d = len(graph)
    out = np.zeros((d, words_for(d)), np.uint64)
    for i, j in zip(*np.nonzero(graph)):
        insert(out[j], i)
    return out


class Structure(NamedTuple):
    """A DAG as sets of parents and ancestors."""

    parents: np.ndarray  # (d, words)
    ancestors: np.ndarray  # (d, words)
    stale: np.ndarray  # (words,) scratch: nodes whose ancestors have to be computed again


@njit
def add_edge(dag, i, j):
    """Add i -> j, which must not close a cycle: j and its descendants get i and its ancestors as ancestors."""
    insert(dag.parents[j], i)
    d, words = dag.parents.shape
    for y in range(d):
        if y == j or holds(dag.ancestors, y, j):
            for w in range(words):
                dag.ancestors[y, w] |= dag.ancestors[i, w]
            insert(dag.ancestors[y], i)


@njit
def remove_edge(dag, i, j):
    """Remove i -> j, and update ancestors unless another path leads from i to j."""
    discard(dag.parents[j], i)
    if not has_detour(dag, i, j):
        _refresh(dag, j)


@njit
def remove_edges(dag, j):
    """Remove all edges of a node."""
    for y in range(dag.parents.shape[0]):
        discard(dag.parents[y], j)
    for w in range(dag.parents.shape[1]):
        dag.parents[j, w] = 0
    _refresh(dag, j)


@njit
def _refresh(dag, j):
    """Compute the ancestors of j and of its former descendants again, those of parents before those of children."""
    parents, ancestors, stale = dag.parents, dag.ancestors, dag.stale
    d, words = parents.shape
    clear(stale)
    for y in range(d):
        if holds(ancestors, y, j):
            insert(stale, y)
    _ancestors_of(parents, ancestors, j)
    for w in range(words):
        while stale[w]:
            y = 64 * w + lowest(stale[w])
            parent = _common(parents, y, stale)
            while parent >= 0:
                y = parent
                parent = _common(parents, y, stale)
            _ancestors_of(parents, ancestors, y)
            discard(stale, y)


@njit(inline="always")
def _common(sets, row, words):
    """Return a common member of the set in this row and of `words`, or -1."""
    for w in range(words.shape[0]):
        both = sets[row, w] & words[w]
        if both:
            return 64 * w + lowest(both)
    return -1


@njit(inline="always")
def _ancestors_of(parents, ancestors, y):
    """Write the ancestors of y: its parents and theirs, which must be up to date."""
    words = parents.shape[1]
    for w in range(words):
        ancestors[y, w] = parents[y, w]
    for w in range(words):
        left = parents[y, w]
        while left:
            x = 64 * w + lowest(left)
            left &= left - ONE
            for v in range(words):
                ancestors[y, v] |= ancestors[x, v]


@njit
def set_parents(dag, j, words):
    """Give j exactly these parents, none of which may be a descendant of j."""
    added = removed = np.uint64(0)
    for w in range(words.shape[0]):
        added |= words[w] & ~dag.parents[j, w]
        removed |= dag.parents[j, w] & ~words[w]
        dag.parents[j, w] = words[w]
    if removed:
        _refresh(dag, j)
    elif added:
        _ancestors_of(dag.parents, dag.ancestors, j)
        for y in range(dag.parents.shape[0]):
            if holds(dag.ancestors, y, j):
                for w in range(words.shape[0]):
                    dag.ancestors[y, w] |= dag.ancestors[j, w]


@njit
def has_detour(dag, i, j):
    """Return whether a path other than the edge leads from i to j: then i -> j cannot be reversed."""
    for w in range(dag.parents.shape[1]):
        left = dag.parents[j, w]
        while left:
            if holds(dag.ancestors, 64 * w + lowest(left), i):
                return True
            left &= left - ONE
    return False


@njit
def neighbours(dag):
    """Return the number of DAGs that are one addition, deletion or reversal away."""
    d = dag.parents.shape[0]
    edges = 0
    ordered_pairs = 0
    reversals = 0
    for j in range(d):
        edges += count(dag.parents[j])
        ordered_pairs += count(dag.ancestors[j])
        for i in range(d):
            if holds(dag.parents, j, i) and not has_detour(dag, i, j):
                reversals += 1
    # i -> j can be added unless it is there or j is an ancestor of i
    additions = d * (d - 1) - edges - ordered_pairs
    return additions + edges + reversals


@njit
def _fill(dag, graph):
    """Set the DAG to an adjacency matrix."""
    d = graph.shape[0]
    dag.parents[:] = 0
    dag.ancestors[:] = 0
    for j in range(d):
        for i in range(d):
            if graph[i, j]:
                add_edge(dag, i, j)


@njit
def to_matrix(dag, out):
    """Write the adjacency matrix to `out`."""
    d = dag.parents.shape[0]
    for j in range(d):
        for i in range(d):
            out[i, j] = holds(dag.parents, j, i)


def structure_of(graph: Graph) -> Structure:
    """Return the structure of an adjacency matrix, which must be acyclic."""
    d = graph.shape[0]
    sets = np.zeros((2, d, words_for(d)), np.uint64)
    dag = Structure(sets[0], sets[1], np.zeros(words_for(d), np.uint64))
    _fill(dag, np.ascontiguousarray(graph, dtype=np.bool_))
    return dag
