"""The PC algorithm (Spirtes and Glymour, 1991): edges that no test separates, then directions. Tests are Fisher's z or,
for categorical data, likelihood-ratio tests on contingency tables (G²).

1. Skeleton. From the complete graph, remove the edge `x - y` if `x` and `y` are independent given some set of `size`
   neighbours of `x` or of `y`, for size 0, 1, 2, … Neighbours are those at the start of each size ("PC-stable",
   Colombo and Maathuis, 2014), so the skeleton does not depend on the order of the columns. The separators of a pair
   are all nodes of all sets of that size that separate it.
2. Colliders. `x - y - z` with `x` and `z` not adjacent becomes `x -> y <- z` if `y` is not a separator of `x` and `z`.
   A collider that contradicts an earlier one is left out.
3. Meek's first three rules, except where an edge would close a directed cycle.

These are the defaults of causal-learn (`stable=True, uc_rule=0, uc_priority=2`), which finds the same skeletons and
colliders. Where tests contradict each other, directions depend on the order of triples and rules, and some differ: this
search checks all directed paths before it directs an edge, causal-learn only those that it has recorded. With
contradictory tests the result may not be an essential graph and may have no consistent extension.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import chi2, norm

from dagpost._util.compiled import njit
from dagpost.models.counts import CountScratch, CountTable, count_scratch, label_rows, no_counts
from dagpost.typing import Graph

TINY = 1e-12
"""Share of its variance left below which a column counts as determined by others."""


def pc_search(values: Float[np.ndarray, "n d"], significance: float) -> Graph:
    """Return the graph that PC learns from rows of data.

    Parameters
    ----------
    values
        Rows of observational data.
    significance
        Level of the two-sided tests; a smaller one leaves fewer edges.

    Returns
    -------
    Graph
        Adjacency matrix of a partially directed graph, (d, d); an undirected edge is set in both directions.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.atleast_2d(np.corrcoef(values.T))
    correlations[~np.isfinite(correlations)] = 0.0  # columns that are constant in these rows
    np.fill_diagonal(correlations, 1.0)
    return pc_of_correlations(correlations, values.shape[0], significance)


def pc_of_correlations(correlations: Float[np.ndarray, "d d"], rows: int, significance: float) -> Graph:
    """Return what `pc_search` returns, from correlations.

    Parameters
    ----------
    correlations
        Correlation matrix, (d, d).
    rows
        Number of rows that the correlations come from.
    significance
        Level of the two-sided tests.

    Returns
    -------
    Graph
        As for `pc_search`.

    Examples
    --------
    >>> collider = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [0.5, 0.5, 1.0]])
    >>> pc_of_correlations(collider, 1000, 0.05).astype(int).tolist()
    [[0, 0, 1], [0, 0, 1], [0, 0, 0]]
    """
    none = Counting(
        no_counts(len(correlations)), count_scratch(no_counts(len(correlations))), np.zeros((1, 1, 1)), np.zeros(1)
    )
    return _directed(*_skeleton(correlations, rows, float(norm.isf(significance / 2)), none))


def pc_of_counts(counts: CountTable, significance: float) -> Graph:
    """Return what `pc_search` returns, from counts of categorical rows.

    Parameters
    ----------
    counts
        Distinct rows with their numbers.
    significance
        Level of the tests.

    Returns
    -------
    Graph
        As for `pc_search`.
    """
    d, most = len(counts.levels), int(counts.levels.max())
    freedom = np.arange(1, (most - 1) ** 2 * len(counts.weights) + 1)
    counting = Counting(
        counts, count_scratch(counts), np.zeros((len(counts.weights), most, most)),
        np.append(np.inf, chi2.isf(significance, freedom)),
    )  # fmt: skip
    return _directed(*_skeleton(np.eye(d), int(counts.weights.sum()), 0.0, counting))


