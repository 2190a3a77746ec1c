"""Explicit randomness: JAX keys everywhere; NumPy generators are made from a key where a loop needs one."""

from __future__ import annotations

import jax
import numpy as np

from dagpost.errors import InputError
from dagpost.typing import Key


def key_from_seed(seed: int) -> Key:
    """The key that a whole run hangs on."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**63:
        raise InputError(f"seed={seed!r}: give a whole number from 0 to 2**63 - 1")
    return jax.random.key(int(seed))


def each(keys: Key) -> list[Key]:
    """The keys of an array of them; to loop over the array itself takes a millisecond for each."""
    kind = jax.random.key_impl(keys)
    return [jax.random.wrap_key_data(row, impl=kind) for row in np.asarray(jax.random.key_data(keys))]


def generator(key: Key) -> np.random.Generator:
    """A NumPy generator fixed by the key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))
