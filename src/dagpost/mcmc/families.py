"""Scores of families, remembered.

A family is a node and its set of parents; its score is a pair (log evidence, log prior), kept apart because only the
evidence is tempered. Scores live in one open-addressed table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dagpost.mcmc.bitsets import words_for


class FamilyCache(NamedTuple):
    """Keys (node + 1, parents) and values; a node of 0 marks a free slot. The number of slots is a power of two."""

    nodes: np.ndarray  # (slots,)
    parents: np.ndarray  # (slots, words)
    scores: np.ndarray  # (slots, 2)
    used: np.ndarray  # (1,)


def empty_cache(d: int, slots: int = 1 << 16) -> FamilyCache:
    """A cache without scores; `slots` must be a power of two."""
    return FamilyCache(
        np.zeros(slots, np.int64),
        np.zeros((slots, words_for(d)), np.uint64),
        np.empty((slots, 2)),
        np.zeros(1, np.int64),
    )


@njit(cache=True, inline="always")
def _hash(node, parents):
    """A multiplicative mix of node and words."""
    h = np.uint64(node) * np.uint64(0x9E3779B97F4A7C15)
    for w in range(parents.shape[0]):
        h ^= parents[w]
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(29)
    return h


@njit(cache=True, inline="always")
def find(cache, node, parents):
    """The slot of a family, and whether its score is there."""
    mask = np.uint64(cache.nodes.shape[0] - 1)
    slot = _hash(node, parents) & mask
    while True:
        at = np.int64(slot)
        if cache.nodes[at] == 0:
            return at, False
        if cache.nodes[at] == node + 1:
            same = True
            for w in range(parents.shape[0]):
                if cache.parents[at, w] != parents[w]:
                    same = False
                    break
            if same:
                return at, True
        slot = (slot + np.uint64(1)) & mask


@njit(cache=True)
def store(cache, node, parents, evidence, prior):
    """Remember a score. A table that is three quarters full forgets everything first: lookups stay short."""
    if 4 * cache.used[0] >= 3 * cache.nodes.shape[0]:
        cache.nodes[:] = 0
        cache.used[0] = 0
    at, known = find(cache, node, parents)
    cache.nodes[at] = node + 1
    cache.parents[at] = parents
    cache.scores[at, 0] = evidence
    cache.scores[at, 1] = prior
    if not known:
        cache.used[0] += 1
    return at
