"""Versions of dagpost and of the libraries it computes with."""

from __future__ import annotations

from importlib import import_module, metadata

PACKAGE = __name__.split(".")[0]


def versions_of(*libraries: str) -> dict[str, str]:
    """By name, dagpost first.

    >>> list(versions_of("numpy"))
    ['dagpost', 'numpy']
    """
    return {PACKAGE: import_module(PACKAGE).__version__, **{name: metadata.version(name) for name in libraries}}