def _directed(adjacent: Graph, separators: np.ndarray) -> Graph:
    """Return the partially directed graph of a skeleton and its separators."""
    directed = _colliders(adjacent, separators)
    while _apply_meek_rules(adjacent, directed):
        pass
    return adjacent & ~directed.T


class Counting(NamedTuple):
    """What tests on contingency tables need."""

    table: CountTable
    scratch: CountScratch
    cells: np.ndarray  # (u, levels, levels)
    critical: np.ndarray  # critical value of G² by degrees of freedom


@njit
def _skeleton(correlations, rows, threshold, counting):
    """Return which nodes are adjacent, and the separators [x, y, :] of those that are not."""
    d = correlations.shape[0]
    adjacent = ~np.eye(d, dtype=np.bool_)
    separators = np.zeros((d, d, d), dtype=np.bool_)
    scaled = np.empty((d, d))
    size = 0
    while adjacent.sum(axis=1).max() > size:
        separated = np.zeros((d, d), dtype=np.bool_)
        for x in range(d):
            near = np.flatnonzero(adjacent[x])
            if len(near) > size:
                _separate(x, near, size, correlations, rows, threshold, scaled, separated, separators, counting)
        adjacent &= ~separated
        size += 1
    return adjacent, separators


@njit
def _separate(x, near, size, correlations, rows, threshold, scaled, separated, separators, counting):
    """Test x against each neighbour given every set of `size` other neighbours; record independent pairs.

    `scaled[a]` holds covariances of the a-th node of the set with all nodes, given the nodes before it in the set,
    divided by its standard deviation given those: `cov(u, v | set) = cor(u, v) - sum_a scaled[a, u] scaled[a, v]`.
    """
    chosen = np.arange(size)  # positions in `near`, ascending
    inside = np.zeros(len(near), dtype=np.bool_)
    first = 0  # first position at which the set differs from the one before
    while True:
        for a in range(first, size):
            s = near[chosen[a]]
            left = _covariance(s, s, a, correlations, scaled)
            factor = 1.0 / np.sqrt(left) if left > TINY else 0.0
            scaled[a, x] = factor * _covariance(s, x, a, correlations, scaled)
            for v in near:
                scaled[a, v] = factor * _covariance(s, v, a, correlations, scaled)
        inside[:] = False
        inside[chosen] = True
        by_counts = counting.table.weights.shape[0] > 0
        occur = 0
        if by_counts:
            occur = label_rows(counting.table, counting.table.free[0], near[chosen], size, counting.scratch)
        for k in range(len(near)):
            y = near[k]
            if inside[k]:
                continue
            if by_counts:
                independent = _independent_counts(x, y, occur, counting)
            else:
                independent = _independent(x, y, size, correlations, rows, threshold, scaled)
            if independent:
                separated[x, y] = separated[y, x] = True
                for a in chosen:
                    separators[x, y, near[a]] = separators[y, x, near[a]] = True
        first = size - 1
        while first >= 0 and chosen[first] == len(near) - size + first:
            first -= 1
        if first < 0:
            return
        chosen[first] += 1
        for a in range(first + 1, size):
            chosen[a] = chosen[a - 1] + 1


@njit
def _covariance(u, v, size, correlations, scaled):
    """Return the covariance of u and v given the first `size` nodes of the set."""
    out = correlations[u, v]
    for a in range(size):
        out -= scaled[a, u] * scaled[a, v]
    return out


@njit
def _independent(x, y, size, correlations, rows, threshold, scaled):
    """Return whether Fisher's z, `sqrt(n - size - 3) |atanh r|` with the partial correlation r, is below the threshold.

    A node that the set determines, or too few rows for a test, count as independent.
    """
    left_x, left_y = _covariance(x, x, size, correlations, scaled), _covariance(y, y, size, correlations, scaled)
    if left_x <= TINY or left_y <= TINY or rows <= size + 3:
        return True
    r = abs(_covariance(x, y, size, correlations, scaled)) / np.sqrt(left_x * left_y)
    return r < 1.0 and np.sqrt(rows - size - 3.0) * np.arctanh(r) < threshold


