"""States of runs and their file format, sealed (`dagpost._util.files`):

    magic (16 bytes) | length of the header (8) | header | arrays

The header is JSON: the facts, and the name, type and shape of every array. Nothing in it is executed. JAX trees, random
keys included, are stored as arrays by name (`tree_to_arrays`).
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from dagpost._util.files import Damaged, content_of, seal
from dagpost.errors import InputError

MAGIC = b"dagpost-state-2\n"
LENGTH = struct.Struct("<Q")
KINDS = "biuf"  # NumPy kinds of arrays: booleans, integers and floats


class State(NamedTuple):
    """State of a run.

    Attributes
    ----------
    arrays
        Arrays by name.
    facts
        JSON values by name.
    """

    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]


def encode(state: State) -> bytes:
    """Return the state as bytes."""
    arrays = {name: np.asarray(array) for name, array in state.arrays.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in KINDS:
            raise TypeError(f"array {name!r} of type {array.dtype} cannot be saved in a checkpoint")
    table = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"facts": state.facts, "arrays": table}).encode()
    return seal(b"".join([MAGIC, LENGTH.pack(len(header)), header, *(array.tobytes() for array in arrays.values())]))


def decode(content: bytes) -> State:
    """Return the state that was encoded; raise `Damaged` if the bytes differ."""
    inside = content_of(content)
    if bytes(inside[: len(MAGIC)]) != MAGIC:
        raise Damaged("it does not start like a checkpoint")
    try:
        return _unpack(inside[len(MAGIC) :])
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise Damaged(f"its header is invalid ({error})") from None


def read(path: Path) -> State:
    """Return the state in a file; raise `Damaged` if it is not intact."""
    return decode(path.read_bytes())


def _unpack(rest: memoryview) -> State:
    """Return the state in the bytes after the magic."""
    end = LENGTH.size + LENGTH.unpack_from(rest)[0]
    header = json.loads(bytes(rest[LENGTH.size : end]))
    arrays = {}
    for name, kind, shape in header["arrays"]:
        dtype = np.dtype(kind)
        if dtype.kind not in KINDS:
            raise ValueError(f"array {name!r} has type {kind}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(rest, dtype, count, end).reshape(shape).copy()
        end += count * dtype.itemsize
    if end != len(rest):
        raise ValueError("bytes after the last array")
    return State(arrays, header["facts"])


Tree = TypeVar("Tree")


def tree_to_arrays(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """Return the leaves by their path in the tree."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": _as_array(leaf) for path, leaf in leaves}


def tree_from_arrays(like: Tree, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Tree:
    """Return the tree with these leaves; `like` has the same paths, shapes and types."""
    leaves, shape = jax.tree_util.tree_flatten_with_path(like)
    out = []
    for path, leaf in leaves:
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        array, expected = arrays.get(name), _as_array(leaf)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            raise InputError(f"the checkpoint has no {name!r} of shape {expected.shape} and type {expected.dtype}")
        bits = jnp.asarray(array)
        out.append(jax.random.wrap_key_data(bits, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else bits)
    return jax.tree.unflatten(shape, out)


def _is_key(leaf: Any) -> bool:
    """Return whether a leaf is a typed JAX random key."""
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _as_array(leaf: Any) -> np.ndarray:
    """Return a leaf as a NumPy array; of a random key, its data."""
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
