"""Remembering results, and how much memory there is."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
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
