"""Sums of very small or very large numbers, held as logarithms."""

from __future__ import annotations

from math import inf, log

import numpy as np
from numba import njit


def log_sum(values: np.ndarray) -> float:
    """`log sum exp(values)`; -inf for an empty sum or one of zeros."""
    top = float(np.max(values, initial=-inf))
    return top + log(np.exp(values - top).sum()) if np.isfinite(top) else top


@njit(cache=True)
def log_add(a, b):
    """`log(exp(a) + exp(b))`, for compiled loops."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit(cache=True)
def exponentiate(logs, n):
    """The first n, in place, relative to the largest, which is returned; for compiled loops."""
    largest = -np.inf
    for a in range(n):
        largest = max(largest, logs[a])
    for a in range(n):
        logs[a] = np.exp(logs[a] - largest) if largest > -np.inf else 0.0
    return largest


def log_normalised(values: np.ndarray) -> np.ndarray:
    """`values - log_sum(values)`, without the rounding of a large common offset."""
    shifted = values - np.max(values)
    return shifted - log(np.exp(shifted).sum())
