"""Sets of nodes as words of 64 bits, for compiled loops."""

from __future__ import annotations

import numpy as np
from numba import njit

from dagpost.typing import Graph

ONE = np.uint64(1)


@njit(cache=True, inline="always")
def has(words, i):
    """Whether i is in the set."""
    return (words[i >> 6] >> np.uint64(i & 63)) & ONE != 0


@njit(cache=True, inline="always")
def holds(sets, row, i):
    """Whether i is in the set of this row; no view of the row is made, which loops would pay for."""
    return (sets[row, i >> 6] >> np.uint64(i & 63)) & ONE != 0


@njit(cache=True, inline="always")
def insert(words, i):
    words[i >> 6] |= ONE << np.uint64(i & 63)


@njit(cache=True, inline="always")
def discard(words, i):
    words[i >> 6] &= ~(ONE << np.uint64(i & 63))


@njit(cache=True, inline="always")
def clear(words):
    for w in range(words.shape[0]):
        words[w] = 0


@njit(cache=True, inline="always")
def copy_row(words, sets, row):
    """This row, to `words`; a loop, since assigning slices costs ten times as much."""
    for w in range(words.shape[0]):
        words[w] = sets[row, w]


@njit(cache=True, inline="always")
def copy(words, other):
    """The members of `other`, to `words`."""
    for w in range(words.shape[0]):
        words[w] = other[w]


@njit(cache=True)
def count(words):
    """Number of members."""
    total = 0
    for w in range(words.shape[0]):
        x = words[w]
        while x:
            x &= x - ONE
            total += 1
    return total


def words_for(d: int) -> int:
    """How many words a set of d nodes takes."""
    return (d + 63) // 64


def members(words: np.ndarray, d: int) -> np.ndarray:
    """The indices in the set, ascending."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little")
    return np.flatnonzero(bits[:d])


def packed(graph: Graph) -> np.ndarray:
    """The set of parents of every node, (d, words)."""
    d = len(graph)
    out = np.zeros((d, words_for(d)), np.uint64)
    for i, j in zip(*np.nonzero(graph)):
        insert(out[j], i)
    return out
