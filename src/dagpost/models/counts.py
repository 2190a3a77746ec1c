"""Closed-form evidence of categorical families from counts, by sparse contingency tables.

With q combinations of the parents' levels, r levels of the node, N_k rows in combination k, N_kl of them at level l,
and the Dirichlet prior `alpha_k = sum_l alpha_kl`, the log evidence of node j given its parents is

    sum_k [ log Γ(alpha_k) - log Γ(alpha_k + N_k) + sum_l ( log Γ(alpha_kl + N_kl) - log Γ(alpha_kl) ) ].

Combinations without rows add nothing, so that only those that occur are counted: the cost is one pass over the distinct
rows per parent, whatever q is. The priors are

    BDeu   alpha_kl = ess / (q r)        Heckerman, Geiger and Chickering (1995): equivalent graphs score alike
    K2     alpha_kl = 1                  Cooper and Herskovits (1992)
    BDs    alpha_kl = ess / (q' r)       Scutari (2016): q' is the number of combinations that occur.
"""

from __future__ import annotations

from math import lgamma
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from dagpost._util.compiled import njit
from dagpost.data import Dataset

BDEU, K2, BDS = 0, 1, 2
"""Priors of the tables."""
SMALL = 12
"""Counts below this have their gamma functions from sums of logarithms, which are shared within a family."""


class CountTable(NamedTuple):
    """Distinct rows of categorical data with their numbers, and the prior of the tables.

    There are u distinct rows and g groups of nodes with the same interventions.
    """

    codes: Any  # (d, u) levels
    weights: Any  # (u,) number of rows
    free: Any  # (g, u) whether the nodes of a group were not intervened on
    group: Any  # (d,) group of each node
    levels: Any  # (d,) number of levels
    size: Any  # equivalent sample size
    prior: Any  # BDEU, K2 or BDS


def count_rows(data: Dataset, size: float, prior: int, merge: bool = True) -> CountTable:
    """Return the distinct rows of a categorical table, by their interventions too, or all rows without `merge`."""
    masks, group = data.regimes
    rows = np.concatenate([data.values.astype(np.int64), masks.T.astype(np.int64)], axis=1)
    distinct, count = np.unique(rows, axis=0, return_counts=True) if merge else (rows, np.ones(len(rows)))
    d = data.nodes
    return CountTable(
        np.ascontiguousarray(distinct[:, :d].T).astype(np.int32), count.astype(np.float64),
        np.ascontiguousarray(distinct[:, d:].T == 0), group.astype(np.int64),
        np.array([max(len(levels), 1) for levels in data.levels], np.int64), float(size), int(prior),
    )  # fmt: skip


def no_counts(d: int) -> CountTable:
    """Return a table without rows, for models that have none."""
    return CountTable(
        np.zeros((d, 0), np.int32), np.zeros(0), np.zeros((1, 0), np.bool_), np.zeros(d, np.int64),
        np.ones(d, np.int64), 1.0, BDEU,
    )  # fmt: skip


def plain_counts(fields: Any) -> CountTable:
    """Return the table with the types that compiled kernels take, from its fields as arrays of any kind."""
    codes, weights, free, group, levels, size, prior = (np.asarray(field) for field in fields)
    return CountTable(
        np.ascontiguousarray(codes, np.int32), weights.astype(np.float64), np.ascontiguousarray(free, np.bool_),
        group.astype(np.int64), levels.astype(np.int64), float(size), int(prior),
    )  # fmt: skip


class CountScratch(NamedTuple):
    """Memory for counting the rows of a family."""

    label: np.ndarray  # (u,) number of the combination of the parents' levels
    number: np.ndarray  # (u · most levels,) number of a refined combination; -1 between uses
    used: np.ndarray  # (u,) places of `number` in use
    cells: np.ndarray  # (u · most levels,) N_kl
    totals: np.ndarray  # (u,) N_k
    logs: np.ndarray  # (2, SMALL) log Γ(alpha + n) - log Γ(alpha), for alpha_k and alpha_kl
    known: np.ndarray  # (2,) how many of them are filled in


@njit
def count_scratch(table):
    """Return memory for counting families of this table."""
    rows = table.weights.shape[0]
    most = 1
    for r in table.levels:
        most = max(most, r)
    return CountScratch(
        np.empty(rows, np.int64), np.full(rows * most, -1, np.int64), np.empty(rows, np.int64),
        np.empty(rows * most), np.empty(rows), np.zeros((2, SMALL)), np.zeros(2, np.int64),
    )  # fmt: skip


@njit(inline="always")
def log_rising(scratch, which, alpha, log_alpha, count):
    """Return `log Γ(alpha + count) - log Γ(alpha)` of a whole number; small ones are looked up."""
    if count >= SMALL:
        return lgamma(alpha + count) - log_alpha
    n = int(count)
    for k in range(scratch.known[which], n):
        scratch.logs[which, k + 1] = scratch.logs[which, k] + np.log(alpha + k)
    scratch.known[which] = max(scratch.known[which], n)
    return scratch.logs[which, n]


