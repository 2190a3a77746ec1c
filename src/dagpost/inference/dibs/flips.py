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

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float
from numba import prange

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add, map_chunked
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


BLOCKS = (16, 32, 48)
"""Sizes of the blocks of parents in JAX, up to half of the nodes: the smallest is used that holds the parents of all
families. Most steps have few parents, for which a block of all nodes would be mostly padding."""


def flip_ratios_in_jax(
    table: ConjugateTable, graphs: Float[Array, "m s d d"], mean_log: bool = False, chunk: int | None = None
) -> Float[Array, "m d d"]:
    """Return the same ratios computed in JAX, for accelerators: all families at once, in padded blocks.

    At most `chunk` particles are worked on at once.
    """
    d = graphs.shape[-1]
    sizes = [size for size in BLOCKS if 2 * size <= d]

    def with_blocks(size, graphs):
        def of_particle(samples):
            by_node = jax.vmap(lambda columns, j: _column_ratios(table, columns, j, mean_log, size), in_axes=(2, 0))
            return by_node(samples, jnp.arange(d)).T

        return map_chunked(of_particle, graphs, chunk or len(graphs))

    most = jnp.max(jnp.sum(graphs, axis=-2))
    smallest = jnp.sum(most > jnp.asarray(sizes))
    return lax.switch(smallest, [partial(with_blocks, size) for size in (*sizes, d)], graphs)


def _column_ratios(
    table: ConjugateTable, columns: Float[Array, "s d"], j, mean_log: bool, size: int
) -> Float[Array, " d"]:
    """Return the ratios of one node and every possible parent, from its S sampled columns of at most `size` parents."""
    d = columns.shape[1]
    group = jnp.asarray(table.group)[j]
    matrix, prior = jnp.asarray(table.matrix)[group], jnp.log(jnp.diagonal(jnp.asarray(table.prior_matrix)))
    constant, power = jnp.asarray(table.constant)[group], jnp.asarray(table.power)[group]
    prior_power = jnp.asarray(table.prior_power)

    def score(p, log_determinant, schur, prior_determinant):
        p = jnp.clip(p, 0, d - 1)
        return (
            constant[p] - 0.5 * log_determinant + 0.5 * prior_determinant
            - power[p] * jnp.log(table.offset + table.scale * schur) + prior_power[p] * prior[j] - table.linear * schur
        )  # fmt: skip

    def one(column):
        inside = column > 0.5
        # row k of `places` has a 1 at the k-th parent, and none if there are fewer: such rows are those of the identity
        places = ((jnp.cumsum(inside) == 1 + jnp.arange(size)[:, None]) & inside).astype(matrix.dtype)
        unused = jnp.diag(1 - jnp.sum(places, axis=1))
        rows = jnp.matmul(places, matrix, precision="highest")
        lower = jnp.linalg.cholesky(jnp.matmul(rows, places.T, precision="highest") + unused)
        # in one call: see `map_chunked`
        sides = jnp.concatenate([rows, jnp.eye(size, dtype=matrix.dtype)], axis=1)
        both = jax.scipy.linalg.solve_triangular(lower, sides, lower=True)
        solved, root = both[:, :d], both[:, d:]
        log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(lower)))
        prior_determinant = jnp.sum(column * prior)
        residual = jnp.maximum(jnp.diagonal(matrix) - jnp.sum(solved**2, axis=0), table.floor)
        schur = residual[j]
        cross = matrix[:, j] - solved.T @ solved[:, j]
        p = jnp.sum(inside)
        here = score(p, log_determinant, schur, prior_determinant)
        added = score(
            p + 1, log_determinant + jnp.log(residual), jnp.maximum(schur - cross**2 / residual, table.floor),
            prior_determinant + prior,
        )  # fmt: skip
        diagonal = jnp.where(inside, jnp.sum(root**2, axis=0) @ places, 1.0)
        coefficient = (root.T @ solved[:, j]) @ places
        removed = score(
            p - 1, log_determinant + jnp.log(diagonal), schur + coefficient**2 / diagonal, prior_determinant - prior
        )
        return jnp.where(inside, here, added), jnp.where(inside, removed, here)

    on, off = jax.vmap(one)(columns)
    log_mean = jax.nn.logsumexp(on, axis=0) - jax.nn.logsumexp(off, axis=0)
    return jnp.where(jnp.arange(d) == j, 0.0, jnp.mean(on - off, axis=0) if mean_log else log_mean)
