"""JIT compilation of the long JAX loops (DiBS, M-MC³ and G-MC³) with fast compiler settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import jax

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
