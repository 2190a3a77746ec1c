"""Exchange move: two adjacent nodes exchange parents, where reversing the edge alone would hardly ever be accepted.

When i -> j is reversed, parents of i that explain j through i have to become parents of j, and vice versa, all at
once. Let B be (at most `BLOCK` of) the parents of either. The move draws the direction of the edge and the assignment
of B to i and j from their conditional distribution given everything else, under the condition that each of B remains a
parent of i or of j. B is then the same before and after, so this is a Gibbs step: nothing is rejected.

Let G0 be the graph without the edge and without the edges from B to i and j. With the direction tail -> head, the graph
is acyclic if and only if the tail is no descendant of the head in G0, the tail's parents in B are no descendants of
tail or head, and the head's are none of the head. So for a direction the sets A of the tail and C of the head are bound
by A ∪ C = B alone, and

    sum over A of w_tail(A) * sum over C ⊇ B - A of w_head(C)

takes the scores of 2 * 2^|B| families, the inner sums by one pass over all sets for each member of B. Weights are
relative to the largest of their node, which may belong to sets that do not go together: where nothing but tiny numbers
is left of a sum, the logarithms of all pairs of sets are compared instead.
"""

from __future__ import annotations

import numpy as np

from dagpost._util.compiled import njit
from dagpost._util.numerics import exponentiate
from dagpost.inference.mcmc.parent_sets import (
    ACCEPTED,
    BLOCK,
    MISSING,
    REJECTED,
    below,
    near_pair,
    random_pair,
    uniform,
)
from dagpost.inference.mcmc.scoring import log_weight, rescore, score
from dagpost.inference.mcmc.structure import copy, copy_row, discard, has, holds, insert, set_parents

TINY = 1e-200
"""Sum of weights below which rounding errors and underflow may matter."""


@njit
def exchange_move(dag, scores, scorer, cache, temper, rng, scratch, affinity):
    """Make one exchange move; it counts as accepted if the edge is reversed. The pair is one of near nodes, if the
    affinity is one of these nodes: like a uniform one it does not depend on the graph."""
    before = rng[0]
    if affinity.share.shape[1] == dag.parents.shape[0]:
        i, j = near_pair(affinity, rng)
    else:
        i, j = random_pair(rng, dag.parents.shape[0])
    if not holds(dag.parents, j, i) and not holds(dag.parents, i, j):
        return REJECTED
    b = _block(dag, i, j, scratch.allowed, rng)
    block, full = scratch.allowed, (1 << b) - 1
    old_i, old_j, rest_i, rest_j = scratch.sets[5], scratch.sets[6], scratch.sets[7], scratch.sets[8]
    copy_row(old_i, dag.parents, i)
    copy_row(old_j, dag.parents, j)
    forward = has(old_j, i)
    _without(rest_i, old_i, block, b, j)
    _without(rest_j, old_j, block, b, i)
    set_parents(dag, i, rest_i)  # from here on the DAG is G0
    set_parents(dag, j, rest_j)
    below_i = below_j = 0
    for a in range(b):
        below_i |= np.int64(holds(dag.ancestors, block[a], i)) << a
        below_j |= np.int64(holds(dag.ancestors, block[a], j)) << a

    # rows of weights: tail and head for i -> j, then tail and head for j -> i
    logs, weights, largest, sums = scratch.logs, scratch.weights, scratch.largest, scratch.sums
    for row in range(4):
        is_i = row == 0 or row == 3
        is_tail = row % 2 == 0
        node, rest = (i, rest_i) if is_i else (j, rest_j)
        tail, head, below_tail, below_head = (i, j, below_i, below_j) if row < 2 else (j, i, below_j, below_i)
        other = -1 if is_tail else tail
        barred = below_tail if is_tail else 0
        if holds(dag.ancestors, tail, head) or below_head:
            barred = -1  # the edge would close a cycle, or one of B could be a parent of neither
        if not _weigh(scorer, cache, temper, node, rest, other, block, b, barred, logs[row], scratch):
            _restore(dag, i, j, old_i, old_j, forward)
            rng[0] = before
            return MISSING
    for row in range(4):
        copy(weights[row, : full + 1], logs[row])
        largest[row] = exponentiate(weights[row], full + 1)
    levels_1, levels_2 = largest[0] + largest[1], largest[2] + largest[3]
    total_1 = _total(weights[0], weights[1], sums[0], b)
    total_2 = _total(weights[2], weights[3], sums[1], b)
    if (levels_1 > -np.inf and total_1 < TINY) or (levels_2 > -np.inf and total_2 < TINY):
        towards_j, of_tail, of_head = _draw_by_pairs(logs, b, rng)
    else:
        total_1 *= np.exp(levels_1 - max(levels_1, levels_2))
        total_2 *= np.exp(levels_2 - max(levels_1, levels_2))
        towards_j = uniform(rng) * (total_1 + total_2) < total_1
        if towards_j:
            of_tail, of_head = _draw(weights[0], weights[1], sums[0], b, rng)
        else:
            of_tail, of_head = _draw(weights[2], weights[3], sums[1], b, rng)
    if towards_j:
        tail, head, new_tail, new_head = i, j, rest_i, rest_j
    else:
        tail, head, new_tail, new_head = j, i, rest_j, rest_i
    insert(new_head, tail)
    for a in range(b):
        if (of_tail >> a) & 1:
            insert(new_tail, block[a])
        if (of_head >> a) & 1:
            insert(new_head, block[a])
    set_parents(dag, tail, new_tail)
    set_parents(dag, head, new_head)
    rescore(dag, scores, scorer, cache, tail, scratch)
    rescore(dag, scores, scorer, cache, head, scratch)
    return ACCEPTED if towards_j != forward else REJECTED


