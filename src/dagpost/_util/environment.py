"""The machine and the installation: available memory, library versions, and a cache for functions of settings."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module, metadata
from typing import TypeVar

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
