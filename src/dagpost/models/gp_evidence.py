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

Most points of the grid are far below the best one, and the larger ratios need not be computed to know that. As a
function of r, `yᵀM⁻¹y` is a sum of terms `w / (1 + r λ)`, whose inverse is concave; `log|M|` is convex in log r. Their
values at two ratios therefore bound those at larger ones, and `log p(y | l, r)` from above (`_remaining_bound`).
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
REMAINDER = 1e-4
"""Largest `r tr(E)` of a factor, in nats."""
NEGLIGIBLE = 25.0
"""Points of the grid that are surely so far below the best one, in nats, are left out: 1e-11 of the evidence each."""
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
def _log_student(grid, rows, ratio, log_determinant, quadratic):
    """Return `log p(y | l, r)` from `log|M|` and `yᵀM⁻¹y`."""
    power, rate = grid.shape + 0.5 * rows, grid.rate / (1.0 + ratio)
    return (
        grid.shape * np.log(rate)
        + lgamma(power)
        - lgamma(grid.shape)
        - 0.5 * rows * np.log(2.0 * np.pi)
        - 0.5 * log_determinant
        - power * np.log(rate + 0.5 * max(quadratic, 0.0))
    )


@njit(nogil=True, fastmath=FAST)
def _with_intercept(grid, log_determinant, yy, y1, ones):
    """Return `log|M|` and `yᵀM⁻¹y` from `log|A|`, `yᵀA⁻¹y`, `1ᵀA⁻¹y` and `1ᵀA⁻¹1`, for M = A + kappa² 1 1ᵀ."""
    # |M| = |A| (1 + kappa² 1ᵀA⁻¹1), and the formula of Sherman and Morrison
    grown = 1.0 + grid.kappa2 * ones
    return log_determinant + np.log(grown), yy - grid.kappa2 * y1 * y1 / grown


@njit(nogil=True)
def _remaining_bound(grid, rows, k, log_determinants, quadratics):
    """Return an upper bound of `log p(y | l, r)` over the ratios k, k + 1, …, from its parts at k - 2 and k - 1."""
    ratios, highest = grid.ratios, -np.inf
    if k < 2 or quadratics[k - 1] <= 0.0 or ratios[k - 1] <= ratios[k - 2]:
        return np.inf
    slope = (log_determinants[k - 1] - log_determinants[k - 2]) / np.log(ratios[k - 1] / ratios[k - 2])
    inverse = 1.0 / quadratics[k - 1]
    rise = (inverse - 1.0 / quadratics[k - 2]) / (ratios[k - 1] - ratios[k - 2])
    for m in range(k, len(ratios)):
        # log|M| is above its chord in log r continued, 1 / yᵀM⁻¹y below its chord in r
        log_determinant = log_determinants[k - 1] + slope * np.log(ratios[m] / ratios[k - 1])
        quadratic = 1.0 / (inverse + rise * (ratios[m] - ratios[k - 1]))
        highest = max(highest, _log_student(grid, rows, ratios[m], log_determinant, quadratic))
    return highest


@njit(nogil=True, fastmath=FAST)
def _products(rows, i, j, length):
    """Return the products of rows i to i + 3 with rows j to j + 3 over `length` columns, four for each of the former.

    Sixteen sums at once, because each number that is read serves four of them.
    """
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = 0.0
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = 0.0
    for k in range(length):
        b0, b1, b2, b3 = rows[j, k], rows[j + 1, k], rows[j + 2, k], rows[j + 3, k]
        a0, a1, a2, a3 = rows[i, k], rows[i + 1, k], rows[i + 2, k], rows[i + 3, k]
        s00 += a0 * b0
        s01 += a0 * b1
        s02 += a0 * b2
        s03 += a0 * b3
        s10 += a1 * b0
        s11 += a1 * b1
        s12 += a1 * b2
        s13 += a1 * b3
        s20 += a2 * b0
        s21 += a2 * b1
        s22 += a2 * b2
        s23 += a2 * b3
        s30 += a3 * b0
        s31 += a3 * b1
        s32 += a3 * b2
        s33 += a3 * b3
    return (s00, s01, s02, s03), (s10, s11, s12, s13), (s20, s21, s22, s23), (s30, s31, s32, s33)


