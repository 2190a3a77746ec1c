"""Compiled evidence of Gaussian-process families, on a grid of length scales and signal-to-noise ratios.

For the standardised node y and its p standardised parents X, given a length l, a ratio r and the noise variance v,

    y ~ N(0, v M),   M = I + kappa² 1 1ᵀ + r K,   K = (1 - c) k_SE(X, X; l sqrt(p)) + c X Xᵀ / p,
    v | r ~ InverseGamma(a, b / (1 + r)),

so that the total variance `v (1 + r)` has the same prior for every ratio and every number of parents. With v integrated
out, y has a multivariate Student density:

    log p(y | l, r) = a log(b / (1 + r)) + log Γ(a + N/2) - log Γ(a) - N/2 log(2π)
                      - ½ log|M| - (a + N/2) log(b / (1 + r) + ½ yᵀ M⁻¹ y).

Two ways lead to `|A|` and `A⁻¹` of `A = I + r K`; the intercept is a change of A by rank one.

* Factor: `k_SE ≈ L Lᵀ` by a Cholesky factor with pivots, which ends when the trace of the remainder E is negligible:
  `½ log|A|` changes by at most `½ r tr(E)`. With `B = [sqrt(1 - c) L, sqrt(c / p) X]` of R columns,
  `A⁻¹ = I - r B (I + r BᵀB)⁻¹ Bᵀ`, which takes matrices of size R.
* Direct: the Cholesky factor of A itself, of size N, where R would be nearly N.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import lgamma
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost._util.compiled import njit
from dagpost._util.environment import available_cores

FAST = {"reassoc", "contract", "nsz", "arcp"}
"""Floating-point liberties that vectorise sums; infinities and NaN keep their meaning."""
REMAINDER = 1e-6
"""Largest `r tr(E)` of a factor, in nats."""
DIRECT_SHARE = 0.6
"""Rank of a factor, as a share of the rows, above which the direct way is faster."""
DIRECT_ROWS = 500
"""Rows up to which the direct way is taken where a factor would be large; beyond, the factor ends at `Grid.most`."""

CHUNK = 4
"""Families that a thread scores before it asks for more."""


class Grid(NamedTuple):
    """Settings of the model as arrays, for compiled functions."""

    lengths: np.ndarray  # (a,) length scales for one parent
    ratios: np.ndarray  # (b,) increasing
    linear: float  # c, share of the linear part
    kappa2: float  # variance of the intercept, in units of v
    shape: float
    rate: float
    most: int  # largest rank


@njit(nogil=True, fastmath=FAST)
def _log_student(grid, rows, ratio, log_determinant, yy, y1, ones):
    """Return `log p(y | l, r)` from `log|A|`, `yᵀA⁻¹y`, `1ᵀA⁻¹y` and `1ᵀA⁻¹1`."""
    # M = A + kappa² 1 1ᵀ: |M| = |A| (1 + kappa² 1ᵀA⁻¹1), and the formula of Sherman and Morrison
    grown = 1.0 + grid.kappa2 * ones
    quadratic = yy - grid.kappa2 * y1 * y1 / grown
    power, rate = grid.shape + 0.5 * rows, grid.rate / (1.0 + ratio)
    return (
        grid.shape * np.log(rate)
        + lgamma(power)
        - lgamma(grid.shape)
        - 0.5 * rows * np.log(2.0 * np.pi)
        - 0.5 * (log_determinant + np.log(grown))
        - power * np.log(rate + 0.5 * max(quadratic, 0.0))
    )


@njit(nogil=True, fastmath=FAST)
def _products(left, i, right, j, length, out):
    """Write the products of rows i to i + 3 of `left` with rows j to j + 3 of `right` to `out`, over `length` columns.

    Sixteen sums at once, because each number that is read serves four of them.
    """
    a0, a1, a2, a3 = left[i], left[i + 1], left[i + 2], left[i + 3]
    b0, b1, b2, b3 = right[j], right[j + 1], right[j + 2], right[j + 3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for k in range(length):
        s00 += a0[k] * b0[k]
        s01 += a0[k] * b1[k]
        s02 += a0[k] * b2[k]
        s03 += a0[k] * b3[k]
        s10 += a1[k] * b0[k]
        s11 += a1[k] * b1[k]
        s12 += a1[k] * b2[k]
        s13 += a1[k] * b3[k]
        s20 += a2[k] * b0[k]
        s21 += a2[k] * b1[k]
        s22 += a2[k] * b2[k]
        s23 += a2[k] * b3[k]
        s30 += a3[k] * b0[k]
        s31 += a3[k] * b1[k]
        s32 += a3[k] * b2[k]
        s33 += a3[k] * b3[k]
    out[0, 0], out[0, 1], out[0, 2], out[0, 3] = s00, s01, s02, s03
    out[1, 0], out[1, 1], out[1, 2], out[1, 3] = s10, s11, s12, s13
    out[2, 0], out[2, 1], out[2, 2], out[2, 3] = s20, s21, s22, s23
    out[3, 0], out[3, 1], out[3, 2], out[3, 3] = s30, s31, s32, s33


@njit(nogil=True, fastmath=FAST)
def reduce_matrix(matrix, size):
    """Return `log|matrix|`, and `bᵀ matrix⁻¹ b'` of the two rows b below it: first with itself, both, second.

    The lower triangle is overwritten by the Cholesky factor C, and the rows below it by `C⁻¹ b`.
    """
    log_determinant, tile = 0.0, np.empty((4, 4))
    for top in range(0, size + 2, 4):
        for left in range(0, min(top + 4, size), 4):
            _products(matrix, top, matrix, left, left, tile)
            for i in range(top, min(top + 4, size + 2)):
                for j in range(left, min(left + 4, i + 1, size)):
                    total = matrix[i, j] - tile[i - top, j - left]
                    for k in range(left, j):
                        total -= matrix[i, k] * matrix[j, k]
                    if i == j:
                        log_determinant += np.log(total)
                        matrix[i, i] = np.sqrt(total)
                    else:
                        matrix[i, j] = total / matrix[j, j]
    first, both, second = 0.0, 0.0, 0.0
    for k in range(size):
        a, b = matrix[size, k], matrix[size + 1, k]
        first += a * a
        both += a * b
        second += b * b
    return log_determinant, first, both, second


@njit(nogil=True, fastmath=FAST)
def _kernel_row(inputs, i, precision, out):
    """Write `k_SE` of row i with every row to `out`."""
    p, rows = inputs.shape
    for n in range(rows):
        out[n] = 0.0
    for a in range(p):
        centre = inputs[a, i]
        for n in range(rows):
            difference = inputs[a, n] - centre
            out[n] += difference * difference
    for n in range(rows):
        out[n] = np.exp(-0.5 * precision * out[n])


@njit(nogil=True, fastmath=FAST)
def _factor(inputs, precision, targets, most, basis, ranks):
    """Write the rows of Lᵀ, `k_SE ≈ L Lᵀ`, to `basis`, and return their number; -1 if it would be above `most`.

    `ranks[k]` is the number of rows after which the trace of the remainder is at most `targets[k]` (decreasing).
    """
    rows = inputs.shape[1]
    remainder = np.ones(rows)
    k = 0
    for rank in range(rows + 1):
        trace, pivot = 0.0, 0
        for n in range(rows):
            trace += remainder[n]
            if remainder[n] > remainder[pivot]:
                pivot = n
        while k < len(targets) and trace <= targets[k]:
            ranks[k] = rank
            k += 1
        if k == len(targets) or rank == rows:
            ranks[k:] = rank
            return rank
        if rank == most:
            ranks[k:] = rank
            return -1
        row = basis[rank]
        _kernel_row(inputs, pivot, precision, row)
        for q in range(0, rank - 3, 4):
            w0, w1, w2, w3 = basis[q, pivot], basis[q + 1, pivot], basis[q + 2, pivot], basis[q + 3, pivot]
            b0, b1, b2, b3 = basis[q], basis[q + 1], basis[q + 2], basis[q + 3]
            for n in range(rows):
                row[n] -= w0 * b0[n] + w1 * b1[n] + w2 * b2[n] + w3 * b3[n]
        for q in range(rank - rank % 4, rank):
            weight, other = basis[q, pivot], basis[q]
            for n in range(rows):
                row[n] -= weight * other[n]
        scale = 1.0 / np.sqrt(remainder[pivot])
        for n in range(rows):
            row[n] *= scale
            remainder[n] = max(remainder[n] - row[n] * row[n], 0.0)
    return rows


@njit(nogil=True, fastmath=FAST)
def _by_factor(grid, y, basis, ranks, p, matrix, out):
    """Write `log p(y | l, r)` of every ratio to `out`, from the rows of Bᵀ: p for the linear part, then Lᵀ.

    The two rows after these are overwritten by y and 1.
    """
    rows, size = len(y), p + ranks[-1]
    basis[size] = y
    basis[size + 1] = 1.0
    gram, tile = np.empty((size + 6, size + 6)), np.empty((4, 4))
    for top in range(0, size + 2, 4):
        for left in range(0, top + 4, 4):
            _products(basis, top, basis, left, rows, tile)
            for i in range(4):
                for j in range(4):
                    gram[top + i, left + j] = tile[i, j]
    yy, y1 = gram[size, size], gram[size + 1, size]
    for k in range(len(grid.ratios)):
        ratio, m = grid.ratios[k], p + ranks[k]
        root = np.sqrt(ratio)
        for i in range(m):  # I + r BᵀB, and below it sqrt(r) yᵀB and sqrt(r) 1ᵀB
            for j in range(i + 1):
                matrix[i, j] = ratio * gram[i, j]
            matrix[i, i] += 1.0
            matrix[m, i] = root * gram[size, i]
            matrix[m + 1, i] = root * gram[size + 1, i]
        log_determinant, along, both, level = reduce_matrix(matrix, m)
        out[k] = _log_student(grid, rows, ratio, log_determinant, yy - along, y1 - both, rows - level)


@njit(nogil=True, fastmath=FAST)
def _directly(grid, y, inputs, precision, matrix, out):
    """Write `log p(y | l, r)` of every ratio to `out`, from Cholesky factors of A."""
    p, rows = inputs.shape
    kernel = np.empty((rows, rows))
    for i in range(rows):
        _kernel_row(inputs[:, : i + 1], i, precision, kernel[i, : i + 1])
        for j in range(i + 1):
            product = 0.0
            for a in range(p):
                product += inputs[a, i] * inputs[a, j]
            kernel[i, j] = (1.0 - grid.linear) * kernel[i, j] + grid.linear / p * product
    for k in range(len(grid.ratios)):
        ratio = grid.ratios[k]
        for i in range(rows):
            for j in range(i + 1):
                matrix[i, j] = ratio * kernel[i, j]
            matrix[i, i] += 1.0
            matrix[rows, i] = y[i]
            matrix[rows + 1, i] = 1.0
        log_determinant, yy, y1, ones = reduce_matrix(matrix, rows)
        out[k] = _log_student(grid, rows, ratio, log_determinant, yy, y1, ones)


@njit(nogil=True, fastmath=FAST)
def on_grid(grid, y, inputs, out):
    """Write `log p(y | l, r)` of every length and ratio to `out`; `inputs` are the parents, of shape (p, N)."""
    p, rows = inputs.shape
    if p == 0 or rows == 0:  # no function: intercept and noise only
        out[:] = _log_student(grid, rows, 0.0, 0.0, np.sum(y * y), np.sum(y), float(rows))
        return
    direct = rows <= DIRECT_ROWS
    most = int(DIRECT_SHARE * rows) + 1 if direct else min(grid.most, rows)
    size = max(rows if direct else 0, p + most) + 6  # two rows for y and 1, and up to four that are read in vain
    matrix = np.zeros((size, size))
    basis = np.zeros((p + most + 6, rows))
    for a in range(p):
        basis[a] = np.sqrt(grid.linear / p) * inputs[a]
    ranks = np.empty(len(grid.ratios), dtype=np.int64)
    targets = REMAINDER / grid.ratios
    for length in range(len(grid.lengths)):
        precision = 1.0 / (grid.lengths[length] ** 2 * p)
        rank = _factor(inputs, precision, targets, most, basis[p:], ranks)
        if rank < 0 and direct:
            _directly(grid, y, inputs, precision, matrix, out[length])
            continue
        for i in range(p, p + ranks[-1]):
            basis[i] *= np.sqrt(1.0 - grid.linear)
        _by_factor(grid, y, basis, ranks, p, matrix, out[length])


@njit(nogil=True)
def _families(grid, standard, counts, group, nodes, parents, first, last, out):
    """Write the tables of families `first` to `last` to `out`."""
    for f in range(first, last):
        j, p = nodes[f], 0
        rows = counts[group[j]]
        columns = standard[group[j]]
        inputs = np.empty((parents.shape[1], rows))
        for i in range(parents.shape[1]):
            if parents[f, i]:
                inputs[p] = columns[i, :rows]
                p += 1
        on_grid(grid, columns[j, :rows], inputs[:p], out[f])


def evidence_grids(
    grid: Grid, standard: np.ndarray, counts: np.ndarray, group: np.ndarray, nodes: np.ndarray, parents: np.ndarray
) -> Float[np.ndarray, "n a b"]:
    """Return `log p(y | l, r)` of many families for every length and ratio, in as many threads as there are cores.

    Parameters
    ----------
    grid
        Settings.
    standard
        Standardised columns for each group of rows, of shape (g, d, n); the rows of a group come first.
    counts
        Number of rows of each group.
    group
        Group of each node.
    nodes
        Node of each family.
    parents
        Its parents, as an indicator of the columns.
    """
    out = np.empty((len(nodes), len(grid.lengths), len(grid.ratios)))
    work = partial(_families, grid, standard, counts, group, nodes, parents)
    threads = min(available_cores(), -(-len(nodes) // CHUNK))
    if threads <= 1:
        work(0, len(nodes), out)
        return out
    starts = range(0, len(nodes), CHUNK)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda first: work(first, min(first + CHUNK, len(nodes)), out), starts))
    return out
