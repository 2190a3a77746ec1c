"""Greedy equivalence search (GES; Chickering, 2002): the essential graph that no single step improves, by BIC or, for
categorical data, by the evidence.

A step inserts or deletes the edge `x -> y` in some DAG of the class. A clique of undirected neighbours of `y`, taken to
be its parents too, selects that DAG. Edges are inserted while the score improves, then deleted.

The largest gain of each pair (x, y), whether or not the step is valid, is kept as an upper bound: it changes only if an
edge at y or at an undirected neighbour of y does. Pairs whose bound is not above the best gain so far are passed over.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost._util.compiled import njit
from dagpost.graphs.essential import complete
from dagpost.models.counts import CountScratch, CountTable, count_evidence, count_scratch, no_counts
from dagpost.typing import Graph


def greedy_search(values: Float[np.ndarray, "n d"], counts: CountTable | None = None) -> Graph:
    """Return the essential graph that GES finds.

    Parameters
    ----------
    values
        Rows of observational data.
    counts
        The same rows as counts of categories, whose evidence is then the score.

    Returns
    -------
    Graph
        Adjacency matrix, (d, d); an undirected edge is set in both directions.
    """
    covariance = np.atleast_2d(np.cov(values.T, ddof=0))
    return _search(covariance, values.shape[0], no_counts(values.shape[1]) if counts is None else counts)


class Workspace(NamedTuple):
    """Memory that the search reuses."""

    factor: np.ndarray  # (d, d) Cholesky factor
    solved: np.ndarray  # (d,)
    family: np.ndarray  # (d,) parents of y: its directed ones, then the clique
    pool: np.ndarray  # (d,) neighbours that may join the clique
    chosen: np.ndarray  # (d,) positions in the pool
    queue: np.ndarray  # (d,)
    seen: np.ndarray  # (d,) bool
    bounds: np.ndarray  # (d, d) upper bounds of the gains; infinite where none is known
    before: np.ndarray  # (d, d) bool, the graph before a step
    touched: np.ndarray  # (d,) bool, nodes at which a step changed an edge
    counting: CountScratch
    counts: CountTable


class Step(NamedTuple):
    """Insertion or deletion of x -> y, and its gain in BIC."""

    gain: float
    x: int
    y: int


@njit
def workspace(d, counts):
    """Return memory for a search over graphs of d nodes."""
    nodes, pairs, flags = np.empty((4, d), dtype=np.int64), np.empty((2, d, d)), np.empty((2, d), dtype=np.bool_)
    return Workspace(
        pairs[0], np.empty(d), nodes[0], nodes[1], nodes[2], nodes[3], flags[0], pairs[1],
        np.empty((d, d), dtype=np.bool_), flags[1], count_scratch(counts), counts,
    )  # fmt: skip


@njit
def _search(covariance, rows, counts):
    """Return the essential graph after the insertion and the deletion phase."""
    d = covariance.shape[0]
    graph, scratch = np.zeros((d, d), dtype=np.bool_), workspace(d, counts)
    for inserting in (True, False):
        scratch.bounds[:] = np.inf
        while improve(graph, covariance, rows, inserting, scratch):
            pass
    return graph


@njit
def improve(graph, covariance, rows, inserting, scratch):
    """Apply the step with the largest gain; return False if no gain is positive."""
    d = graph.shape[0]
    best, clique = Step(0.0, -1, -1), np.zeros(d, dtype=np.bool_)
    for x in range(d):
        for y in range(d):
            there = graph[x, y]  # x -> y or x - y
            if x != y and (there != inserting) and not (inserting and graph[y, x]) and scratch.bounds[x, y] > best.gain:
                best = _best_of_pair(x, y, graph, covariance, rows, inserting, best, clique, scratch)
    if best.x < 0:
        return False
    x, y = best.x, best.y
    scratch.before[:] = graph
    for z in range(d):
        if z == x or not (graph[z, y] and graph[y, z]):
            continue  # only edges to undirected neighbours of y get a direction
        if inserting and clique[z]:
            graph[y, z] = False
        elif not inserting and not clique[z] and (graph[x, z] or graph[z, x]):
            graph[z, y] = False
            if graph[x, z]:
                graph[z, x] = False
    graph[x, y] = inserting
    graph[y, x] = False
    if not complete(graph):
        raise RuntimeError("GES: a step led to a graph without consistent extension; this is a bug")
    _forget_bounds(graph, scratch)
    return True


@njit
def _forget_bounds(graph, scratch):
    """Forget the bounds of all pairs (x, y) with a changed edge at y or at an undirected neighbour of y."""
    d = graph.shape[0]
    scratch.touched[:] = False
    for a in range(d):
        for b in range(d):
            if graph[a, b] != scratch.before[a, b]:
                scratch.touched[a] = scratch.touched[b] = True
    for y in range(d):
        near = scratch.touched[y]
        for z in range(d):
            near = near or (scratch.touched[z] and graph[z, y] and graph[y, z])
        if near:
            scratch.bounds[:, y] = np.inf


@njit
def _best_of_pair(x, y, graph, covariance, rows, inserting, best, clique, scratch):
    """Return the better of `best` and the best step for x -> y; `clique` and the bound of the pair are updated.

    For insertion the clique holds all undirected neighbours of y adjacent to x, and others; for deletion, some of those
    adjacent to x.
    """
    family, pool, chosen = scratch.family, scratch.pool, scratch.chosen
    d = graph.shape[0]
    parents = many = 0
    scratch.bounds[x, y] = -np.inf
    for z in range(d):
        if graph[z, y] and not graph[y, z] and z != x:
            family[parents] = z
            parents += 1
    size = parents
    for z in range(d):
        if z != x and graph[z, y] and graph[y, z]:
            near = graph[x, z] or graph[z, x]
            if near and inserting:
                if not _adjacent_to_all(z, family, parents, size, graph):
                    return best
                family[size] = z
                size += 1
            elif near or inserting:
                pool[many] = z
                many += 1
    depth, following = 0, 0  # each clique once: positions in the pool ascend
    while True:
        gain = _gain(x, y, family, size, covariance, rows, scratch)
        if not inserting:
            gain = -gain
        scratch.bounds[x, y] = max(scratch.bounds[x, y], gain)
        if gain > best.gain and (not inserting or _separated(y, x, family, parents, size, graph, scratch)):
            best = Step(gain, x, y)
            clique[:] = False
            for a in range(parents, size):
                clique[family[a]] = True
        while True:  # find the next clique
            while following < many and not _adjacent_to_all(pool[following], family, parents, size, graph):
                following += 1
            if following < many:
                family[size], chosen[depth] = pool[following], following
                size, depth, following = size + 1, depth + 1, following + 1
                break
            if depth == 0:
                return best
            size, depth = size - 1, depth - 1
            following = chosen[depth] + 1


@njit
def _adjacent_to_all(z, family, first, end, graph):
    """Return whether z is adjacent to all of family[first:end]."""
    missing = 0
    for a in range(first, end):
        missing += not (graph[z, family[a]] or graph[family[a], z])
    return missing == 0


@njit
def _separated(start, end, family, first, size, graph, scratch):
    """Return whether every path from start to end along directed and undirected edges passes through the clique."""
    seen, queue = scratch.seen, scratch.queue
    seen[:] = False
    for a in range(first, size):
        seen[family[a]] = True
    seen[start] = True
    queue[0] = start
    taken, known = 0, 1
    while taken < known:
        a = queue[taken]
        taken += 1
        for b in range(graph.shape[0]):
            if graph[a, b] and not seen[b]:
                if b == end:
                    return False
                seen[b] = True
                queue[known] = b
                known += 1
    return True


@njit
def _gain(x, y, family, size, covariance, rows, scratch):
    """Return the BIC of y with x and a family as parents, minus that with the family alone.

    With `L L^T` the covariance of the parents, x last, and `b = L^-1 cov(parents, y)`, the residual variance of y is
    `var(y) - sum_a b_a^2`, and `gain = -n/2 log(residual with x / residual without) - 1/2 log n`. For categories it is
    the difference of the log evidences.
    """
    if scratch.counts.weights.shape[0] > 0:
        without = count_evidence(scratch.counts, y, family, size, scratch.counting)
        beside = family[size] if size < len(family) else x
        family[size] = x
        gain = count_evidence(scratch.counts, y, family, size + 1, scratch.counting) - without
        family[size] = beside
        return gain
    factor, solved = scratch.factor, scratch.solved
    left = without = covariance[y, y]
    for a in range(size + 1):
        u = family[a] if a < size else x
        for c in range(a + 1):
            v = family[c] if c < a else u
            rest = covariance[u, v]
            for e in range(c):
                rest -= factor[a, e] * factor[c, e]
            if c < a:
                factor[a, c] = rest / factor[c, c]
            else:  # a parent that is a linear function of the others adds nothing
                factor[a, a] = np.sqrt(rest) if rest > 1e-12 * covariance[u, u] else np.inf
        rest = covariance[u, y]
        for e in range(a):
            rest -= factor[a, e] * solved[e]
        solved[a] = rest / factor[a, a]
        without = left
        left -= solved[a] ** 2
    tiny = 1e-12 * covariance[y, y]
    return -0.5 * rows * np.log(max(left, tiny) / max(without, tiny)) - 0.5 * np.log(rows)