@njit(nogil=True, fastmath=FAST)
def reduce_matrix(matrix, size):
    """Return `log|matrix|`, and `bᵀ matrix⁻¹ b'` of the two rows b below it: first with itself, both, second.

    The lower triangle is overwritten by the Cholesky factor C, and the rows below it by `C⁻¹ b`. Four more rows are
    read and written in vain.
    """
    log_determinant, inverse, whole = 0.0, np.empty(size), size - size % 4
    for top in range(0, size + 2, 4):
        tiled = min(top, whole)  # columns up to here in tiles of 4 by 4, each of which is solved forwards
        for left in range(0, tiled, 4):
            c10, c20, c21 = matrix[left + 1, left], matrix[left + 2, left], matrix[left + 2, left + 1]
            c30, c31, c32 = matrix[left + 3, left], matrix[left + 3, left + 1], matrix[left + 3, left + 2]
            i = top
            for s0, s1, s2, s3 in _products(matrix, top, left, left):
                x0 = (matrix[i, left] - s0) * inverse[left]
                x1 = (matrix[i, left + 1] - s1 - x0 * c10) * inverse[left + 1]
                x2 = (matrix[i, left + 2] - s2 - x0 * c20 - x1 * c21) * inverse[left + 2]
                x3 = (matrix[i, left + 3] - s3 - x0 * c30 - x1 * c31 - x2 * c32) * inverse[left + 3]
                matrix[i, left], matrix[i, left + 1], matrix[i, left + 2], matrix[i, left + 3] = x0, x1, x2, x3
                i += 1
        for i in range(top, min(top + 4, size + 2)):
            for j in range(tiled, min(i + 1, size)):
                total = matrix[i, j]
                for k in range(j):
                    total -= matrix[i, k] * matrix[j, k]
                if i == j:
                    log_determinant += np.log(total)
                    matrix[i, i] = np.sqrt(total)
                    inverse[i] = 1.0 / matrix[i, i]
                else:
                    matrix[i, j] = total * inverse[j]
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
def _by_factor(grid, y, basis, ranks, p, matrix, best, out):
    """Write `log p(y | l, r)` of every ratio to `out`, from the rows of Bᵀ: p for the linear part, then Lᵀ.

    The two rows after these are overwritten by y and 1. Return the largest, or `best` if that is larger.
    """
    rows, size = len(y), p + ranks[-1]
    basis[size] = y
    basis[size + 1] = 1.0
    gram = np.empty((size + 6, size + 6))
    for top in range(0, size + 2, 4):
        for left in range(0, top + 4, 4):
            i = top
            for s0, s1, s2, s3 in _products(basis, top, left, rows):
                gram[i, left], gram[i, left + 1], gram[i, left + 2], gram[i, left + 3] = s0, s1, s2, s3
                i += 1
    yy, y1 = gram[size, size], gram[size + 1, size]
    log_determinants, quadratics = np.empty(len(grid.ratios)), np.empty(len(grid.ratios))
    for k in range(len(grid.ratios)):
        if _remaining_bound(grid, rows, k, log_determinants, quadratics) < best - NEGLIGIBLE:
            out[k:] = -np.inf
            break
        ratio, m = grid.ratios[k], p + ranks[k]
        root = np.sqrt(ratio)
        for i in range(m):  # I + r BᵀB, and below it sqrt(r) yᵀB and sqrt(r) 1ᵀB
            for j in range(i + 1):
                matrix[i, j] = ratio * gram[i, j]
            matrix[i, i] += 1.0
            matrix[m, i] = root * gram[size, i]
            matrix[m + 1, i] = root * gram[size + 1, i]
        log_determinant, along, both, level = reduce_matrix(matrix, m)
        parts = _with_intercept(grid, log_determinant, yy - along, y1 - both, rows - level)
        log_determinants[k], quadratics[k] = parts
        out[k] = _log_student(grid, rows, ratio, parts[0], parts[1])
        best = max(best, out[k])
    return best


@njit(nogil=True, fastmath=FAST)
def _directly(grid, y, inputs, precision, matrix, best, out):
    """Write `log p(y | l, r)` of every ratio to `out`, from Cholesky factors of A.

    Return the largest, or `best` if that is larger.
    """
    p, rows = inputs.shape
    kernel = np.empty((rows, rows))
    for i in range(rows):
        _kernel_row(inputs[:, : i + 1], i, precision, kernel[i, : i + 1])
        for j in range(i + 1):
            product = 0.0
            for a in range(p):
                product += inputs[a, i] * inputs[a, j]
            kernel[i, j] = (1.0 - grid.linear) * kernel[i, j] + grid.linear / p * product
    log_determinants, quadratics = np.empty(len(grid.ratios)), np.empty(len(grid.ratios))
    for k in range(len(grid.ratios)):
        if _remaining_bound(grid, rows, k, log_determinants, quadratics) < best - NEGLIGIBLE:
            out[k:] = -np.inf
            break
        ratio = grid.ratios[k]
        for i in range(rows):
            for j in range(i + 1):
                matrix[i, j] = ratio * kernel[i, j]
            matrix[i, i] += 1.0
            matrix[rows, i] = y[i]
            matrix[rows + 1, i] = 1.0
        log_determinant, yy, y1, ones = reduce_matrix(matrix, rows)
        parts = _with_intercept(grid, log_determinant, yy, y1, ones)
        log_determinants[k], quadratics[k] = parts
        out[k] = _log_student(grid, rows, ratio, parts[0], parts[1])
        best = max(best, out[k])
    return best


@njit(nogil=True, fastmath=FAST)
def on_grid(grid, y, inputs, out):
    """Write `log p(y | l, r)` of every length and ratio to `out`, -inf where it is negligible.

    `inputs` are the parents, of shape (p, N).
    """
    p, rows = inputs.shape
    if p == 0 or rows == 0:  # no function: intercept and noise only
        parts = _with_intercept(grid, 0.0, np.sum(y * y), np.sum(y), float(rows))
        out[:] = _log_student(grid, rows, 0.0, parts[0], parts[1])
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
    best, large = -np.inf, False
    for length in range(len(grid.lengths) - 1, -1, -1):  # the longest takes the smallest rank
        precision = 1.0 / (grid.lengths[length] ** 2 * p)
        if not large:
            large = _factor(inputs, precision, targets, most, basis[p:], ranks) < 0 and direct
        if large:
            best = _directly(grid, y, inputs, precision, matrix, best, out[length])
            continue
        for i in range(p, p + ranks[-1]):
            basis[i] *= np.sqrt(1.0 - grid.linear)
        best = _by_factor(grid, y, basis, ranks, p, matrix, best, out[length])


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
