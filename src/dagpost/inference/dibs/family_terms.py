"""Determinants and Schur complements of many families at once, in JAX: for accelerators, which have no cheap calls to
compiled loops on the host.

Let P be the parents of node j and `K_PP = L Lᵀ`. The rows `v_a` of `V = L⁻¹ K_P` and `e_a` of `E = L⁻¹ I_P` (rows of
the identity) follow one from the other: with k the a-th parent and the pivot `q = K_kk - sum_(b<a) v_b[k]²`,

    v_a = (K_k - sum_(b<a) v_b[k] v_b) / √q,   e_a = (I_k - sum_(b<a) v_b[k] e_b) / √q.

Sums over rows give all that the evidence of the family needs, and that of every family with one parent more or less
(`flips.py`): with `A = K_PP⁻¹`,

    log|K_PP| = sum_a log q_a,   K_ij - K_iP A K_Pj = K_ij - sum_a v_a[i] v_a[j],
    A_ii = sum_a e_a[i]²,        (A K_Pj)_i = sum_a e_a[i] v_a[j].

On a GPU a kernel does so with the rows of a family in registers. Where it does not run, XLA's Cholesky factors and
triangular solves give the same numbers; for batches of small matrices they are ten times slower.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from dagpost.models.conjugate import ConjugateTable

LARGEST = 128  # nodes that the kernel takes: the rows of a family have to fit into the registers of a block of threads
FEW = 16  # parents of most families
BLOCKS = (16, 32, 48)
"""Sizes of the blocks of parents whose Cholesky factors are computed, up to half of the nodes: the smallest is used
that holds the parents of all families. Few parents are usual, and a block of all nodes would be mostly padding."""


class FamilyTerms(NamedTuple):
    """Terms for every node j of n graphs, of its family and of those with one parent i more or less."""

    log_determinant: Float[Array, "n d"]  # log|K_PP|
    schur: Float[Array, "n d"]  # K_jj - K_jP A K_Pj
    pivot: Any  # (n, d, d), row j: A_ii of parents, K_ii - K_iP A K_Pi of others; None if not wanted
    cross: Any  # (n, d, d), row j: (A K_Pj)_i of parents, K_ij - K_iP A K_Pj of others


def kernel_takes(table: ConjugateTable) -> bool:
    """Return whether the kernel runs here and scores the families of this table: parents are single columns of K, and
    K0 is diagonal."""
    single = table.width == 1 and table.first == 0 and len(table.log_shares) == 1 and table.diagonal_prior
    return bool(single and len(table.group) <= LARGEST and kernel_runs())


def family_terms(table: ConjugateTable, graphs: Float[Array, "n d d"]) -> FamilyTerms:
    """Return the terms of every family of hard graphs without self-loops."""
    d = graphs.shape[-1]
    matrices, floor = _matrices(table)
    if d <= LARGEST and kernel_runs():
        return _by_kernel(matrices, floor, graphs)
    sizes = [size for size in BLOCKS if 2 * size <= d]

    def with_blocks(size, graphs):
        by_node = jax.vmap(partial(_by_cholesky, floor=floor, size=size), in_axes=(0, 1, 0))
        return jax.vmap(lambda graph: by_node(matrices, graph, jnp.arange(d)))(graphs)

    smallest = jnp.sum(jnp.max(jnp.sum(graphs, axis=-2)) > jnp.asarray(sizes))
    return lax.switch(smallest, [partial(with_blocks, size) for size in (*sizes, d)], graphs)


def _matrices(table: ConjugateTable) -> tuple[Float[Array, "d d d"], Float[Array, ""]]:
    """Return K of each node, and the smallest pivot."""
    return jnp.asarray(table.matrix)[jnp.asarray(table.group)], jnp.asarray(table.floor)


def _by_cholesky(matrix: Float[Array, "d d"], column: Float[Array, " d"], j, floor, size: int) -> FamilyTerms:
    """Return the results for one node and its column of at most `size` parents."""
    inside = column > 0.5
    # row k of `places` has a 1 at the k-th parent, and none if there are fewer: such rows are those of the identity
    places = ((jnp.cumsum(inside) == 1 + jnp.arange(size)[:, None]) & inside).astype(matrix.dtype)
    unused = jnp.diag(1 - jnp.sum(places, axis=1))
    rows = jnp.matmul(places, matrix, precision="highest")
    lower = jnp.linalg.cholesky(jnp.matmul(rows, places.T, precision="highest") + unused)
    # in one call: see `dagpost._util.numerics.map_chunked`
    sides = jnp.concatenate([rows, jnp.eye(size, dtype=matrix.dtype)], axis=1)
    both = jax.scipy.linalg.solve_triangular(lower, sides, lower=True)
    solved, root = both[:, : len(column)], both[:, len(column) :]
    own = jnp.take(solved, j, axis=1)
    residual = jnp.maximum(jnp.diagonal(matrix) - jnp.sum(solved**2, axis=0), floor)
    return FamilyTerms(
        2 * jnp.sum(jnp.log(jnp.diagonal(lower))),
        residual[j],
        jnp.where(inside, jnp.sum(root**2, axis=0) @ places, residual),
        jnp.where(inside, (root.T @ own) @ places, matrix[:, j] - solved.T @ own),
    )


def log_evidences(table: ConjugateTable, p, log_determinant, schur, prior_determinant) -> Float[Array, "n d e"]:
    """Return the log evidence of families of every node j (second axis) with p parents, by `conjugate.py`'s formula;
    for single columns and a diagonal K0."""
    group, nodes = jnp.asarray(table.group), jnp.arange(table.group.shape[0])[:, None]
    p = jnp.clip(p, 0, table.group.shape[0] - 1)
    constant, power = (jnp.asarray(part)[group][nodes, p] for part in (table.constant, table.power))
    prior_schur = jnp.log(jnp.diagonal(jnp.asarray(table.prior_matrix)))[:, None]
    return (
        constant - 0.5 * log_determinant + 0.5 * prior_determinant
        - power * jnp.log(table.offset + table.scale * schur)
        + jnp.asarray(table.prior_power)[p] * prior_schur - table.linear * schur
    )  # fmt: skip


def evidence_by_kernel(table: ConjugateTable, graph: Float[Array, "d d"]) -> Float[Array, " d"]:
    """Return the log evidence of every family of a hard graph, by the kernel."""
    own = _by_kernel(*_matrices(table), graph[None], neighbours=False)
    prior = jnp.log(jnp.diagonal(jnp.asarray(table.prior_matrix)))
    p = jnp.sum(graph > 0.5, axis=0)[None, :, None]
    terms = (own.log_determinant, own.schur, jnp.sum(prior[:, None] * graph, axis=0)[None])
    return log_evidences(table, p, *(term[..., None] for term in terms))[0, :, 0]


# ---- the kernel


@cache
def kernel_runs() -> bool:
    """Return whether JAX uses a GPU on which the kernel compiles and is right."""
    if jax.default_backend() != "gpu":
        return False
    try:
        complete = jnp.triu(jnp.ones((3, 3)), 1)[None]
        found = jax.jit(_by_kernel)(jnp.broadcast_to(2 * jnp.eye(3), (3, 3, 3)), jnp.asarray(1e-6), complete)
        return bool(jnp.allclose(found.log_determinant[0], jnp.arange(3) * jnp.log(2.0), atol=1e-5))
    except Exception:  # Pallas is experimental: whatever fails, Cholesky factors serve
        return False


def _by_kernel(
    matrices: Float[Array, "d d d"], floor: Array, graphs: Float[Array, "n d d"], neighbours: bool = True,
    interpret: bool = False,
) -> FamilyTerms:  # fmt: skip
    """Return the terms of all families given K of each node, those of families alone if `neighbours` is not set;
    `interpret` computes the same without a GPU, for tests.

    A kernel for families of up to `FEW` parents leaves out the others, and one for all sizes those: which of them has
    work is known on the GPU alone, and asking would take longer than starting both.
    """
    d = graphs.shape[1]
    size = max(FEW, 1 << (d - 1).bit_length())
    parents = jnp.swapaxes(graphs, 1, 2) > 0.5
    count = jnp.sum(parents, axis=2)
    padded = jnp.pad(matrices, ((0, 0), (0, size - d), (0, size - d)))
    filled = jnp.pad(parents, ((0, 0), (0, 0), (0, size - d))).astype(jnp.int32)
    lower = jnp.reshape(floor, 1).astype(matrices.dtype)
    found = _launch(padded, filled, lower, jnp.where(count <= FEW, d, 0), FEW, neighbours, interpret)
    if d - 1 > FEW:
        many = _launch(padded, filled, lower, jnp.where(count > FEW, d, 0), size, neighbours, interpret)
        found = [jnp.where(count[..., None] <= FEW, *parts) for parts in zip(found, many)]
    log_determinant, schur, *others = (part[..., :d] for part in found)
    own = log_determinant[..., 0], schur[..., 0]
    if not neighbours:
        return FamilyTerms(*own, None, None)
    squares, cross = others
    left = jnp.maximum(jnp.diagonal(matrices, axis1=1, axis2=2) - squares, floor)
    return FamilyTerms(*own, jnp.where(parents, squares, left), cross)


def _launch(matrices, parents, floor, loops, most: int, neighbours: bool, interpret: bool) -> list[Array]:
    """Return the kernel's results for all nodes of all graphs, with a block of threads for each; `loops` is 0 for
    families to leave out, and the others have at most `most` parents."""
    from jax.experimental import pallas

    (n, d, size), kind = parents.shape, matrices.dtype
    of_node = pallas.BlockSpec((None, None, size), lambda a, j: (a, j, 0))
    number = pallas.BlockSpec((None, None, 1), lambda a, j: (a, j, 0))
    of_matrix = pallas.BlockSpec((None, size, size), lambda a, j: (j, 0, 0))
    shapes, specs = [jax.ShapeDtypeStruct((n, d, 1), kind)] * 2, [number] * 2
    if neighbours:
        shapes, specs = shapes + [jax.ShapeDtypeStruct((n, d, size), kind)] * 2, specs + [of_node] * 2
    options: dict[str, Any] = {"interpret": True}
    if not interpret:
        from jax.experimental.pallas import triton

        warps = min(max(most * size // 512, 1), 16)  # of 32 threads with 16 numbers of each array
        options = {"compiler_params": triton.CompilerParams(num_warps=warps, num_stages=1)}
    return pallas.pallas_call(
        partial(_kernel, most), grid=(n, d), out_specs=specs, out_shape=shapes, **options,
        in_specs=[of_node, number, of_matrix, pallas.BlockSpec((1,), lambda a, j: (0,))],
    )(parents, loops[..., None], matrices, floor)  # fmt: skip


class _Rows(NamedTuple):
    """Rows of a family and sums over them, after so many parents."""

    count: Any
    log_determinant: Any
    v: Any  # (most, size)
    e: Any  # (most, size); a number where only the family itself is wanted
    explained: Any  # (size,) sum of v_a²
    cross: Any  # (size,) sum of v_a v_a[j]
    inverse: Any  # (size,) sum of e_a²
    coefficient: Any  # (size,) sum of e_a v_a[j]


def _kernel(most, parents_ref, loops_ref, matrix_ref, floor_ref, log_determinant_ref, schur_ref, *neighbours_refs):
    """Write the results of one family, whose rows `v_a` and `e_a` are kept in registers."""
    from jax.experimental import pallas

    j, floor, size = pallas.program_id(1), floor_ref[0], parents_ref.shape[0]
    kind = floor.dtype
    places = lax.broadcasted_iota(jnp.int32, (size,), 0)
    rows, columns = (lax.broadcasted_iota(jnp.int32, (most, size), axis) for axis in (0, 1))

    def grow(k, so_far):
        def grown(f):
            at_k = jnp.sum(jnp.where(columns == k, f.v, 0.0), axis=1)[:, None]  # v_b[k]
            row = matrix_ref[k, :] - jnp.sum(at_k * f.v, axis=0)
            pivot = jnp.maximum(jnp.sum(jnp.where(places == k, row, 0.0)), floor)
            scale = lax.rsqrt(pivot)
            v = row * scale
            at_j = jnp.sum(jnp.where(places == j, v, 0.0))
            is_next = rows == f.count
            out = f._replace(
                count=f.count + 1, log_determinant=f.log_determinant + jnp.log(pivot),
                v=jnp.where(is_next, v[None, :], f.v), explained=f.explained + v * v, cross=f.cross + v * at_j,
            )  # fmt: skip
            if not neighbours_refs:
                return out
            e = (jnp.where(places == k, 1.0, 0.0) - jnp.sum(at_k * f.e, axis=0)) * scale
            return out._replace(
                e=jnp.where(is_next, e[None, :], f.e), inverse=f.inverse + e * e,
                coefficient=f.coefficient + e * at_j,
            )  # fmt: skip

        return lax.cond(parents_ref[k] > 0, grown, lambda f: f, so_far)

    panel, line, zero = jnp.zeros((most, size), kind), jnp.zeros(size, kind), jnp.zeros((), kind)
    start = _Rows(jnp.int32(0), zero, panel, panel if neighbours_refs else zero, line, line, line, line)
    family = lax.fori_loop(0, loops_ref[0], grow, start)
    own = matrix_ref[j, :]
    left = own - family.cross
    log_determinant_ref[0] = family.log_determinant
    schur_ref[0] = jnp.maximum(jnp.sum(jnp.where(places == j, left, 0.0)), floor)
    if neighbours_refs:
        inside = parents_ref[...] > 0
        neighbours_refs[0][...] = jnp.where(inside, family.inverse, family.explained)
        neighbours_refs[1][...] = jnp.where(inside, family.coefficient, left)
