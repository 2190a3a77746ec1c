"""Compiled code that calls a Python function on arrays in the host's memory, by name.

`jax.pure_callback` does the same, but an executable that holds one is never kept in XLA's persistent cache: it points
at an object of one process. Here the function is registered as a target of XLA's foreign function interface and the
executable knows no more than its name, so a second process finds its code compiled. The handler is Python behind
ctypes (which takes the interpreter's lock): nothing has to be compiled to install it.

The structures are those of `xla/ffi/api/c_api.h`, which ships with jaxlib; their leading fields are stable.
"""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

VERSION = (0, 1)
"""Of the interface, as far as it is used here. XLA takes handlers of its own major version and no later minor one."""

METADATA, EXECUTE, INTERNAL_ERROR = 1, 3, 13
DTYPES = {1: np.bool_, 4: np.int32, 5: np.int64, 11: np.float32, 12: np.float64}


class _Version(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", c.c_void_p), ("major", c.c_int), ("minor", c.c_int)]


class _Metadata(c.Structure):
    _fields_ = [("size", c.c_size_t), ("version", _Version)]


class _Extension(c.Structure):
    _fields_ = [("size", c.c_size_t), ("type", c.c_int), ("next", c.c_void_p), ("metadata", c.POINTER(_Metadata))]


class _Buffer(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("extension", c.c_void_p), ("dtype", c.c_int), ("data", c.c_void_p), ("rank", c.c_int64),
        ("shape", c.POINTER(c.c_int64)),
    ]  # fmt: skip


class _Buffers(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("extension", c.c_void_p), ("count", c.c_int64), ("types", c.c_void_p),
        ("items", c.POINTER(c.POINTER(_Buffer))),
    ]  # fmt: skip


class _Failure(c.Structure):
    _fields_ = [("size", c.c_size_t), ("extension", c.c_void_p), ("message", c.c_char_p), ("code", c.c_int)]


class _Api(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("extension", c.c_void_p), ("version", _Version), ("internal", c.c_void_p),
        ("fail", c.CFUNCTYPE(c.c_void_p, c.POINTER(_Failure))),
    ]  # fmt: skip


class _Call(c.Structure):
    _fields_ = [
        ("size", c.c_size_t), ("extension", c.POINTER(_Extension)), ("api", c.POINTER(_Api)), ("context", c.c_void_p),
        ("stage", c.c_int), ("arguments", _Buffers), ("results", _Buffers),
    ]  # fmt: skip


_Handler = c.CFUNCTYPE(c.c_void_p, c.POINTER(_Call))
_registered: dict[str, tuple[Callable[..., Any], Any]] = {}


def host_call(name: str, function: Callable[..., np.ndarray], result: jax.ShapeDtypeStruct, *arrays: Any) -> jax.Array:
    """`function(*arrays)` on the CPU, from inside compiled code; batched calls see their arrays with leading axes.

    `name` stands for the function in every process and version whose compiled code is kept: give it to one only. The
    function sees NumPy arrays that it must neither keep nor write to.
    """
    if name not in _registered:
        handler = _Handler(_handler(function))
        jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
        _registered[name] = function, handler  # XLA holds a bare pointer: the handler must stay
    elif _registered[name][0] is not function:
        raise ValueError(f"{name!r} is the name of another function")
    return jax.ffi.ffi_call(name, result, vmap_method="legacy_vectorized")(*arrays)


def _handler(function: Callable[..., np.ndarray]) -> Callable[[Any], Any]:
    def handle(pointer: Any) -> int | None:
        call = pointer.contents
        if call.extension and call.extension.contents.type == METADATA:
            version = call.extension.contents.metadata.contents.version
            version.major, version.minor = VERSION
        elif call.stage == EXECUTE:
            try:
                (result,) = _arrays(call.results)
                result[...] = function(*_arrays(call.arguments))
            except BaseException as error:  # an exception cannot pass through XLA; its message can
                return _failed(call, f"{type(error).__name__}: {error}")
        return None

    return handle


def _arrays(buffers: _Buffers) -> list[np.ndarray]:
    """Views of what XLA allocated."""
    return [_array(buffers.items[k].contents) for k in range(buffers.count)]


def _array(buffer: _Buffer) -> np.ndarray:
    dtype, shape = np.dtype(DTYPES[buffer.dtype]), tuple(buffer.shape[: buffer.rank])
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    memory: Any = (c.c_char * (count * dtype.itemsize)).from_address(buffer.data)
    return np.frombuffer(memory, dtype, count).reshape(shape)


def _failed(call: _Call, message: str) -> int | None:
    failure = _Failure(c.sizeof(_Failure), None, message.encode(), INTERNAL_ERROR)
    return call.api.contents.fail(c.byref(failure))