@njit
def _independent_counts(x, y, occur, counting):
    """Return whether `G² = 2 sum_k sum_ab N_kab log(N_kab N_k / (N_ka N_kb))` is below its critical value.

    k runs over the combinations of levels of the set that occur, and the degrees of freedom are the sum over k of
    (levels of x that occur - 1)(levels of y that occur - 1).
    """
    table, cells = counting.table, counting.cells
    size_x, size_y = table.levels[x], table.levels[y]
    cells[:occur] = 0.0
    for u in range(table.weights.shape[0]):
        cells[counting.scratch.label[u], table.codes[x, u], table.codes[y, u]] += table.weights[u]
    statistic, freedom = 0.0, 0
    for k in range(occur):
        total = cells[k].sum()
        if total == 0.0:
            continue
        occur_x = occur_y = 0
        for b in range(size_y):
            occur_y += cells[k, :, b].sum() > 0
        for a in range(size_x):
            of_x = cells[k, a].sum()
            occur_x += of_x > 0
            for b in range(size_y):
                if cells[k, a, b] > 0:
                    statistic += 2 * cells[k, a, b] * np.log(cells[k, a, b] * total / (of_x * cells[k, :, b].sum()))
        freedom += (occur_x - 1) * (occur_y - 1)
    return statistic < counting.critical[freedom]


@njit
def _colliders(adjacent, separators):
    """Return the directed edges of the colliders, ordered by middle node; contradictory later ones are left out."""
    d = adjacent.shape[0]
    directed = np.zeros((d, d), dtype=np.bool_)
    for y in range(d):
        near = np.flatnonzero(adjacent[y])
        for a in range(len(near)):
            for b in range(a + 1, len(near)):
                x, z = near[a], near[b]
                if adjacent[x, z] or separators[x, z, y] or directed[y, x] or directed[y, z]:
                    continue
                directed[x, y] = directed[z, y] = True
    return directed


@njit
def _apply_meek_rules(adjacent, directed):
    """Apply each rule once to every edge; return False if none applied."""
    d = adjacent.shape[0]
    applied = False
    for rule in (1, 2, 3):
        for x in range(d):
            for y in range(d):
                if not adjacent[x, y] or directed[x, y] or directed[y, x]:
                    continue
                if _implied(x, y, rule, adjacent, directed) and not _leads_to(y, x, directed):
                    directed[x, y] = applied = True
    return applied


@njit
def _implied(x, y, rule, adjacent, directed):
    """Return whether this one of Meek's rules turns the undirected edge x - y into x -> y."""
    d = adjacent.shape[0]
    for u in range(d):
        if rule == 1 and directed[u, x] and not adjacent[u, y] and u != y:  # u -> x - y
            return True
        if rule == 2 and directed[x, u] and directed[u, y]:  # x -> u -> y
            return True
        if rule == 3 and _is_kite_side(x, u, y, adjacent, directed):  # x - u -> y and x - v -> y, u and v not adjacent
            for v in range(u + 1, d):
                if not adjacent[u, v] and _is_kite_side(x, v, y, adjacent, directed):
                    return True
    return False


@njit
def _is_kite_side(x, u, y, adjacent, directed):
    """Return whether x - u -> y."""
    return adjacent[x, u] and not directed[x, u] and not directed[u, x] and directed[u, y]


@njit
def _leads_to(start, end, directed):
    """Return whether a directed path leads from start to end."""
    d = directed.shape[0]
    seen = np.zeros(d, dtype=np.bool_)
    queue = np.empty(d, dtype=np.int64)
    seen[start], queue[0] = True, start
    taken, known = 0, 1
    while taken < known:
        for b in range(d):
            if directed[queue[taken], b] and not seen[b]:
                if b == end:
                    return True
                seen[b], queue[known] = True, b
                known += 1
        taken += 1
    return False
