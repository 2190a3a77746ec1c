"""Long loops are compiled at the level that is meant, and maps in chunks; both compute the same as without."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dagpost._util.numerics import LEVEL, jitted, map_chunked


def test_it_computes_what_the_function_does():
    doubled = jitted(lambda count, x: x * count, static_argnums=0)
    assert doubled(2, jnp.arange(3)).tolist() == [0, 2, 4]
    assert doubled(3, jnp.arange(3)).tolist() == [0, 3, 6]


@pytest.mark.parametrize(("flags", "options"), [("", {LEVEL: 1}), (f"--{LEVEL}=0", None)])
def test_a_level_that_somebody_chose_is_left_alone(flags, options, monkeypatch):
    seen, real = [], jax.jit
    monkeypatch.setenv("XLA_FLAGS", flags)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    monkeypatch.setattr(jax, "jit", lambda *a, **k: seen.append(k["compiler_options"]) or real(*a, **k))
    assert jitted(lambda x: x + 1)(1.0) == 2.0
    assert seen == [options]


def test_chunks_of_a_map_are_filled_up():
    """Seven elements in chunks of three, with random keys among them; and one chunk that holds all."""
    keys, values = jax.random.split(jax.random.key(0), 7), np.arange(7.0)

    def one(pair):
        return {"sum": pair[1] + jax.random.uniform(pair[0])}

    for chunk in (3, 7, 10):
        found = map_chunked(one, (keys, values), chunk)["sum"]
        np.testing.assert_allclose(found, values + jax.vmap(jax.random.uniform)(keys), rtol=1e-6)
    lengths = []
    map_chunked(lambda row: lengths.append(row.shape) or row, np.ones((7, 2)), 3)
    assert len(lengths) == 1, "a shorter last chunk would be traced by itself"
