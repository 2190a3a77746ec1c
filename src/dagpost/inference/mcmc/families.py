"""Scores of families, remembered.

A family is a node and its set of parents; its score is a pair, what tempering flattens and what it leaves
(`scoring.py`). Scores live in one open-addressed table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from dagpost.inference.mcmc.bitsets import words_for


class FamilyCache(NamedTuple):
    """Keys (node + 1, parents) and values, side by side in one block of memory: a lookup touches one place of it.

    A node of 0 marks a free slot. The number of slots is a power of two.
    """

    keys: np.ndarray  # (slots, 1 + words)
    scores: np.ndarray  # (slots, 2)
    used: np.ndarray  # (1,)


def empty_cache(d: int, slots: int | None = None) -> FamilyCache:
    """A cache without scores; `slots` must be a power of two. A small table is fast."""
    if slots is None:
        slots = 1 << min(18, d + int(d).bit_length())
    words = words_for(d)
    memory = np.zeros((slots, 3 + words), np.uint64)
    return FamilyCache(memory[:, : 1 + words], memory.view(np.float64)[:, 1 + words :], np.zeros(1, np.int64))


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
    mask = np.uint64(cache.keys.shape[0] - 1)
    slot = _hash(node, parents) & mask
    while True:
        at = np.int64(slot)
        if cache.keys[at, 0] == 0:
            return at, False
        if cache.keys[at, 0] == np.uint64(node + 1):
            same = True
            for w in range(parents.shape[0]):
                if cache.keys[at, 1 + w] != parents[w]:
                    same = False
                    break
            if same:
                return at, True
        slot = (slot + np.uint64(1)) & mask


@njit(cache=True)
def store(cache, node, parents, tempered, reference):
    """Remember a score. A table that is three quarters full forgets everything first: lookups stay short."""
    if 4 * cache.used[0] >= 3 * cache.keys.shape[0]:
        cache.keys[:, 0] = 0
        cache.used[0] = 0
    at, known = find(cache, node, parents)
    cache.keys[at, 0] = node + 1
    cache.keys[at, 1:] = parents
    cache.scores[at, 0] = tempered
    cache.scores[at, 1] = reference
    if not known:
        cache.used[0] += 1
    return at
