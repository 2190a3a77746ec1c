"""Sums over all DAGs by dynamic programming over layers, without subtraction.

Every DAG splits in exactly one way into layers: first the nodes without parents, then those whose parents
are all placed already, at least one of them in the layer before. With `U` the nodes placed and `R ⊆ U` the last
layer, the weight of everything that can follow is

    b(U, R) = sum_{∅ ≠ T ⊆ V∖U}  b(U ∪ T, T)  prod_{j ∈ T} D_j(U, R),        b(V, ·) = 1,
    D_j(U, R) = A_j(U) - A_j(U∖R),      A_j(U) = sum_{P ⊆ U} w_j(P),

and the normaliser is the same sum at U = ∅ with `D_j = w_j(∅)`. This costs O(4^d) multiply-adds and
O(3^d) memory. The usual recursion over sinks costs O(3^d) but alternates in sign, and the cancellation
compounds from level to level; here every term is positive.

Weights range over thousands of nats, so all quantities are held relative to a potential: with
`β(U) = max_{j ∉ U} log A_j(U) + β(U ∪ j)` (the best order in which to place the rest) and
`ρ_j(U, R) = D_j(U, R) / A_j(U)` in [0, 1],

    b̃(U, R) = b(U, R) exp(-β(U)) = sum_T  q_U(T) b̃(U ∪ T, T)  prod_{j ∈ T} ρ_j(U, R),
    q_U(T)  = exp(β(U ∪ T) - β(U) + sum_{j ∈ T} log A_j(U))  <=  1.

The posterior mass of a state (U, R) is at most (number of DAGs it stands for) · b̃(U, R), so whatever
underflows here is negligible, and ordinary floating point suffices.

The sum over T is evaluated by folding one node of V∖U at a time; its reverse pass gives the derivative by
every ρ_j, and with it the posterior probability of every family.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numba import prange

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add
from dagpost._util.progress import Advance

CHUNKS = 8
"""Number of pieces the work is split into, fixed so that sums do not depend on the number of cores."""


class Layers(NamedTuple):
    """Result of the backward pass: everything needed for exact draws."""

    log_weight: np.ndarray  # (d, 2^d) log w_j(P)
    log_total: np.ndarray  # (d, 2^d) log A_j(U)
    potential: np.ndarray  # (2^d,) β(U)
    ternary: np.ndarray  # (2^d,) sum of 3^i over the members: state (U, R) is at ternary[U] + ternary[R]
    backward: np.ndarray  # (3^d,) b̃(U, R)
    log_normaliser: float


def memory_bytes(d: int) -> int:
    """Return the memory that both passes hold at once, with a margin of a tenth."""
    states, subsets = 2 * 8 * 3**d, (8 + CHUNKS) * 8 * d * 2**d
    scratch = CHUNKS * 8 * 8 * 2**d
    return 11 * (states + subsets + scratch) // 10


@njit(parallel=True)
def log_subset_sums(table, supersets=False):
    """Return `log A_j(U) = log sum_{P ⊆ U} w_j(P)` for every U; with `supersets` the sum is over P ⊇ U."""
    out = table.copy()
    d, size = out.shape
    for j in prange(d):
        for i in range(d):
            for s in range(size):
                if (s >> i & 1) != supersets:
                    out[j, s] = log_add(out[j, s], out[j, s ^ (1 << i)])
    return out


@njit
def potentials(log_total):
    """Return β(U) of every U."""
    d, size = log_total.shape
    out = np.full(size, -np.inf)
    out[size - 1] = 0.0
    for s in range(size - 2, -1, -1):
        best = -np.inf
        for j in range(d):
            if not s >> j & 1:
                best = max(best, log_total[j, s] + out[s | (1 << j)])
        out[s] = best
    return out


@njit
def next_layer_factors(placed, log_total, potential, ternary, nodes, state, factor):
    """Write the state index and `q_U(T)` of each set T of unplaced nodes; return the number of unplaced nodes."""
    d = log_total.shape[0]
    count = 0
    for j in range(d):
        if not placed >> j & 1:
            nodes[count] = j
            count += 1
    subset = np.zeros(1 << count, dtype=np.int64)
    total = np.zeros(1 << count)
    state[0] = ternary[placed]
    factor[0] = 0.0
    for k in range(count):
        half = 1 << k
        j = nodes[k]
        for x in range(half):
            subset[half + x] = subset[x] | (1 << j)
            total[half + x] = total[x] + log_total[j, placed]
            state[half + x] = state[x] + 2 * ternary[1 << j]
            factor[half + x] = np.exp(potential[placed | subset[half + x]] - potential[placed] + total[half + x])
    return count


@njit
def share_with_parent_in(layer, placed, nodes, count, log_total, rest):
    """Write `1 - ρ_j(U, R) = A_j(U∖R) / A_j(U)` of each unplaced node; 1 where the node cannot be placed at all."""
    for k in range(count):
        whole = log_total[nodes[k], placed]
        rest[k] = 1.0 if whole == -np.inf else np.exp(log_total[nodes[k], placed & ~layer] - whole)


@njit
def _fold(values, count, rest, levels):
    """Return `sum_T values[T] prod_{k ∈ T} ρ_k`, folding from the last node; level k is in levels[2^k : 2^(k+1)]."""
    for x in range(1 << count):
        levels[(1 << count) + x] = values[x]
    for k in range(count - 1, -1, -1):
        half = 1 << k
        rho = 1.0 - rest[k]
        upper = levels[2 * half : 4 * half]
        lower = levels[half : 2 * half]
        for x in range(half):
            lower[x] = upper[x] + rho * upper[x + half]
    return levels[1]


@njit(parallel=True)
def _backward_level(sets, log_total, potential, ternary, backward):
    """Write b̃(U, ·) for all given U, which have the same size (not 0 and not d)."""
    d = log_total.shape[0]
    for chunk in prange(CHUNKS):
        nodes = np.empty(d, dtype=np.int64)
        rest = np.empty(d)
        state = np.empty(1 << d, dtype=np.int64)
        factor = np.empty(1 << d)
        levels = np.empty(2 << d)
        for index in range(chunk, len(sets), CHUNKS):
            placed = sets[index]
            if potential[placed] == -np.inf:
                continue
            count = next_layer_factors(placed, log_total, potential, ternary, nodes, state, factor)
            for x in range(1 << count):
                factor[x] *= backward[state[x]]
            layer = placed
            while layer:
                share_with_parent_in(layer, placed, nodes, count, log_total, rest)
                backward[ternary[placed] + ternary[layer]] = _fold(factor, count, rest, levels)
                layer = (layer - 1) & placed


@njit(parallel=True)
def _forward_level(sets, log_total, potential, ternary, backward, forward, plus, minus):
    """Pass posterior mass through all given U: write `forward` of the next states, and accumulate the adjoints.

    `plus[j, U]` accumulates the derivative by `A_j(U)` and `minus[chunk, j, U∖R]` that by `-A_j(U∖R)`, each
    multiplied by its `A_j`.
    """
    d = log_total.shape[0]
    for chunk in prange(CHUNKS):
        nodes = np.empty(d, dtype=np.int64)
        rest = np.empty(d)
        state = np.empty(1 << d, dtype=np.int64)
        factor = np.empty(1 << d)
        ahead = np.empty(1 << d)
        levels = np.empty(2 << d)
        mass = np.empty(1 << d)
        arriving = np.empty(1 << d)
        for index in range(chunk, len(sets), CHUNKS):
            placed = sets[index]
            if potential[placed] == -np.inf:
                continue
            count = next_layer_factors(placed, log_total, potential, ternary, nodes, state, factor)
            for x in range(1 << count):
                ahead[x] = factor[x] * backward[state[x]]
                arriving[x] = 0.0
            layer = placed
            while True:
                here = forward[ternary[placed] + ternary[layer]]
                if here > 0.0:
                    if placed == 0:
                        rest[:count] = 0.0
                    else:
                        share_with_parent_in(layer, placed, nodes, count, log_total, rest)
                    _fold(ahead, count, rest, levels)
                    mass[0] = here
                    for k in range(count):
                        half = 1 << k
                        rho = 1.0 - rest[k]
                        upper = levels[2 * half : 4 * half]
                        derivative = 0.0
                        for x in range(half):
                            derivative += mass[x] * upper[x + half]
                            mass[x + half] = rho * mass[x]
                        plus[nodes[k], placed] += derivative
                        if placed != 0:
                            minus[chunk, nodes[k], placed & ~layer] += derivative * rest[k]
                    for x in range(1 << count):
                        arriving[x] += mass[x]
                if layer == 0 or placed == 0:
                    break
                layer = (layer - 1) & placed
                if layer == 0:
                    break
            for x in range(1, 1 << count):
                forward[state[x]] = factor[x] * arriving[x]


def sets_by_size(d: int) -> list[np.ndarray]:
    """Return all bit sets grouped by their number of members."""
    sets = np.arange(1 << d)
    sizes = np.bitwise_count(sets)
    return [sets[sizes == size] for size in range(d + 1)]


def work(d: int) -> float:
    """Return the relative cost of a backward pass; a forward pass costs three times as much."""
    return 4.0**d


def backward_pass(log_weight: Float[np.ndarray, "d s"], advance: Advance = lambda amount: None) -> Layers:
    """Return the normaliser of `prod_j w_j(P_j)` over all DAGs, and the tables from which DAGs are drawn."""
    d = log_weight.shape[0]
    log_total = log_subset_sums(log_weight)
    potential = potentials(log_total)
    ternary = (3 ** np.arange(d)) @ (np.arange(1 << d)[None, :] >> np.arange(d)[:, None] & 1)
    everything = (1 << d) - 1
    backward = np.zeros(3**d)
    backward[ternary[everything] + ternary[1:]] = 1.0
    by_size = sets_by_size(d)
    for size in range(d - 1, 0, -1):
        _backward_level(by_size[size], log_total, potential, ternary, backward)
        advance(len(by_size[size]) * 2.0**d)
    # first layer: nodes without parents
    log_normaliser = -np.inf
    if potential[0] > -np.inf:
        ahead = first_layer(log_total, potential, ternary, backward)
        log_normaliser = float(potential[0] + np.log(ahead.sum()))
    return Layers(log_weight, log_total, potential, ternary, backward, log_normaliser)


def first_layer(log_total, potential, ternary, backward) -> Float[np.ndarray, " s"]:
    """Return the weight of every choice of the first layer, relative to the potential."""
    d = log_total.shape[0]
    state, factor = np.empty(1 << d, dtype=np.int64), np.empty(1 << d)
    next_layer_factors(0, log_total, potential, ternary, np.empty(d, dtype=np.int64), state, factor)
    return factor * backward[state]


def family_probabilities(layers: Layers, advance: Advance = lambda amount: None) -> Float[np.ndarray, "d s"]:
    """Return the posterior probability that the parents of j are exactly P, for every j and P."""
    log_weight, log_total, potential, ternary, backward, log_normaliser = layers
    d = log_weight.shape[0]
    forward = np.zeros(3**d)
    forward[0] = np.exp(potential[0] - log_normaliser)
    plus = np.zeros((d, 1 << d))
    minus = np.zeros((CHUNKS, d, 1 << d))
    by_size = sets_by_size(d)
    for size in range(d):
        _forward_level(by_size[size], log_total, potential, ternary, backward, forward, plus, minus)
        advance(3 * len(by_size[size]) * 2.0**d)
    # Pr(P_j = P) = w_j(P) sum_{U ⊇ P} (plus - minus)_j(U) / A_j(U)
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = [np.where(part > 0, np.log(part) - log_total, -np.inf) for part in (plus, minus.sum(axis=0))]
        total, taken = (np.exp(log_weight + log_subset_sums(part, True)) for part in scaled)
    return np.clip(np.where(np.isneginf(log_weight), 0.0, total - taken), 0.0, 1.0)
