"""Compiled linear algebra of Gaussian-process families: Cholesky factors of matrices, and low-rank ones of kernels."""

from __future__ import annotations

import numpy as np

from dagpost._util.compiled import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}
"""Floating-point liberties that vectorise sums; infinities and NaN keep their meaning."""


@njit(nogil=True, fastmath=FAST)
def products(rows, i, j, length):
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
            for s0, s1, s2, s3 in products(matrix, top, left, left):
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


@njit(nogil=True)
def function_variance(p, precision):
    """Return the expected variance of a function with kernel `k_SE` over p standard normal inputs.

    It is `E k(x, x) - E k(x, x')`, with x - x' normal of variance 2.
    """
    return 1.0 - (1.0 + 2.0 * precision) ** (-0.5 * p)


@njit(nogil=True, fastmath=FAST)
def kernel_row(inputs, i, precision, out):
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
def factor(inputs, precision, targets, most, basis, ranks):
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
        kernel_row(inputs, pivot, precision, row)
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
def sum_factor(inputs, precision, targets, most, work, basis, ranks):
    """Write the rows of Lᵀ to `basis`, `sum_a k_SE(x_a) ≈ L Lᵀ` with a factor for each of the p inputs.

    Each has at most an equal share of the `most` rows that are left; `work` has `most` rows. Return the number of rows,
    -1 if one of the inputs would need more. `ranks[k]` is the number of rows after which the trace of the remainder is
    at most `p targets[k]`.
    """
    p, used, complete = len(inputs), 0, True
    starts, parts = np.empty(p, dtype=np.int64), np.zeros((p, len(targets)), dtype=np.int64)
    for a in range(p):
        share = (most - used) // (p - a)
        complete &= factor(inputs[a : a + 1], precision, targets, share, work[used:], parts[a]) >= 0
        starts[a] = used
        used += parts[a, -1]
    rank = 0
    for k in range(len(targets)):  # the rows that every input needs for targets[k] come before those for targets[k + 1]
        for a in range(p):
            for q in range(parts[a, k - 1] if k > 0 else 0, parts[a, k]):
                basis[rank] = work[starts[a] + q]
                rank += 1
        ranks[k] = rank
    return rank if complete else -1
