"""Closed-form evidence of every node given every parent set, for exact inference.

Sets are bit sets and come in increasing order. The Cholesky factor of a set has the columns of its largest members
first, so that two sets that follow each other share most of it: on average each set adds the columns of one parent.
A step of the factorisation serves all columns of K at once, those of the nodes among them, whose Schur complements are
what the evidence is made of: the cost is `p d` operations for a set of p parents and all d nodes, in place of `p³ / 3`
for each of them.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numba import prange

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add
from dagpost.models.conjugate import ConjugateTable, evidence_formula

PIECES = 3
"""The sets are split by so many of their largest members, into 2^PIECES parts that run side by side."""


@njit
def _push(matrix, floor, column, depth, factor, rest, log_determinant):
    """Add a column of K to the factor: write row `depth` of Lᵀ over all columns, and what remains of their variances.

    `rest[depth]` are the Schur complements of single columns given the first `depth` ones.
    """
    size = matrix.shape[0]
    pivot = max(rest[depth, column], floor)
    log_determinant[depth + 1] = log_determinant[depth] + np.log(pivot)
    row, inverse = factor[depth], 1.0 / np.sqrt(pivot)
    for c in range(size):
        row[c] = matrix[column, c]
    for b in range(depth):
        share = factor[b, column]
        for c in range(size):
            row[c] -= share * factor[b, c]
    for c in range(size):
        row[c] *= inverse
        rest[depth + 1, c] = rest[depth, c] - row[c] * row[c]


@njit
def _walk(table, g, nodes, log_share, first, last, begin, out):
    """Write the log evidence of `nodes` given each set from `first` to `last` with setting and group g, or add it."""
    d, size, width = out.shape[0], table.matrix.shape[1], table.width
    prior = table.prior_matrix
    most = d * width + 1
    factor, rest, log_determinant = np.empty((most, size)), np.empty((most + 1, size)), np.zeros(most + 1)
    prior_most = 1 if table.diagonal_prior else most
    prior_factor, prior_rest = np.empty((prior_most, size)), np.empty((prior_most + 1, size))
    prior_determinant = np.zeros(most + 1)
    matrix = table.matrix[g]
    for c in range(size):
        rest[0, c] = matrix[c, c]
        prior_rest[0, c] = prior[c, c]
    members, p = np.empty(d, dtype=np.int64), 0
    previous = 0
    for subset in range(first, last):
        # what is no longer a member is at the end of the list, because the largest members come first
        changed = subset ^ previous
        while p and not subset >> members[p - 1] & 1:
            p -= 1
        for i in range(d - 1, -1, -1):
            if changed >> i & 1 and subset >> i & 1:
                for b in range(width):
                    column, depth = table.first + i * width + b, p * width + b
                    _push(matrix, table.floor, column, depth, factor, rest, log_determinant)
                    if table.diagonal_prior:
                        prior_determinant[depth + 1] = prior_determinant[depth] + np.log(prior[column, column])
                    else:
                        _push(prior, table.floor, column, depth, prior_factor, prior_rest, prior_determinant)
                members[p] = i
                p += 1
        previous = subset
        depth = p * width
        for j in nodes:
            if subset >> j & 1:
                out[j, subset] = -np.inf
                continue
            schur = max(rest[depth, j], table.floor)
            prior_schur = prior[j, j] if table.diagonal_prior else max(prior_rest[depth, j], table.floor)
            value = evidence_formula(table, g, p, log_determinant[depth], schur, prior_determinant[depth], prior_schur)
            value += log_share + table.by_node[j]
            out[j, subset] = value if begin else log_add(out[j, subset], value)


@njit(parallel=True)
def _all_subsets(table, out):
    """Write the log evidence of every node given every parent set to `out`."""
    d = out.shape[0]
    bits = min(PIECES, d)
    length = out.shape[1] >> bits
    settings = table.log_shares.shape[0]
    groups = table.matrix.shape[0] // settings
    for piece in prange(1 << bits):
        for k in range(groups):
            nodes = np.flatnonzero(table.group == k)
            for t in range(settings):
                _walk(
                    table, t * groups + k, nodes, table.log_shares[t],
                    piece * length, (piece + 1) * length, t == 0, out,
                )  # fmt: skip


def evidence_of_subsets(table: ConjugateTable) -> Float[np.ndarray, "d s"]:
    """Return the log evidence of every node given every parent set (bit set); -inf where the set contains the node."""
    d = len(table.group)
    out = np.empty((d, 1 << d))
    _all_subsets(table, out)
    return out
