"""Closed-form evidence of conjugate Gaussian families, by one Cholesky factor per family.

For BGe and for both linear Gaussian models the log evidence of node j given parents P (p of them) is

    constant[p] + by_node[j] - ½ log|K_PP| + ½ log|K0_PP| - power[p] log(offset + scale·s) + prior_power[p] log s0
    - linear·s,

where K is a matrix of sufficient statistics, K0 its value without data, `s = K_jj - K_jP K_PP⁻¹ K_Pj` the
Schur complement of j, and `s0` the same for K0. Exact inference, MCMC and DiBS therefore share one kernel,
whose cost does not depend on the number of rows.

A parent may be a block of `width` columns of K (the additive model), and the evidence a mixture over `settings` of
the hyperparameters, each with its own K and constant: the sum of the formula over them.

Because K - K0 is positive semidefinite, every pivot of K is at least the smallest eigenvalue of K0; pivots
that rounding has made smaller are raised to it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add
from dagpost.typing import Graph, Graphs, Nodes, SoftColumn


class ConjugateTable(NamedTuple):
    """Terms of the formula at the top of this file.

    There are `g` distinct groups of rows; nodes with the same interventions share a group. With more than one setting
    of the hyperparameters, g counts (setting, group) pairs: setting t of group k is `t * groups + k`. Among the c
    columns of K, column j belongs to node j as a child, and `width` columns from `first + i * width` on to node i as a
    parent.
    """

    matrix: np.ndarray  # (g, c, c) K
    prior_matrix: np.ndarray  # (c, c) K0
    diagonal_prior: bool
    floor: float  # smallest eigenvalue of K0
    constant: np.ndarray  # (g, d) by number of parents
    power: np.ndarray  # (g, d)
    prior_power: np.ndarray  # (d,)
    offset: float
    scale: float
    linear: float
    group: np.ndarray  # (d,) group of rows of each node
    by_node: np.ndarray  # (d,)
    width: int = 1  # columns of a parent
    first: int = 0  # column at which those of node 0 as a parent begin
    log_shares: np.ndarray = np.zeros(1)  # log prior weight of each setting of the hyperparameters


@njit(inline="always")
def columns_of(table, parents, p, columns):
    """Write the columns of the first p parents to `columns` and return how many there are."""
    width, first = table.width, table.first
    if width == 1 and first == 0:
        for a in range(p):
            columns[a] = parents[a]
        return p
    for a in range(p):
        for b in range(width):
            columns[a * width + b] = first + parents[a] * width + b
    return p * width


@njit(error_model="numpy")
def factorise(matrix, j, parents, p, floor, lower):
    """Return `log|K_PP|` and the Schur complement of j, by the Cholesky factor of K over (parents, j); `lower` has the
    reciprocals of its diagonal."""
    log_determinant = 0.0
    product = 1.0  # of pivots, so that few logarithms are computed
    schur = 0.0
    for a in range(p + 1):
        row = parents[a] if a < p else j
        pivot = matrix[row, row]
        for b in range(a):
            total = matrix[row, parents[b]]
            for c in range(b):
                total -= lower[a, c] * lower[b, c]
            total *= lower[b, b]
            lower[a, b] = total
            pivot -= total * total
        pivot = max(pivot, floor)
        if a < p:
            lower[a, a] = 1.0 / np.sqrt(pivot)
            product *= pivot
            if not 1e-100 < product < 1e100:
                log_determinant += np.log(product)
                product = 1.0
        else:
            schur = pivot
    return log_determinant + np.log(product), schur


@njit(error_model="numpy")
def log_product_of_diagonal(matrix, columns, c):
    """Return the log determinant of a diagonal matrix over the first c columns."""
    out, product = 0.0, 1.0
    for a in range(c):
        product *= matrix[columns[a], columns[a]]
        if not 1e-100 < product < 1e100:
            out += np.log(product)
            product = 1.0
    return out + np.log(product)


@njit(inline="always")
def evidence_formula(table, g, p, log_determinant, schur, prior_determinant, prior_schur):
    """Return the log evidence by the formula at the top of this file, from the determinants and Schur complements."""
    return (
        table.constant[g, p]
        - 0.5 * log_determinant
        + 0.5 * prior_determinant
        - table.power[g, p] * np.log(table.offset + table.scale * schur)
        + table.prior_power[p] * np.log(prior_schur)
        - table.linear * schur
    )


@njit(inline="always")
def evidence_with(table, j, parents, p, columns, lower):
    """Return the log evidence of one family; `columns` and `lower`, for the Cholesky factor, are scratch."""
    return evidence_of_rows(table, table.group[j], j, parents, p, columns, lower)


@njit(inline="always")
def evidence_of_rows(table, rows, j, parents, p, columns, lower):
    """Return the log evidence of one family in this group of rows."""
    c = columns_of(table, parents, p, columns)
    if table.diagonal_prior:
        prior_determinant = log_product_of_diagonal(table.prior_matrix, columns, c)
        prior_schur = table.prior_matrix[j, j]
    else:
        prior_determinant, prior_schur = factorise(table.prior_matrix, j, columns, c, table.floor, lower)
    total = -np.inf
    settings = table.log_shares.shape[0]
    groups = table.matrix.shape[0] // settings
    for t in range(settings):
        g = t * groups + rows
        log_determinant, schur = factorise(table.matrix[g], j, columns, c, table.floor, lower)
        value = evidence_formula(table, g, p, log_determinant, schur, prior_determinant, prior_schur)
        value += table.log_shares[t]
        total = value if t == 0 else log_add(total, value)
    return total + table.by_node[j]


def no_table(d: int) -> ConjugateTable:
    """Return a table for models without Gaussian evidence; it is never read."""
    return ConjugateTable(
        matrix=np.zeros((1, d, d)), prior_matrix=np.zeros((d, d)), diagonal_prior=True, floor=0.0,
        constant=np.zeros((1, d)), power=np.zeros((1, d)), prior_power=np.zeros(d),
        offset=0.0, scale=0.0, linear=0.0, group=np.zeros(d, np.int64), by_node=np.zeros(d),
    )  # fmt: skip


class FamilyScratch(NamedTuple):
    """Memory for scoring a family."""

    parents: np.ndarray  # (d,)
    columns: np.ndarray  # (columns of d - 1 parents,)
    lower: np.ndarray  # (those + 1, those + 1)


@njit
def family_scratch(table):
    """Return memory for scoring families of this table."""
    d = table.group.shape[0]
    most = max(1, (d - 1) * table.width)
    return FamilyScratch(np.empty(d, np.int64), np.empty(most, np.int64), np.empty((most + 1, most + 1)))


@njit
def family_evidence(table, j, parents, p):
    """Return the log evidence of one family; `p` is the number of parents."""
    c = p * table.width
    return evidence_with(table, j, parents, p, np.empty(c, np.int64), np.empty((c + 1, c + 1)))


@njit
def _all_families(table, graphs, out):
    """Write the log evidence of every family of every graph to `out`."""
    d = graphs.shape[1]
    parents, columns, lower = family_scratch(table)
    for m in range(graphs.shape[0]):
        for j in range(d):
            p = 0
            for i in range(d):
                if graphs[m, i, j]:
                    parents[p] = i
                    p += 1
            out[m, j] = evidence_with(table, j, parents, p, columns, lower)


def all_families(table: ConjugateTable, graphs: Graphs) -> Float[np.ndarray, "m d"]:
    """Return the log evidence of every family of every graph."""
    if graphs.diagonal(axis1=1, axis2=2).any():
        raise ValueError("a graph with a self-loop has no evidence")
    out = np.empty(graphs.shape[:2])
    _all_families(table, np.ascontiguousarray(graphs), out)
    return out


class Coefficients(NamedTuple):
    """Terms of a draw of the weights of every node given its parents P; column j belongs to node j."""

    centre: np.ndarray  # (d, d) K_PP⁻¹ K_Pj
    noise: np.ndarray  # (d, d) L⁻ᵀ e with K_PP = L Lᵀ and e standard normal: covariance K_PP⁻¹
    schur: np.ndarray  # (d,)


@njit
def _coefficients(table, graph, normals, centre, noise, schur):
    """Write the terms of `Coefficients` to `centre`, `noise` and `schur`."""
    d = graph.shape[0]
    lower = np.empty((d, d))
    parents = np.empty(d, dtype=np.int64)
    for j in range(d):
        p = 0
        for i in range(d):
            if graph[i, j]:
                parents[p] = i
                p += 1
        # the last row of the factor of (P, j) is v = L⁻¹ K_Pj
        _, schur[j] = factorise(table.matrix[table.group[j]], j, parents, p, table.floor, lower)
        for a in range(p - 1, -1, -1):
            total_centre, total_noise = lower[p, a], normals[a, j]
            for c in range(a + 1, p):
                total_centre -= lower[c, a] * centre[parents[c], j]
                total_noise -= lower[c, a] * noise[parents[c], j]
            centre[parents[a], j] = total_centre * lower[a, a]
            noise[parents[a], j] = total_noise * lower[a, a]


def coefficients(table: ConjugateTable, graph: Graph, rng: np.random.Generator) -> Coefficients:
    """Return the terms of a draw of all weights given the graph; entries of absent edges are 0."""
    d = graph.shape[0]
    out = Coefficients(np.zeros((d, d)), np.zeros((d, d)), np.zeros(d))
    _coefficients(table, np.ascontiguousarray(graph, dtype=np.bool_), rng.standard_normal((d, d)), *out)
    return out


class Regression(NamedTuple):
    """Regression of one node on its parents P."""

    centre: np.ndarray  # (p,) K_PP⁻¹ K_Pj
    inverse: np.ndarray  # (p, p) K_PP⁻¹
    schur: float


def regression(table: ConjugateTable, j: int, parents: Nodes) -> Regression:
    """Return the regression of node j on its parents, from which the moments of its weights follow."""
    matrix = table.matrix[table.group[j]]
    inverse = np.linalg.inv(matrix[np.ix_(parents, parents)])
    centre = inverse @ matrix[parents, j]
    return Regression(centre, inverse, max(float(matrix[j, j] - centre @ matrix[parents, j]), table.floor))


def soft_evidence(table: ConjugateTable, column: SoftColumn, node, group) -> Float[Array, ""]:
    """Return the log evidence of one family in JAX, for hard and for soft columns.

    With `D = diag(column)`, repeated over the columns of each parent, and B the matrix K scaled to a unit diagonal,
    `D B D + I - D²` replaces K_PP: it is positive definite for every soft column, and for a hard one it equals the
    parents' block with ones on the rest of the diagonal. Constants that depend on the number of parents are
    interpolated linearly.
    """
    d = column.shape[0]
    m = jnp.where(jnp.arange(d) == node, 0.0, column)
    p = jnp.sum(m)
    by_count = jnp.arange(d)

    def interpolated(values):
        return jnp.interp(p, by_count, jnp.asarray(values))

    # the prior's matrix and that of each setting are factorised in one batch: see `map_chunked`
    settings = len(table.log_shares)
    g = jnp.arange(settings) * (table.matrix.shape[0] // settings) + group
    matrices = jnp.concatenate([jnp.asarray(table.prior_matrix)[None], jnp.asarray(table.matrix)[g]])
    size = matrices.shape[-1]
    parents, share = (slice(None), m) if size == d else (slice(d, None), jnp.repeat(m, size // d - 1))

    def factor(k):
        return _soft_factor(k[parents, parents], k[parents, node], k[node, node], share, table.floor)

    determinants, schurs = jax.vmap(factor)(matrices)
    rest = (
        jnp.asarray(table.by_node)[node] + 0.5 * determinants[0] + interpolated(table.prior_power) * jnp.log(schurs[0])
    )
    by_setting = (
        jax.vmap(interpolated)(jnp.asarray(table.constant)[g])
        - 0.5 * determinants[1:]
        - jax.vmap(interpolated)(jnp.asarray(table.power)[g]) * jnp.log(table.offset + table.scale * schurs[1:])
        - table.linear * schurs[1:]
    )
    return rest + (by_setting[0] if settings == 1 else logsumexp(jnp.asarray(table.log_shares) + by_setting))


def _soft_factor(block, cross, target, m, floor):
    """Return the soft `log|K_PP|` and Schur complement of a node, from K_PP, K_Pj and K_jj of all possible parents."""
    diagonal = jnp.diagonal(block)
    root = jnp.sqrt(diagonal)
    unit = block / root[:, None] / root[None, :]
    # a few rounding errors are added to the unit diagonal, so that nearly collinear parents can be factorised
    rounding = 4 * len(m) * jnp.finfo(block.dtype).eps
    lower = jnp.linalg.cholesky(m[:, None] * unit * m[None, :] + jnp.diag(1.0 - m**2 + rounding))
    solved = solve_triangular(lower, m * cross / root / jnp.sqrt(target), lower=True)
    log_determinant = jnp.sum(m * jnp.log(diagonal)) + 2 * jnp.sum(jnp.log(jnp.diagonal(lower)))
    return log_determinant, jnp.maximum(target * (1.0 - jnp.sum(solved**2)), floor)
