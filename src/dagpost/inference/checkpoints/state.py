"""Arrays and facts in one sequence of bytes that knows whether it is whole.

    magic (16 bytes) | length of the rest (8) | SHA-256 of the rest (32) | length of the header (8) | header | arrays

The header is JSON: the facts, and the name, type and shape of every array. Nothing in it is executed.

JAX trees as arrays by name, random keys included.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from dagpost.errors import InputError

MAGIC = b"dagpost-state-1\n"
LENGTH = struct.Struct("<Q")
FRONT = len(MAGIC) + LENGTH.size + hashlib.sha256().digest_size
KINDS = "biuf"  # of array types: truth values and numbers


class State(NamedTuple):
    """Where a run stands: arrays by name, and facts that JSON can hold."""

    arrays: dict[str, np.ndarray]
    facts: dict[str, Any]


class Damaged(Exception):
    """The bytes are not what was written; the message says what is wrong with them."""


def encode(state: State) -> bytes:
    """The state as bytes."""
    arrays = {name: np.asarray(array) for name, array in state.arrays.items()}
    for name, array in arrays.items():
        if array.dtype.kind not in KINDS:
            raise TypeError(f"array {name!r} of type {array.dtype} has no place in a checkpoint")
    table = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    header = json.dumps({"facts": state.facts, "arrays": table}).encode()
    rest = b"".join([LENGTH.pack(len(header)), header, *(array.tobytes() for array in arrays.values())])
    return MAGIC + LENGTH.pack(len(rest)) + hashlib.sha256(rest).digest() + rest


def decode(content: bytes) -> State:
    """The state that these bytes were made from, or `Damaged`."""
    size = _payload_size(content[:FRONT])
    rest = memoryview(content)[FRONT:]
    if len(rest) != size:
        raise Damaged(f"it has {len(content)} bytes, not {FRONT + size}")
    if hashlib.sha256(rest).digest() != content[FRONT - 32 : FRONT]:
        raise Damaged("its checksum does not fit")
    try:
        return _unpack(rest)
    except (ValueError, TypeError, KeyError, struct.error) as error:
        raise Damaged(f"its header makes no sense ({error})") from None


def read(path: Path) -> State:
    """The state in a file, or `Damaged`; its size is checked before it is read."""
    with open(path, "rb") as file:
        front = file.read(FRONT)
        size, there = FRONT + _payload_size(front), os.fstat(file.fileno()).st_size
        if size != there:
            raise Damaged(f"it has {there} bytes, not {size}")
        return decode(front + file.read(size - FRONT))


def _payload_size(front: bytes) -> int:
    if len(front) < FRONT or not front.startswith(MAGIC):
        raise Damaged("it does not begin like a checkpoint")
    return LENGTH.unpack_from(front, len(MAGIC))[0]


def _unpack(rest: memoryview) -> State:
    end = LENGTH.size + LENGTH.unpack_from(rest)[0]
    header = json.loads(bytes(rest[LENGTH.size : end]))
    arrays = {}
    for name, kind, shape in header["arrays"]:
        dtype = np.dtype(kind)
        if dtype.kind not in KINDS:
            raise ValueError(f"array {name!r} of type {kind}")
        count = math.prod(shape)
        arrays[name] = np.frombuffer(rest, dtype, count, end).reshape(shape).copy()
        end += count * dtype.itemsize
    if end != len(rest):
        raise ValueError("bytes left over")
    return State(arrays, header["facts"])


Tree = TypeVar("Tree")


def tree_to_arrays(tree: Any, prefix: str = "") -> dict[str, np.ndarray]:
    """The leaves by their path in the tree."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {f"{prefix}{jax.tree_util.keystr(path)}": _as_array(leaf) for path, leaf in leaves}


def tree_from_arrays(like: Tree, arrays: Mapping[str, np.ndarray], prefix: str = "") -> Tree:
    """The tree with these leaves; `like` has the same paths, shapes and types."""
    leaves, shape = jax.tree_util.tree_flatten_with_path(like)
    out = []
    for path, leaf in leaves:
        name = f"{prefix}{jax.tree_util.keystr(path)}"
        array, expected = arrays.get(name), _as_array(leaf)
        if array is None or array.shape != expected.shape or array.dtype != expected.dtype:
            raise InputError(f"the checkpoint holds no {name!r} of shape {expected.shape} and type {expected.dtype}")
        bits = jnp.asarray(array)
        out.append(jax.random.wrap_key_data(bits, impl=jax.random.key_impl(leaf)) if _is_key(leaf) else bits)
    return jax.tree.unflatten(shape, out)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _as_array(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)
