"""What all moves share: outcomes, scratch memory, random numbers, and drawing a parent set.

The random numbers are SplitMix64 (Steele, Lea and Flood, 2014): a counter of one word and a mixing function; it passes
BigCrush. The state is an explicit array, so that a run can be stopped and continued anywhere.

`draw_parents` draws the parents of a node from their conditional distribution given all other edges.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dagpost._util.compiled import njit
from dagpost._util.numerics import log_add
from dagpost.inference.mcmc.scoring import ScoringScratch, log_weight, score, scoring_scratch
from dagpost.inference.mcmc.structure import clear, copy_row, insert

ACCEPTED, REJECTED, MISSING = 1, 0, -1
NO_NODE = np.int64(-1)
"""In place of a node; a plain -1 would be a type of its own, for which numba would compile everything again."""
BLOCK = 5
"""Most parents that an exchange move reassigns; all their subsets are scored."""


class Affinity(NamedTuple):
    """A distribution over nodes, and for each node one over the others, as tables of Walker's alias method: column c
    of row i is drawn uniformly, and stands for node c with probability `share[i, c]`, otherwise for `other[i, c]`. The
    last row is the distribution over nodes."""

    share: np.ndarray  # (d + 1, d)
    other: np.ndarray  # (d + 1, d)


def affinity_of(weights: np.ndarray) -> Affinity:
    """Return the affinity that draws pairs in proportion to these weights (d, d), whose diagonal is ignored."""
    d = len(weights)
    scaled = np.where(np.eye(d, dtype=bool), 0.0, weights)
    scaled = np.concatenate([scaled, scaled.sum(axis=1)[None]])
    scaled = d * scaled / scaled.sum(axis=1, keepdims=True)
    share, other = np.ones((d + 1, d)), np.tile(np.arange(d), (d + 1, 1))
    for i, row in enumerate(scaled):
        small, large = ([int(c) for c in np.flatnonzero(these)] for these in (row < 1, row >= 1))
        while small and large:
            low, high = small.pop(), large[-1]
            share[i, low], other[i, low] = row[low], high
            row[high] -= 1 - row[low]
            if row[high] < 1:
                small.append(large.pop())
    return Affinity(share, other)


class Scratch(NamedTuple):
    """Memory that moves reuse; `wanted` is the family that Python has to score (node + 1, then its parents)."""

    wanted: np.ndarray  # (1 + words,)
    first: np.ndarray  # (words,)
    second: np.ndarray  # (words,)
    sets: np.ndarray  # (9, words) more sets; the first is empty
    drawn: np.ndarray  # (3, 2) scores
    allowed: np.ndarray  # (d,)
    chosen: np.ndarray  # (d + 1,)
    family: ScoringScratch
    own: np.ndarray  # (1,) state of random numbers separate from the chain's
    logs: np.ndarray  # (4, sets) log weights of the block of an exchange move
    weights: np.ndarray  # (4, sets) relative to the largest
    largest: np.ndarray  # (4,) weight of each row
    cuts: np.ndarray  # (d + 1,) log weights of the positions of a node
    sums: np.ndarray  # (2, sets) of weights over supersets, for each direction
    saved: np.ndarray  # (2, d, words) parents and ancestors before a move


@njit
def scratch_for(wanted, scorer, d, words):
    """Return scratch memory for graphs of d nodes."""
    return Scratch(
        wanted, np.zeros(words, np.uint64), np.zeros(words, np.uint64), np.zeros((9, words), np.uint64),
        np.zeros((3, 2)), np.zeros(d, np.int64), np.zeros(d + 1, np.int64), scoring_scratch(scorer),
        np.zeros(1, np.uint64), np.zeros((4, 1 << BLOCK)), np.zeros((4, 1 << BLOCK)), np.zeros(4), np.zeros(d + 1),
        np.zeros((2, 1 << BLOCK)), np.zeros((2, d, words), np.uint64),
    )  # fmt: skip


@njit(inline="always")
def next_word(state):
    """Return 64 random bits; `state` is an array of one word."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(inline="always")
def uniform(state):
    """Return a number in [0, 1) with 53 random bits."""
    return np.float64(next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(inline="always")
def below(state, n):
    """Return one of 0, …, n - 1; with 53 bits the bias is below n / 2^53."""
    return np.int64(uniform(state) * n)


@njit(inline="always")
def random_pair(state, n):
    """Return two different numbers of 0, …, n - 1, in random order."""
    first = below(state, n)
    second = below(state, n - 1)
    return first, second + (second >= first)


@njit(inline="always")
def near_pair(affinity, state):
    """Return two nodes, drawn in proportion to the weights of their pairs."""
    i = near(affinity, affinity.share.shape[1], state)
    return i, near(affinity, i, state)


@njit(inline="always")
def near(affinity, i, state):
    """Return a node, drawn from the distribution of node i; with i the number of nodes, from that over nodes."""
    place = uniform(state) * affinity.share.shape[1]
    column = np.int64(place)
    return column if place - column < affinity.share[i, column] else affinity.other[i, column]


@njit(inline="always")
def accepts(state, log_ratio):
    """Return True with probability `min(1, exp(log_ratio))`. NaN is never accepted."""
    return log_ratio >= 0 or uniform(state) < np.exp(log_ratio)


NEGLIGIBLE = 45.0  # sets this many nats below the sum so far (a share of 3e-20) are skipped


@njit
def draw_parents(scorer, cache, j, allowed, n, required, most, temper, rng, scratch, out, drawn):
    """Draw a set of at most `most` of the first `n` allowed nodes, with probability proportional to
    `[p(set) p(x_j | set)]^heat q(set)^(1 - heat)`, q being the reference of `scoring.py`.

    `required` is a node that must be in the set, or NO_NODE; it counts towards `most`. One pass over all sets: each
    replaces the current one with probability weight / sum so far (weighted reservoir sampling of size one). Return
    whether all families were known, and the log of the sum; the set is written to `out`, its score to `drawn`.
    """
    words, chosen = scratch.sets[4], scratch.chosen
    clear(out)
    base = 1 if required >= 0 else 0
    total = -np.inf
    size = 0
    while True:
        # the set of allowed[chosen[0]] < … < allowed[chosen[size - 1]]
        clear(words)
        if required >= 0:
            insert(words, required)
        for a in range(size):
            insert(words, allowed[chosen[a]])
        at = score(scorer, cache, j, words, scratch.wanted, scratch.family)
        if at < 0:
            return False, total
        weight = log_weight(cache, at, temper)
        if weight > total - NEGLIGIBLE and weight > -np.inf:
            total = log_add(total, weight)
            if weight == total or uniform(rng) < np.exp(weight - total):
                copy_row(out, scratch.sets, 4)
                copy_row(drawn, cache.scores, at)
        # the next set in order: grow it, else move its last member on, else drop members
        last = chosen[size - 1] if size > 0 else -1
        nxt = _next_allowed(allowed, n, last + 1, required)
        if size + base < most and nxt < n:
            chosen[size] = nxt
            size += 1
            continue
        while size > 0:
            nxt = _next_allowed(allowed, n, chosen[size - 1] + 1, required)
            if nxt < n:
                chosen[size - 1] = nxt
                break
            size -= 1
        if size == 0:
            return True, total


@njit
def _next_allowed(allowed, n, start, required):
    """Return the first index from `start` on whose node is not `required`, or n."""
    while start < n and allowed[start] == required:
        start += 1
    return start
