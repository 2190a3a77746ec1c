"""Calls from compiled code to a named Python function on arrays in host memory.

`jax.pure_callback` does the same, but an executable with a callback is never stored in XLA's persistent cache, because
it points at an object of one process. Here the function is registered as a target of XLA's foreign function interface
and the executable refers to it by name, so a second process can reuse the compiled code. The handler is Python behind
ctypes (which takes the interpreter lock): installing it compiles nothing.

The structures are those of `xla/ffi/api/c_api.h`, which ships with jaxlib. Where that header has another version, or is
missing, or the function cannot be registered, `jax.pure_callback` does the work.
"""

from __future__ import annotations

import ctypes as c
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np

VERSION = (0, 1)
"""Version of the interface used here. XLA accepts handlers of its own major version and no later minor version."""

NEWEST = (0, 3)
"""Newest version whose structures have been compared with the ones here."""

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
    """Return `function(*arrays)`, run on the CPU from inside compiled code; vmap adds leading axes to the arrays.

    `name` identifies the function in all cached compiled code, across processes and versions: use it for one function
    only. The function gets NumPy arrays that it must neither keep nor write to.
    """
    if name in _registered and _registered[name][0] is not function:
        raise ValueError(f"{name!r} is registered for another function: give each function its own name")
    if not (VERSION <= interface_version() <= NEWEST and _register(name, function)):

        def call(*given: Any) -> np.ndarray:
            return np.asarray(function(*map(np.asarray, given)), dtype=result.dtype)

        return jax.pure_callback(call, result, *arrays, vmap_method="legacy_vectorized")
    return jax.ffi.ffi_call(name, result, vmap_method="legacy_vectorized")(*arrays)


@cache
def interface_version() -> tuple[int, int]:
    """Return major and minor version of the interface that jaxlib ships; (-1, 0) if there is none to be found."""
    try:
        header = (Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text()
    except (OSError, AttributeError):
        return -1, 0
    found = dict(re.findall(r"#define XLA_FFI_API_(MAJOR|MINOR) (\d+)", header))
    return (int(found["MAJOR"]), int(found["MINOR"])) if len(found) == 2 else (-1, 0)


def _register(name: str, function: Callable[..., np.ndarray]) -> bool:
    """Register the function with XLA, once; return whether that worked."""
    if name not in _registered:
        handler = _Handler(_handler(function))
        try:
            jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(handler), platform="cpu")
        except Exception:
            return False
        _registered[name] = function, handler  # XLA holds a bare pointer: the handler must stay alive
    return True


def _handler(function: Callable[..., np.ndarray]) -> Callable[[Any], Any]:
    """Return the C callback that answers XLA's metadata query and runs `function` on an execute call."""

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
    """Return NumPy views of the buffers that XLA allocated."""
    return [_array(buffers.items[k].contents) for k in range(buffers.count)]


def _array(buffer: _Buffer) -> np.ndarray:
    """Return a NumPy view of one buffer."""
    dtype, shape = np.dtype(DTYPES[buffer.dtype]), tuple(buffer.shape[: buffer.rank])
    count = int(np.prod(shape, dtype=np.int64))
    if not count:
        return np.empty(shape, dtype)
    memory: Any = (c.c_char * (count * dtype.itemsize)).from_address(buffer.data)
    return np.frombuffer(memory, dtype, count).reshape(shape)


def _failed(call: _Call, message: str) -> int | None:
    """Return an XLA error object with this message."""
    failure = _Failure(c.sizeof(_Failure), None, message.encode(), INTERNAL_ERROR)
    return call.api.contents.fail(c.byref(failure))