@njit
def _block(dag, i, j, block, rng):
    """Put the parents of i or j, at most `BLOCK` of them at random, at the front of `block`; return how many."""
    n = 0
    for u in range(dag.parents.shape[0]):
        if u != i and u != j and (holds(dag.parents, i, u) or holds(dag.parents, j, u)):
            block[n] = u
            n += 1
    b = min(n, BLOCK)
    for a in range(b):
        c = a + below(rng, n - a)
        block[a], block[c] = block[c], block[a]
    return b


@njit
def _without(out, words, block, b, other):
    """Write the set `words` without the block and without `other` to `out`."""
    copy(out, words)
    discard(out, other)
    for a in range(b):
        discard(out, block[a])


@njit
def _restore(dag, i, j, old_i, old_j, forward):
    """Restore the old parents; those of the tail first, so that no step closes a cycle."""
    if forward:
        set_parents(dag, i, old_i)
        set_parents(dag, j, old_j)
    else:
        set_parents(dag, j, old_j)
        set_parents(dag, i, old_i)


@njit
def _weigh(scorer, cache, temper, node, rest, other, block, b, barred, out, scratch):
    """Write the log weights of all subsets of the block as parents of `node`, beside `rest` and `other` (unless -1)."""
    words = scratch.sets[4]
    for subset in range(1 << b):
        out[subset] = -np.inf
        if subset & barred or barred == -1:
            continue
        copy(words, rest)
        if other >= 0:
            insert(words, other)
        for a in range(b):
            if (subset >> a) & 1:
                insert(words, block[a])
        at = score(scorer, cache, node, words, scratch.wanted, scratch.family)
        if at < 0:
            return False
        out[subset] = log_weight(cache, at, temper)
    return True


@njit
def _supersets(weights, sums, b):
    """Write `sums[C]`, the sum of the weights of all sets that contain C."""
    n = 1 << b
    for c in range(n):
        sums[c] = weights[c]
    for a in range(b):
        for c in range(n):
            if not (c >> a) & 1:
                sums[c] += sums[c | (1 << a)]


@njit
def _total(of_tail, of_head, sums, b):
    """Return the sum over all pairs of sets whose union is the block; fill `sums` for `_draw`."""
    _supersets(of_head, sums, b)
    return _paired(of_tail, sums, b)


@njit
def _paired(of_tail, sums, b):
    """Return the sum over the tail's sets, given the superset sums of the head."""
    full = (1 << b) - 1
    total = 0.0
    for subset in range(full + 1):
        total += of_tail[subset] * sums[full ^ subset]
    return total


@njit
def _draw(of_tail, of_head, sums, b, rng):
    """Draw a pair of sets with probability proportional to its weight."""
    full = (1 << b) - 1
    left = uniform(rng) * _paired(of_tail, sums, b)
    chosen = -1
    for subset in range(full + 1):
        share = of_tail[subset] * sums[full ^ subset]
        if share > 0:
            chosen = subset
            left -= share
            if left < 0:
                break
    needed = full ^ chosen
    left = uniform(rng) * sums[needed]
    other = -1
    for subset in range(full + 1):
        if subset & needed == needed and of_head[subset] > 0:
            other = subset
            left -= of_head[subset]
            if left < 0:
                break
    return chosen, other


@njit
def _draw_by_pairs(logs, b, rng):
    """Draw the direction and a pair of sets from the log weights of tail and head, i -> j and then j -> i; the current
    pair has a positive weight."""
    full = (1 << b) - 1
    largest = -np.inf
    for direction in range(2):
        for of_tail in range(full + 1):
            for of_head in range(full + 1):
                if of_tail | of_head == full:
                    largest = max(largest, logs[2 * direction, of_tail] + logs[2 * direction + 1, of_head])
    total = 0.0
    towards_j, tail, head = True, 0, 0
    for direction in range(2):
        for of_tail in range(full + 1):
            for of_head in range(full + 1):
                if of_tail | of_head == full:
                    weight = np.exp(logs[2 * direction, of_tail] + logs[2 * direction + 1, of_head] - largest)
                    total += weight  # each pair replaces the one so far with probability weight / sum so far
                    if weight > 0 and uniform(rng) * total < weight:
                        towards_j, tail, head = direction == 0, of_tail, of_head
    return towards_j, tail, head