@njit
def label_rows(table, free, parents, p, scratch):
    """Write the number of the combination of levels of the first p parents to `label`, for free rows; return a bound on
    the numbers.

    As long as there are no more combinations than rows all of them are numbered, then those that occur alone.
    """
    label, number, used = scratch.label, scratch.number, scratch.used
    rows = label.shape[0]
    label[:] = 0
    occur, all_numbered = min(1, rows), True
    for a in range(p):
        codes, r = table.codes[parents[a]], table.levels[parents[a]]
        all_numbered = all_numbered and occur * r <= rows
        if all_numbered:
            for u in range(rows):
                label[u] = label[u] * r + codes[u]
            occur *= r
            continue
        occur = 0
        for u in range(rows):
            if free[u]:
                place = label[u] * r + codes[u]
                if number[place] < 0:
                    number[place] = occur
                    used[occur] = place
                    occur += 1
                label[u] = number[place]
        for k in range(occur):
            number[used[k]] = -1
    return occur


@njit
def count_evidence(table, j, parents, p, scratch):
    """Return the log evidence of node j with the first p of `parents`, by the formula at the top of this file."""
    return count_evidence_of_rows(table, table.group[j], j, parents, p, scratch)


@njit
def count_evidence_of_rows(table, rows, j, parents, p, scratch):
    """Return the log evidence of one family in this group of rows."""
    free, r = table.free[rows], table.levels[j]
    occur = label_rows(table, free, parents, p, scratch)
    cells, totals, codes = scratch.cells, scratch.totals, table.codes[j]
    for k in range(occur):
        totals[k] = 0.0
        for v in range(r):
            cells[k * r + v] = 0.0
    for u in range(scratch.label.shape[0]):
        if free[u]:
            totals[scratch.label[u]] += table.weights[u]
            cells[scratch.label[u] * r + codes[u]] += table.weights[u]
    combinations = 1.0
    if table.prior == BDEU:
        for a in range(p):
            combinations *= table.levels[parents[a]]
    elif table.prior == BDS:
        combinations = max(1.0, float((totals[:occur] > 0.0).sum()))
    alpha = float(r) if table.prior == K2 else table.size / combinations
    log_alpha, log_cell = lgamma(alpha), lgamma(alpha / r)
    scratch.known[:] = 0
    out = 0.0
    for k in range(occur):
        if totals[k] == 0.0:
            continue
        out -= log_rising(scratch, 0, alpha, log_alpha, totals[k])
        for v in range(r):
            if cells[k * r + v] > 0.0:
                out += log_rising(scratch, 1, alpha / r, log_cell, cells[k * r + v])
    return out


@njit(nogil=True)
def _evidences(table, nodes, parents, out):
    """Write the log evidence of families, given as indicators of their parents, to `out`."""
    d = parents.shape[1]
    chosen, scratch = np.empty(d, np.int64), count_scratch(table)
    for f in range(nodes.shape[0]):
        p = 0
        for i in range(d):
            if parents[f, i]:
                chosen[p] = i
                p += 1
        out[f] = count_evidence(table, nodes[f], chosen, p, scratch)


def count_evidences(
    table: CountTable, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"]
) -> Float[np.ndarray, " n"]:
    """Return the log evidence of many families."""
    out = np.empty(len(nodes))
    _evidences(table, np.ascontiguousarray(nodes, np.int64), np.ascontiguousarray(parents, np.bool_), out)
    return out


def evidence_of_columns(graphs: Any, *fields: Any) -> np.ndarray:
    """Return the log evidence of every family of batched graphs (…, d, d), of shape (…, d).

    `fields` are those of a `CountTable`, as JAX hands them to the host; batched with the graphs if anything is.
    """
    plain = plain_counts([np.asarray(f)[(0,) * (np.ndim(f) - n)] for f, n in zip(fields, (2, 1, 2, 1, 1, 0, 0))])
    graphs = np.asarray(graphs)
    d = graphs.shape[-1]
    columns = np.swapaxes(graphs, -1, -2).reshape(-1, d) > 0.5
    nodes = np.tile(np.arange(d), len(columns) // d)
    distinct, where = np.unique(np.column_stack([nodes, columns]), axis=0, return_inverse=True)
    scores = count_evidences(plain, distinct[:, 0], distinct[:, 1:].astype(np.bool_))
    return scores[where.reshape(-1)].reshape(graphs.shape[:-1])


def family_counts(table: CountTable, j: int, parents: Int[np.ndarray, " p"]) -> Float[np.ndarray, "q r"]:
    """Return the contingency table of a family: rows for combinations of the parents' levels, the last changing first.

    Parameters
    ----------
    table
        The distinct rows.
    j, parents
        Node and its parents.
    """
    free, r = table.free[table.group[j]], int(table.levels[j])
    shape = tuple(table.levels[parents].tolist())
    place = np.ravel_multi_index(tuple(table.codes[parents][:, free]), shape) if len(parents) else 0
    cells = np.bincount(place * r + table.codes[j, free].astype(np.int64), table.weights[free], int(np.prod(shape)) * r)
    return cells.reshape(-1, r)


def family_alpha(table: CountTable, counts: Float[np.ndarray, "q r"]) -> float:
    """Return the prior weight alpha_kl of each cell of a contingency table."""
    if table.prior == K2:
        return 1.0
    combinations = len(counts) if table.prior == BDEU else max(int((counts.sum(axis=1) > 0).sum()), 1)
    return table.size / combinations / counts.shape[1]
