"""What moves share: how they end, and the memory they work in."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

ACCEPTED, REJECTED, MISSING = 1, 0, -1
BLOCK = 5
"""Parents that can change hands at once in an exchange; their sets are weighed one by one."""


class Scratch(NamedTuple):
    """Memory that moves reuse, and the family that Python is asked for (node + 1, then its parents)."""

    wanted: np.ndarray  # (1 + words,)
    first: np.ndarray  # (words,)
    second: np.ndarray  # (words,)
    sets: np.ndarray  # (9, words) more sets; the first is empty
    drawn: np.ndarray  # (3, 2) scores
    allowed: np.ndarray  # (d,)
    chosen: np.ndarray  # (d + 1,)
    parents: np.ndarray  # (d,)
    lower: np.ndarray  # (d, d)
    own: np.ndarray  # (1,) random numbers that are not the chain's
    weights: np.ndarray  # (4, sets) of parents that are exchanged
    largest: np.ndarray  # (4,) of each row
    cuts: np.ndarray  # (d + 1,) log weights of the places of a node
    sums: np.ndarray  # (2, sets) of supersets, for each direction


@njit(cache=True)
def scratch_for(wanted, d, words):
    """Scratch for graphs of d nodes."""
    return Scratch(
        wanted, np.zeros(words, np.uint64), np.zeros(words, np.uint64), np.zeros((9, words), np.uint64),
        np.zeros((3, 2)), np.zeros(d, np.int64), np.zeros(d + 1, np.int64), np.zeros(d, np.int64), np.zeros((d, d)),
        np.zeros(1, np.uint64), np.zeros((4, 1 << BLOCK)), np.zeros(4), np.zeros(d + 1),
        np.zeros((2, 1 << BLOCK)),
    )  # fmt: skip
