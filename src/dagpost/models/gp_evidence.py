"""Compiled evidence of Gaussian-process families, on a grid of length scales and signal-to-noise ratios.

For the standardised node y and its p standardised parents X, given a length l, a ratio r and the noise variance v,

    y ~ N(0, v M),   M = I + kappa² 1 1ᵀ + r K,   K = (1 - c) k(X, X) / s + c X Xᵀ / p,
    v | r ~ InverseGamma(a, b / (1 + r)),

with one of two kernels k, which are the same for one parent,

    joint:  k(x, x') = k_SE(x, x'; l sqrt(p)),       sum:  k(x, x') = 1/p sum_a k_SE(x_a, x'_a; l),

and s the variance that functions of kernel k have over standard normal inputs (`function_variance`), so that r is the
ratio of signal to noise whatever the length. Without it functions of long lengths would hardly vary, and a family with
an unrelated parent would cost little. The total variance `v (1 + r)` has the same prior for every ratio and every
number of parents. With v integrated out, y has a multivariate Student density:

    log p(y | l, r) = a log(b / (1 + r)) + log Γ(a + N/2) - log Γ(a) - N/2 log(2π)
                      - ½ log|M| - (a + N/2) log(b / (1 + r) + ½ yᵀ M⁻¹ y).

Two ways lead to `|A|` and `A⁻¹` of `A = I + r K`; the intercept is a change of A by rank one.

* Factor: `k ≈ L Lᵀ` by a Cholesky factor with pivots, which ends when the trace of the remainder E is negligible:
  `½ log|A|` changes by at most `½ r tr(E)`. For the sum kernel L has the factors of its terms side by side, which have
  few columns each. With `B = [sqrt((1 - c) / s) L, sqrt(c / p) X]` of R columns, `A⁻¹ = I - r B (I + r BᵀB)⁻¹ Bᵀ`,
  which takes matrices of size R.
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
from dagpost.models.gp_factors import FAST, factor, function_variance, kernel_row, products, reduce_matrix, sum_factor

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
    joint: bool  # one function of all parents
    summed: bool  # a sum of functions of single parents


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
            for s0, s1, s2, s3 in products(basis, top, left, rows):
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
def _directly(grid, y, inputs, summed, precision, weight, matrix, best, out):
    """Write `log p(y | l, r)` of every ratio to `out`, from Cholesky factors of A.

    Return the largest, or `best` if that is larger.
    """
    p, rows = inputs.shape
    kernel, row = np.zeros((rows, rows)), np.empty(rows)
    for i in range(rows):
        if summed:
            for a in range(p):
                kernel_row(inputs[a : a + 1, : i + 1], i, precision, row[: i + 1])
                kernel[i, : i + 1] += row[: i + 1] / p
        else:
            kernel_row(inputs[:, : i + 1], i, precision, kernel[i, : i + 1])
        for j in range(i + 1):
            product = 0.0
            for a in range(p):
                product += inputs[a, i] * inputs[a, j]
            kernel[i, j] = weight * kernel[i, j] + grid.linear / p * product
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


@njit(nogil=True)
def _largest_rank(grid, rows, summed):
    """Return the rank of a factor above which the direct way is taken, or at which it ends where that is not."""
    if rows > DIRECT_ROWS:
        return min(grid.most, rows)
    return rows if summed else int(DIRECT_SHARE * rows) + 1  # the direct way takes longer for a sum


@njit(nogil=True)
def _workspace(grid, p, rows):
    """Return arrays for families with up to p parents: a matrix to be factorised, a basis, and one of its parts."""
    most = max(_largest_rank(grid, rows, False), _largest_rank(grid, rows, True) if grid.summed and p > 1 else 0)
    size = max(rows if rows <= DIRECT_ROWS else 0, p + most) + 6  # two rows for y and 1, and up to four read in vain
    return np.zeros((size, size)), np.zeros((p + most + 6, rows)), np.empty((most, rows))


@njit(nogil=True, fastmath=FAST)
def _along_lengths(grid, y, inputs, summed, arrays, best, out):
    """Write `log p(y | l, r)` of every length and ratio to `out`, for the sum kernel or the joint one.

    Return the largest, or `best` if that is larger. `arrays` is a workspace.
    """
    p, rows = inputs.shape
    most = _largest_rank(grid, rows, summed)
    matrix, basis, work = arrays
    for a in range(p):
        basis[a] = np.sqrt(grid.linear / p) * inputs[a]
    ranks = np.empty(len(grid.ratios), dtype=np.int64)
    large = False
    for length in range(len(grid.lengths) - 1, -1, -1):  # the longest takes the smallest rank
        precision = 1.0 / (grid.lengths[length] ** 2 * (1 if summed else p))
        weight = (1.0 - grid.linear) / function_variance(1 if summed else p, precision)
        targets = REMAINDER / (weight * grid.ratios)
        if not large:
            if summed:
                rank = sum_factor(inputs, precision, targets, most, work, basis[p:], ranks)
            else:
                rank = factor(inputs, precision, targets, most, basis[p:], ranks)
            large = rank < 0 and rows <= DIRECT_ROWS
        if large:
            best = _directly(grid, y, inputs, summed, precision, weight, matrix, best, out[length])
            continue
        for i in range(p, p + ranks[-1]):
            basis[i] *= np.sqrt(weight / (p if summed else 1))
        best = _by_factor(grid, y, basis, ranks, p, matrix, best, out[length])
    return best


@njit(nogil=True, fastmath=FAST)
def on_grid(grid, y, inputs, arrays, out):
    """Write `log p(y | kernel, l, r)` of every kernel, length and ratio to `out`, -inf where it is negligible.

    `inputs` are the parents, of shape (p, N), and `arrays` a workspace. With less than two parents the kernels are the
    same, and the first has it all.
    """
    p, rows = inputs.shape
    out[:] = -np.inf
    if p == 0 or rows == 0:  # no function: intercept and noise only
        parts = _with_intercept(grid, 0.0, np.sum(y * y), np.sum(y), float(rows))
        out[: 1 if p < 2 else len(out)] = _log_student(grid, rows, 0.0, parts[0], parts[1])
    elif p == 1:
        _along_lengths(grid, y, inputs, False, arrays, -np.inf, out[0])
    else:
        best = -np.inf
        if grid.summed:  # first, because it is faster and the other one need not go on where it is far below
            best = _along_lengths(grid, y, inputs, True, arrays, best, out[-1])
        if grid.joint:
            _along_lengths(grid, y, inputs, False, arrays, best, out[0])


@njit(nogil=True)
def _families(grid, standard, counts, group, nodes, parents, first, last, out):
    """Write the tables of families `first` to `last` to `out`."""
    most = 0
    for f in range(first, last):
        most = max(most, parents[f].sum())
    arrays = _workspace(grid, 0, 0)
    for f in range(first, last):
        j, p = nodes[f], 0
        rows = counts[group[j]]
        columns = standard[group[j]]
        inputs = np.empty((parents.shape[1], rows))
        for i in range(parents.shape[1]):
            if parents[f, i]:
                inputs[p] = columns[i, :rows]
                p += 1
        if arrays[1].shape[1] != rows:
            arrays = _workspace(grid, most, rows)
        on_grid(grid, columns[j, :rows], inputs[:p], arrays, out[:, f])


def evidence_grids(
    grid: Grid, standard: np.ndarray, counts: np.ndarray, group: np.ndarray, nodes: np.ndarray, parents: np.ndarray
) -> Float[np.ndarray, "k n a b"]:
    """Return `log p(y | kernel, l, r)` of many families, in as many threads as there are cores.

    Kernels are in the order joint, sum; what a family does not use is -inf.

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
    out = np.empty((grid.joint + grid.summed, len(nodes), len(grid.lengths), len(grid.ratios)))
    work = partial(_families, grid, standard, counts, group, nodes, parents)
    threads = min(available_cores(), -(-len(nodes) // CHUNK))
    if threads <= 1:
        work(0, len(nodes), out)
        return out
    starts = range(0, len(nodes), CHUNK)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda first: work(first, min(first + CHUNK, len(nodes)), out), starts))
    return out
