"""The flip estimator: for closed-form families, every sampled parent set informs the gradient of every edge.

For the edge i -> j let `F1 = sum_s f_j(g_s with i)` and `F0 = sum_s f_j(g_s without i)` over samples of the other
parents. By conditioning on all edges but one (Rao-Blackwell),

    d log E[f_j] / d logit_ij = sigmoid(logit_ij + log F1 - log F0) - sigmoid(logit_ij),

so S samples are worth S·d. With the objective "mean-log" the lower bound `E[log f_j]` replaces
`log E[f_j]`: its gradient by the logit is exactly `p (1 - p) E[log f_j(with i) - log f_j(without i)]`. It does not
saturate, whereas that of `log E[f_j]` never exceeds 1 and loses against a growing acyclicity penalty; as alpha grows
and graphs become certain, the two objectives coincide.

One Cholesky factor of the parents' block gives all d flips: with `v_i = L⁻¹ K_Pi`,

    adding i:    pivot t = K_ii - |v_i|², log determinant + log t, Schur complement - (K_ij - v_i · v_j)² / t;
    removing i:  with A = K_PP⁻¹, log determinant + log A_ii, Schur complement + (A K_Pj)_i² / A_ii.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from numba import prange

from dagpost._util.compiled import njit
from dagpost._util.numerics import by_chunks, log_add
from dagpost.inference.dibs.family_terms import family_terms, log_evidences
from dagpost.models.conjugate import ConjugateTable, evidence_formula, factorise


@njit
def _family_flips(table, j, inside, parents, p, lower, solved, inverse, on, off):
    """Fill `on[i]` and `off[i]` with the log evidence of j with and without parent i; K0 must be diagonal."""
    d = inside.shape[0]
    g = table.group[j]
    matrix = table.matrix[g]
    floor = table.floor
    prior_schur = table.prior_matrix[j, j]
    log_determinant, schur = factorise(matrix, j, parents, p, floor, lower)
    prior_determinant = 0.0
    for a in range(p):
        prior_determinant += np.log(table.prior_matrix[parents[a], parents[a]])
    # v_i = L⁻¹ K_Pi for every non-parent; that of the child is the last row of the factor
    solved[j, :p] = lower[p, :p]
    for i in range(d):
        if inside[i] or i == j:
            continue
        for a in range(p):
            total = matrix[parents[a], i]
            for c in range(a):
                total -= lower[a, c] * solved[i, c]
            solved[i, a] = total * lower[a, a]
    here = evidence_formula(table, g, p, log_determinant, schur, prior_determinant, prior_schur)
    for i in range(d):
        if i == j:
            continue
        prior_i = np.log(table.prior_matrix[i, i])
        if not inside[i]:
            pivot = matrix[i, i]
            cross = matrix[i, j]
            for a in range(p):
                pivot -= solved[i, a] * solved[i, a]
                cross -= solved[i, a] * solved[j, a]
            pivot = max(pivot, floor)
            larger = max(schur - cross * cross / pivot, floor)
            off[i] = here
            on[i] = evidence_formula(
                table, g, p + 1, log_determinant + np.log(pivot), larger, prior_determinant + prior_i, prior_schur
            )
    if p > 0:
        # columns of L⁻¹, and the coefficients A K_Pj = L⁻ᵀ v_j
        for b in range(p):
            for a in range(b, p):
                total = 1.0 if a == b else 0.0
                for c in range(b, a):
                    total -= lower[a, c] * inverse[c, b]
                inverse[a, b] = total * lower[a, a]
        for b in range(p):
            diagonal = 0.0
            coefficient = 0.0
            for a in range(b, p):
                diagonal += inverse[a, b] * inverse[a, b]
                coefficient += inverse[a, b] * solved[j, a]
            i = parents[b]
            smaller = schur + coefficient * coefficient / diagonal
            prior_i = np.log(table.prior_matrix[i, i])
            on[i] = here
            off[i] = evidence_formula(
                table, g, p - 1, log_determinant + np.log(diagonal), smaller, prior_determinant - prior_i, prior_schur
            )


@njit(parallel=True)
def flip_ratios(table, graphs, mean_log, out):
    """Write `log F1 - log F0` of every edge of every particle to `out`; graphs (m, s, d, d) are hard samples."""
    particles, samples, d = graphs.shape[0], graphs.shape[1], graphs.shape[2]
    for task in prange(particles * d):
        m, j = task // d, task % d
        lower, inverse, solved = np.empty((d, d)), np.empty((d, d)), np.empty((d, d))
        parents = np.empty(d, dtype=np.int64)
        inside = np.empty(d, dtype=np.bool_)
        on, off = np.empty(d), np.empty(d)
        differences = np.zeros(d)
        total_on, total_off = np.full(d, -np.inf), np.full(d, -np.inf)
        for s in range(samples):
            # identical samples are scored once and counted
            copies = 1
            seen = False
            for other in range(samples):
                if other == s:
                    continue
                same = True
                for i in range(d):
                    if graphs[m, s, i, j] != graphs[m, other, i, j]:
                        same = False
                        break
                if same:
                    if other < s:
                        seen = True
                        break
                    copies += 1
            if seen:
                continue
            p = 0
            for i in range(d):
                inside[i] = graphs[m, s, i, j]
                if inside[i]:
                    parents[p] = i
                    p += 1
            _family_flips(table, j, inside, parents, p, lower, solved, inverse, on, off)
            if mean_log:
                for i in range(d):
                    if i != j:
                        differences[i] += copies * (on[i] - off[i]) / samples
                continue
            weight = np.log(copies)
            for i in range(d):
                if i != j:
                    total_on[i] = log_add(total_on[i], on[i] + weight)
                    total_off[i] = log_add(total_off[i], off[i] + weight)
        for i in range(d):
            if mean_log or i == j:
                out[m, i, j] = differences[i]
            else:
                out[m, i, j] = total_on[i] - total_off[i]


def plain_table(table: ConjugateTable) -> ConjugateTable:
    """Return the table with float64 NumPy arrays and Python numbers, the types that compiled kernels take."""
    return ConjugateTable(
        matrix=np.asarray(table.matrix, dtype=np.float64),
        prior_matrix=np.asarray(table.prior_matrix, dtype=np.float64),
        diagonal_prior=bool(table.diagonal_prior),
        floor=float(table.floor),
        constant=np.asarray(table.constant, dtype=np.float64),
        power=np.asarray(table.power, dtype=np.float64),
        prior_power=np.asarray(table.prior_power, dtype=np.float64),
        offset=float(table.offset),
        scale=float(table.scale),
        linear=float(table.linear),
        group=np.asarray(table.group, dtype=np.int64),
        by_node=np.asarray(table.by_node, dtype=np.float64),
        width=int(table.width),
        first=int(table.first),
        log_shares=np.asarray(table.log_shares, dtype=np.float64),
    )


def flip_ratios_on_host(table: ConjugateTable, graphs: np.ndarray, mean_log: bool = False) -> np.ndarray:
    """Return the ratios of `flip_ratios` from plain arrays, computed by the compiled kernel on the CPU."""
    graphs = np.ascontiguousarray(graphs, dtype=np.bool_)
    out = np.empty((graphs.shape[0], *graphs.shape[2:]))
    flip_ratios(plain_table(table), graphs, mean_log, out)
    return out


def flip_ratios_in_jax(
    table: ConjugateTable, graphs: Float[Array, "m s d d"], mean_log: bool = False, chunk: int | None = None
) -> Float[Array, "m d d"]:
    """Return the same ratios computed in JAX, for accelerators: all families of at most `chunk` particles at once."""
    return by_chunks(lambda some: _flip_ratios_at_once(table, some, mean_log), graphs, chunk or len(graphs))


def _flip_ratios_at_once(
    table: ConjugateTable, graphs: Float[Array, "m s d d"], mean_log: bool
) -> Float[Array, "m d d"]:
    m, samples, d = graphs.shape[:3]
    flat = graphs.reshape(-1, d, d)
    terms = family_terms(table, flat)
    floor, prior = jnp.asarray(table.floor), jnp.log(jnp.diagonal(jnp.asarray(table.prior_matrix)))
    inside = jnp.swapaxes(flat, 1, 2) > 0.5  # row j has the parents of node j
    p = jnp.sum(inside, axis=2)[..., None]
    prior_determinant = jnp.sum(jnp.where(inside, prior, 0.0), axis=2)[..., None]
    determinant, schur = terms.log_determinant[..., None], terms.schur[..., None]
    pivot, step = terms.pivot, jnp.where(inside, -1, 1)
    here = log_evidences(table, p, determinant, schur, prior_determinant)
    other = jnp.maximum(schur - step * terms.cross**2 / pivot, floor)
    there = log_evidences(table, p + step, determinant + jnp.log(pivot), other, prior_determinant + step * prior)
    on, off = jnp.where(inside, here, there), jnp.where(inside, there, here)
    on, off = (part.reshape(m, samples, d, d) for part in (on, off))
    log_means = jax.nn.logsumexp(on, axis=1) - jax.nn.logsumexp(off, axis=1)
    ratios = jnp.mean(on - off, axis=1) if mean_log else log_means
    return jnp.where(jnp.eye(d, dtype=bool), 0.0, jnp.swapaxes(ratios, 1, 2))
