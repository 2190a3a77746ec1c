"""Provenance of results: versions, hardware and times, without names of machines or people."""

from __future__ import annotations

import os
import platform
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from dagpost.studies.task import Task

ENVIRONMENT = ("versions", "hardware")
"""Keys of a result that hold what it was computed with."""


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Return the versions of dagpost, Python and the libraries that results depend on."""
    from dagpost.inference.checkpoints import versions as library_versions

    return {**library_versions(), "python": platform.python_version()}


@lru_cache(maxsize=1)
def hardware() -> dict[str, Any]:
    """Return the processor, the cores available to this process, the memory, and the device that JAX computes on."""
    import jax

    device = jax.devices()[0]
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": _memory(),
        "device": device.device_kind if device.platform != "cpu" else "cpu",
    }


def cores() -> int:
    """Return the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    """Return the model name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int | None:
    """Return the memory of the machine in GiB; None where it is unknown."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError, AttributeError):
        return None


def command(study: str, seeds: int, smoke: bool, include: Iterable[str] = ()) -> str:
    """Return the command that reproduces the table; output folder and number of workers do not affect it."""
    words = ["dagpost", "study", study, "--seeds", str(seeds)]
    words += ["--smoke"] * smoke + [word for name in include for word in ("--include", name)]
    return shlex.join(words)


def aggregate(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the versions and the hardware that occur, with their numbers of tasks, and the mean time by method."""
    seconds: dict[str, list[float]] = {}
    for result in results:
        seconds.setdefault(result["task"]["run"].get("method", ""), []).append(result["seconds"])
    return {
        **{name: [{**record, "tasks": n} for record, n in _count_records(results, name)] for name in ENVIRONMENT},
        "hours_of_computing": round(sum(map(sum, seconds.values())) / 3600, 2),
        "mean_seconds_of_a_task": {name: round(sum(s) / len(s), 1) for name, s in sorted(seconds.items())},
    }


def task_records(results: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the seconds of each task, and the indices of its versions and hardware in the lists of `aggregate`."""
    kinds = {name: [record for record, _ in _count_records(results, name)] for name in ENVIRONMENT}
    for result in results:
        indices = {name: records.index(result[name]) for name, records in kinds.items()}
        yield {"task": Task(**result["task"]).key, "seconds": result["seconds"], **indices}


def _count_records(results: Sequence[Mapping[str, Any]], name: str) -> list[tuple[dict[str, Any], int]]:
    """Return each distinct record of this name, the most frequent first, with its number of occurrences."""
    records = {repr(result[name]): result[name] for result in results}
    return [(records[r], n) for r, n in Counter(repr(result[name]) for result in results).most_common()]
