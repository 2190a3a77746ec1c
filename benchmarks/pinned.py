"""Runs side by side, each with one core to itself."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def _use_core(cores: Any) -> None:
    os.sched_setaffinity(0, {cores.get()})


def run_pinned(function: Callable[[Any], Any], arguments: Sequence[Any], jobs: int) -> Iterator[Any]:
    """Yield the results in the order in which they are ready; `function` has a name in its module.

    Processes are new ones (no fork of a process that has JAX in it) and compute on the CPU.
    """
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    context = multiprocessing.get_context("spawn")
    cores = context.Queue()
    for core in sorted(os.sched_getaffinity(0))[:jobs]:
        cores.put(core)
    with context.Pool(jobs, _use_core, (cores,)) as pool:
        yield from pool.imap_unordered(function, arguments)
