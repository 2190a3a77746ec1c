"""Calls from compiled code into Python, against `jax.pure_callback`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dagpost.inference.dibs.host_calls import host_call


def weighted(x, y, flag, count):
    """Takes every kind of array that occurs: a matrix, an empty one, a truth value and a whole number."""
    return np.cumsum(x, axis=-1) * (2.0 if flag else 1.0) + count + y.sum()


def refusing(x):
    raise ValueError("no such thing")


def by_host_call(x, *rest):
    return host_call("test.weighted", weighted, jax.ShapeDtypeStruct(x.shape, x.dtype), x, *rest)


def by_callback(x, *rest):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = lambda *arrays: np.asarray(weighted(*map(np.asarray, arrays)), dtype=x.dtype)  # noqa: E731
    return jax.pure_callback(call, shape, x, *rest, vmap_method="legacy_vectorized")


@pytest.mark.parametrize("wide", [False, True])
def test_the_same_as_a_callback(wide):
    with jax.enable_x64(wide):
        x = jax.random.normal(jax.random.key(0), (4, 3), dtype=float)
        rest = (jnp.zeros((0, 2)), jnp.asarray(True), jnp.asarray(3))
        looped = lambda f: jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda _, y: f(y, *rest) / 9, x))(x)  # noqa: E731
        batched = lambda f: jax.jit(jax.vmap(lambda row: f(row, *rest)))(x)  # noqa: E731
        for way in (looped, batched):
            found, expected = way(by_host_call), way(by_callback)
            assert found.dtype == expected.dtype == x.dtype
            np.testing.assert_array_equal(found, expected)


def test_an_error_reaches_the_caller():
    with pytest.raises(Exception, match="ValueError: no such thing"):
        jax.block_until_ready(host_call("test.refusing", refusing, jax.ShapeDtypeStruct((3,), float), jnp.arange(3.0)))


def test_one_name_one_function():
    x = jnp.ones(2)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    host_call("test.named", np.negative, shape, x)
    with pytest.raises(ValueError, match="another function"):
        host_call("test.named", np.exp, shape, x)
