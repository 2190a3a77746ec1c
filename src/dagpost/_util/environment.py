"""Facts about this machine and installation: available memory and library versions; a cache of compiled functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from importlib import import_module, metadata
from typing import TypeVar

Result = TypeVar("Result")


def cached_by_value(function: Callable[..., Result]) -> Callable[..., Result]:
    """Remember the last results; arguments that cannot be hashed (settings with arrays) are computed anew."""
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
    """GiB that can be taken without swapping; 4 where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return sizes["MemAvailable"] / 2**20
    except (OSError, KeyError, ValueError, IndexError):
        return 4.0


PACKAGE = __name__.split(".")[0]


def versions_of(*libraries: str) -> dict[str, str]:
    """By name, dagpost first.

    >>> list(versions_of("numpy"))
    ['dagpost', 'numpy']
    """
    return {PACKAGE: import_module(PACKAGE).__version__, **{name: metadata.version(name) for name in libraries}}
