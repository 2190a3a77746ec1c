"""Numerical helpers: sums in log space, and random keys.

Randomness is explicit: functions take JAX keys, and make a NumPy generator from a key where a loop needs one.
"""

from __future__ import annotations

from math import inf, log

import jax
import numpy as np
from numba import njit

from dagpost.errors import InputError
from dagpost.typing import Key


def log_sum(values: np.ndarray) -> float:
    """Return `log sum exp(values)`; -inf for an empty array or one that holds only -inf."""
    top = float(np.max(values, initial=-inf))
    return top + log(np.exp(values - top).sum()) if np.isfinite(top) else top


@njit(cache=True)
def log_add(a, b):
    """Return `log(exp(a) + exp(b))`, for compiled loops."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit(cache=True)
def exponentiate(logs, n):
    """Replace the first n values by `exp(value - largest)` in place and return the largest; for compiled loops."""
    largest = -np.inf
    for a in range(n):
        largest = max(largest, logs[a])
    for a in range(n):
        logs[a] = np.exp(logs[a] - largest) if largest > -np.inf else 0.0
    return largest


def log_normalised(values: np.ndarray) -> np.ndarray:
    """Return `values - log_sum(values)`, without the rounding error of a large common offset."""
    shifted = values - np.max(values)
    return shifted - log(np.exp(shifted).sum())


def key_from_seed(seed: int) -> Key:
    """Return the root key of a run."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**63:
        raise InputError(f"seed={seed!r}: give a whole number from 0 to 2**63 - 1")
    return jax.random.key(int(seed))


def unstack_keys(keys: Key) -> list[Key]:
    """Return the keys of a key array as a list; iterating over the array itself takes a millisecond per key."""
    kind = jax.random.key_impl(keys)
    return [jax.random.wrap_key_data(row, impl=kind) for row in np.asarray(jax.random.key_data(keys))]


def generator(key: Key) -> np.random.Generator:
    """Return a NumPy generator seeded by the key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
