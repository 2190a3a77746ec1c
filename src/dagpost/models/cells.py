"""Draws of the missing cells of a table given a network with its parameters, compiled.

Gaussian networks, `x_j = c_j + sum_i B_ij x_i + noise of variance v_j`: with `a_j = e_j - B_.j` the row has the
precision and the shift

    K = sum_j a_j a_jᵀ / v_j,   eta = sum_j c_j a_j / v_j,

both over the nodes that were not intervened on in the row, and its missing cells M given the observed ones O are
`N(K_MM⁻¹ h, K_MM⁻¹)` with `h = eta_M - K_MO x_O`: a draw takes one Cholesky factor.

Categorical networks: each missing cell in turn from its full conditional, which is proportional to its own table at its
parents' levels times the tables of its children.
"""

from __future__ import annotations

import numpy as np

from dagpost._util.compiled import njit


@njit(nogil=True)
def draw_gaussian_cells(values, rows, first, columns, regime, precision, shift, normals):
    """Draw the missing cells of every row jointly, in place.

    Row `rows[r]` lacks the columns from `columns[first[r]]` to `columns[first[r + 1]]`, `regime[r]` is the set of its
    nodes that were intervened on, by which `precision` and `shift` are listed, and `normals` has one number per cell.
    """
    d = values.shape[1]
    lower, mean, missing = np.empty((d, d)), np.empty(d), np.empty(d, np.bool_)
    for r in range(rows.shape[0]):
        row, at, q = rows[r], first[r], regime[r]
        m = first[r + 1] - at
        missing[:] = False
        for a in range(m):
            missing[columns[at + a]] = True
        for a in range(m):
            i = columns[at + a]
            total = shift[q, i]
            for k in range(d):
                if not missing[k]:
                    total -= precision[q, i, k] * values[row, k]
            for b in range(a + 1):
                entry = precision[q, i, columns[at + b]]
                for c in range(b):
                    entry -= lower[a, c] * lower[b, c]
                lower[a, b] = np.sqrt(max(entry, 1e-300)) if a == b else entry / lower[b, b]
            for c in range(a):
                total -= lower[a, c] * mean[c]
            mean[a] = total / lower[a, a]  # L⁻¹ h
        for a in range(m - 1, -1, -1):  # x = L⁻ᵀ (L⁻¹ h + e)
            total = mean[a] + normals[at + a]
            for c in range(a + 1, m):
                total -= lower[c, a] * mean[c]
            mean[a] = total / lower[a, a]
        for a in range(m):
            values[row, columns[at + a]] = mean[a]


@njit(nogil=True)
def draw_category_cells(codes, rows, columns, intervened, table, strides, levels, children, counts, uniforms):
    """Draw each missing cell (`rows[c]`, `columns[c]`) given all others, in place.

    `table[j, k]` is the distribution of node j for combination k = sum_i strides[i, j] x_i of its parents' levels, and
    `children[i, :counts[i]]` are the children of node i.
    """
    d = codes.shape[1]
    weights = np.empty(table.shape[2])
    for c in range(rows.shape[0]):
        row, j = rows[c], columns[c]
        place = 0
        for i in range(d):
            place += strides[i, j] * codes[row, i]
        total = 0.0
        for v in range(levels[j]):
            weights[v] = table[j, place, v]
        for a in range(counts[j]):
            child = children[j, a]
            if intervened[row, child]:
                continue
            base = 0
            for i in range(d):
                if i != j:
                    base += strides[i, child] * codes[row, i]
            for v in range(levels[j]):
                weights[v] *= table[child, base + strides[j, child] * v, codes[row, child]]
        for v in range(levels[j]):
            total += weights[v]
        if not total > 0.0:
            continue  # all weights underflow: the cell stays
        target = uniforms[c] * total
        v = 0
        while v < levels[j] - 1 and target >= weights[v]:
            target -= weights[v]
            v += 1
        codes[row, j] = v
