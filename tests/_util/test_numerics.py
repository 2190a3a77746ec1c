"""Long loops are compiled at the level that is meant, and compute the same."""

import subprocess
import sys

import jax.numpy as jnp
import pytest

from dagpost._util.numerics import LEVEL, jitted


def test_it_computes_what_the_function_does():
    doubled = jitted(lambda count, x: x * count, static_argnums=0)
    assert doubled(2, jnp.arange(3)).tolist() == [0, 2, 4]
    assert doubled(3, jnp.arange(3)).tolist() == [0, 3, 6]


@pytest.mark.parametrize(("flags", "options"), [("", {LEVEL: 1}), (f"--{LEVEL}=0", None)])
def test_a_level_that_somebody_chose_is_left_alone(flags, options):
    code = (
        "import jax; seen = []; real = jax.jit\n"
        "jax.jit = lambda *a, **k: seen.append(k['compiler_options']) or real(*a, **k)\n"
        "from dagpost._util.numerics import jitted\n"
        "jitted(lambda x: x + 1)(1.0); print(seen[-1])"
    )
    environment = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(sys.path)}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(options)
