"""What a result depends on: settings described in JSON values, versions, memory; and a cache for functions of them."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import os
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from importlib import import_module, metadata
from typing import Any, TypeVar

import numpy as np

Result = TypeVar("Result")


def cached_by_value(function: Callable[..., Result]) -> Callable[..., Result]:
    """Return the function with an LRU cache; calls with unhashable arguments (settings with arrays) bypass it."""
    cached = lru_cache(maxsize=16)(function)

    @wraps(function)
    def call(*arguments):
        try:
            return cached(*arguments)
        except TypeError as error:
            if "unhashable" not in str(error):
                raise
            return function(*arguments)

    return call


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_memory() -> float:
    """Return the GiB that can be allocated without swapping; 4 where the system does not report it."""
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return sizes["MemAvailable"] / 2**20
    except (OSError, KeyError, ValueError, IndexError):
        return 4.0


PACKAGE = __name__.split(".")[0]


def versions_of(*libraries: str) -> dict[str, str]:
    """Return the versions of dagpost and of these libraries, by name.

    >>> list(versions_of("numpy"))
    ['dagpost', 'numpy']
    """
    return {PACKAGE: import_module(PACKAGE).__version__, **{name: metadata.version(name) for name in libraries}}


LIBRARIES = ("numpy", "jax", "jaxlib", "numba", "optax")


def describe(thing: Any) -> Any:
    """Return a description in JSON values that is the same in every process.

    Parameters
    ----------
    thing
        Any value: number, array, dataclass, function, model, …

    Returns
    -------
    Any
        JSON values; arrays and user code are represented by digests.

    Examples
    --------
    >>> describe(np.zeros((2, 3)))["shape"]
    [2, 3]
    """
    if thing is None or isinstance(thing, bool | int | str):
        return thing
    if isinstance(thing, float | np.floating):
        return repr(float(thing))  # every digit, and NaN equals itself
    if isinstance(thing, np.integer | np.bool_):
        return thing.item()
    if isinstance(thing, Mapping):
        return {str(name): describe(value) for name, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [describe(value) for value in thing]
    if hasattr(thing, "__array__"):
        array = np.ascontiguousarray(thing)
        return {"type": str(array.dtype), "shape": list(array.shape), "content": _digest(array.tobytes())}
    if callable(thing) and hasattr(thing, "__qualname__"):
        return {"function": f"{thing.__module__}.{thing.__qualname__}", **_source(thing)}
    kind = type(thing)
    if dataclasses.is_dataclass(thing):
        inside = {f.name: getattr(thing, f.name) for f in dataclasses.fields(thing)}
    elif hasattr(thing, "__dict__"):
        inside = {name: value for name, value in vars(thing).items() if not name.startswith("_")}
    else:
        inside = {"text": re.sub(r" at 0x[0-9a-f]+", "", repr(thing))}
    return {"kind": f"{kind.__module__}.{kind.__qualname__}", **describe(inside), **_source(kind)}


def versions() -> dict[str, str]:
    """Return the versions, device and precision that a result depends on bit for bit.

    Returns
    -------
    dict
        Text by name of library, and by "device" and "precision".
    """
    import jax

    return {
        **versions_of(*LIBRARIES),
        "device": jax.default_backend(),
        "precision": "float64" if jax.config.read("jax_enable_x64") else "float32",
    }


def differences(then: Any, now: Any, where: str = "") -> Iterator[str]:
    """Yield each place where two descriptions differ, with both values."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name in {**then, **now}:
            yield from differences(then.get(name), now.get(name), f"{where}.{name}" if where else name)
    elif then != now:
        yield f"{where} was {_short(then)}, is {_short(now)}"


def _short(value: Any) -> str:
    """Return the value as text of at most 60 characters."""
    return "not there" if value is None else textwrap.shorten(str(value), 60, placeholder="…")


def _digest(content: bytes) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 digest."""
    return hashlib.sha256(content).hexdigest()[:16]


def _source(thing: Any) -> dict[str, str]:
    """Return a digest of source code outside this library: an edited user-defined model is another model."""
    if thing.__module__.split(".")[0] in (PACKAGE, "builtins", *LIBRARIES):
        return {}
    try:
        return {"source": _digest(inspect.getsource(thing).encode())}
    except (OSError, TypeError):
        return {}
