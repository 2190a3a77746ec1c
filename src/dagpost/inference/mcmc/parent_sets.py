"""Drawing the parents of a node from their conditional distribution, given where the other edges are."""

from __future__ import annotations

import numpy as np
from numba import njit

from dagpost._util.numerics import log_add
from dagpost.inference.mcmc.bitsets import clear, copy_row, insert
from dagpost.inference.mcmc.random_numbers import uniform
from dagpost.inference.mcmc.scoring import log_weight, score

NEGLIGIBLE = 45.0  # nats below the sum so far: a share of 3e-20


@njit(cache=True)
def draw_parents(scorer, cache, j, allowed, n, required, most, heat, rng, scratch, out, drawn):
    """Draw a set of at most `most` of the first `n` allowed nodes, with probability proportional to
    `[p(set) p(x_j | set)]^heat q(set)^(1 - heat)`, q being the reference of `scoring.py`.

    `required` is a node that must be in the set (or -1); it counts. One pass over all sets: each takes the place of the
    one held so far with the probability of its share in the sum (a weighted reservoir of one). Returns whether all
    families were known, and the log of the sum; the set goes to `out`, its score to `drawn`.
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
        at = score(scorer, cache, j, words, scratch.wanted, scratch.parents, scratch.lower)
        if at < 0:
            return False, total
        weight = log_weight(cache, at, heat)
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


@njit(cache=True)
def _next_allowed(allowed, n, start, required):
    while start < n and allowed[start] == required:
        start += 1
    return start
