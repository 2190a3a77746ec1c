"""Numerical helpers: sums in log space, random keys, and JIT compilation of long JAX loops with fast compiler settings.

Randomness is explicit: functions take JAX keys, and make a NumPy generator from a key where a loop needs one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import Any

import jax
import numpy as np
from scipy.special import logsumexp

from dagpost._util.compiled import njit
from dagpost.errors import InputError
from dagpost.typing import Key


def log_sum_exp(values: np.ndarray) -> float:
    """Return `log sum exp(values)` as a float; -inf where all are -inf."""
    return float(logsumexp(values))  # type: ignore[arg-type]


@njit
def log_add(a, b):
    """Return `log(exp(a) + exp(b))`, for compiled loops."""
    if a < b:
        a, b = b, a
    return a if b == -np.inf else a + np.log1p(np.exp(b - a))


@njit
def exponentiate(logs, n):
    """Replace the first n values by `exp(value - largest)` in place and return the largest; for compiled loops."""
    largest = -np.inf
    for a in range(n):
        largest = max(largest, logs[a])
    for a in range(n):
        logs[a] = np.exp(logs[a] - largest) if largest > -np.inf else 0.0
    return largest


def key_from_seed(seed: int) -> Key:
    """Return the root key of a run."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= int(seed) < 2**63:
        raise InputError(f"seed={seed!r}: give a whole number from 0 to 2**63 - 1")
    return jax.random.key(int(seed))


def unstack_keys(keys: Key) -> list[Key]:
    """Return the keys of a key array as a list, in host memory; iterating over the array itself takes a millisecond
    per key, and so does reading a key on a GPU."""
    kind = jax.random.key_impl(keys)
    with in_host_memory():
        return [jax.random.wrap_key_data(row, impl=kind) for row in np.asarray(jax.random.key_data(keys))]


def in_host_memory() -> AbstractContextManager[Any]:
    """Context in which JAX makes arrays in host memory, if it may use the CPU."""
    try:
        return jax.default_device(jax.local_devices(backend="cpu")[0])
    except RuntimeError:  # it was told to leave the CPU alone
        return nullcontext()


def generator(key: Key) -> np.random.Generator:
    """Return a NumPy generator seeded by the key."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def map_chunked(function: Callable[[Any], Any], arguments: Any, chunk: int) -> Any:
    """Map a JAX function over the leading axis of all arrays in `arguments`, at most `chunk` elements at once.

    `jax.lax.map` with a `batch_size` does so too, but computes the last, shorter chunk beside the others. On a CPU,
    batches of LAPACK calls (Cholesky factors, triangular solves) that run at the same time can wait for each other's
    threads for ever (jaxlib 0.10). Here the last chunk is filled up with copies of the first element.
    """
    return by_chunks(jax.vmap(function), arguments, chunk)


def by_chunks(function: Callable[[Any], Any], arguments: Any, chunk: int) -> Any:
    """Return what a JAX function of arrays with any leading axis gives, applied to at most `chunk` elements at once."""
    count = len(jax.tree.leaves(arguments)[0])
    if chunk >= count:
        return function(arguments)
    if count % chunk:
        filled = np.arange(-(-count // chunk) * chunk)
        filled[count:] = 0
        arguments = jax.tree.map(lambda leaf: leaf[filled], arguments)
    parts = jax.tree.map(lambda leaf: leaf.reshape(-1, chunk, *leaf.shape[1:]), arguments)
    out = jax.lax.map(function, parts)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:count], out)


LEVEL = "xla_backend_optimization_level"
"""Name of the XLA compiler option."""


def jitted(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return `jax.jit(function, **options)`, compiled at LLVM optimisation level 1 on a CPU.

    That halves the compile time and the compiled code is no slower (`benchmarks/compiling.py`). A level set in
    XLA_FLAGS takes precedence.
    """

    @cache
    def compiled() -> Callable[..., Any]:  # on the first call: asking for the backend initialises the device
        quick = jax.default_backend() == "cpu" and LEVEL not in os.environ.get("XLA_FLAGS", "")
        return jax.jit(function, compiler_options={LEVEL: 1} if quick else None, **options)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled()(*arguments)

    return call
