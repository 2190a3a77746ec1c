"""How JAX compiles the long loops: of DiBS, M-MC³ and G-MC³."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax

LEVEL = "xla_backend_optimization_level"


def jitted(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`jax.jit`, at LLVM's first level of optimisation on a CPU: compiling takes half the time there, and what is
    compiled is no slower (`benchmarks/compiling.py`). A level in XLA_FLAGS is left alone."""

    @cache
    def compiled() -> Callable[..., Any]:  # once JAX has to know its device in any case
        quick = jax.default_backend() == "cpu" and LEVEL not in os.environ.get("XLA_FLAGS", "")
        return jax.jit(function, compiler_options={LEVEL: 1} if quick else None, **options)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        return compiled()(*arguments)

    return call
