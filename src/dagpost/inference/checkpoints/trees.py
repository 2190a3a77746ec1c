"""JAX trees as arrays by name, random keys included."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from dagpost.errors import InputError

Tree = TypeVar("Tree")


def packed(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """The leaves by their path in the tree."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": _plain(leaf) for path, leaf in leaves}


def unpacked(like: Tree, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Tree:
    """The tree with these leaves; `like` has the same paths, shapes and types."""
    leaves, shape = jax.tree_util.tree_flatten_with_path(like)
    out = []
    for path, leaf in leaves:
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        array, wanted = arrays.get(name), _plain(leaf)
        if array is None or array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise InputError(f"the checkpoint holds no {name!r} of shape {wanted.shape} and type {wanted.dtype}")
        bits = jnp.asarray(array)
        out.append(jax.random.wrap_key_data(bits, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else bits)
    return jax.tree.unflatten(shape, out)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _plain(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
