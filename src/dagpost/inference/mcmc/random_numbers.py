"""Random numbers of a chain, with their state in the open: a run can be stopped and continued anywhere.

SplitMix64 (Steele, Lea and Flood, 2014): one word of state, a counter and a mix; passes BigCrush.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, inline="always")
def next_word(state):
    """64 random bits; `state` is an array of one word."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    x = state[0]
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True, inline="always")
def uniform(state):
    """A number in [0, 1) with 53 random bits."""
    return np.float64(next_word(state) >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit(cache=True, inline="always")
def below(state, n):
    """One of 0, …, n - 1; the 53 bits make the bias smaller than n / 2^53."""
    return np.int64(uniform(state) * n)


@njit(cache=True, inline="always")
def random_pair(state, n):
    """Two different ones of 0, …, n - 1, in either order."""
    first = below(state, n)
    second = below(state, n - 1)
    return first, second + (second >= first)


@njit(cache=True, inline="always")
def accepts(state, log_ratio):
    """Metropolis: True with probability `min(1, exp(log_ratio))`. A ratio of NaN is never accepted."""
    return log_ratio >= 0 or uniform(state) < np.exp(log_ratio)
