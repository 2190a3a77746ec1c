"""Long loops are compiled at the level that is meant, and compute the same."""

import jax
import jax.numpy as jnp
import pytest

from dagpost._util.numerics import LEVEL, jitted


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
