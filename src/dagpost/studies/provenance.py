"""What a result was computed with: versions and hardware, without names of machines or people."""

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

WITH = ("versions", "hardware")
"""What a result was computed with."""


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """Of dagpost, Python and the libraries that results depend on."""
    from dagpost.inference.checkpoints import versions as of_libraries

    return {**of_libraries(), "python": platform.python_version()}


@lru_cache(maxsize=1)
def hardware() -> dict[str, Any]:
    """Processor, cores that this process may use, memory, and the device that JAX computes on."""
    import jax

    device = jax.devices()[0]
    return {
        "processor": _processor(),
        "cores": cores(),
        "memory_gib": _memory(),
        "device": device.device_kind if device.platform != "cpu" else "cpu",
    }


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (ValueError, OSError, AttributeError):
        return None


def command(study: str, seeds: int, smoke: bool, include: Iterable[str] = ()) -> str:
    """What to type to get the same table; where results go and how many work on it make no difference to it."""
    words = ["dagpost", "study", study, "--seeds", str(seeds)]
    words += ["--smoke"] * smoke + [word for name in include for word in ("--include", name)]
    return shlex.join(words)


def gathered(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of many results: the versions and the hardware that occur, with the number of tasks, and the time by method."""
    seconds: dict[str, list[float]] = {}
    for result in results:
        seconds.setdefault(result["task"]["run"].get("method", ""), []).append(result["seconds"])
    return {
        **{name: [{**record, "tasks": n} for record, n in _counted(results, name)] for name in WITH},
        "hours_of_computing": round(sum(map(sum, seconds.values())) / 3600, 2),
        "mean_seconds_of_a_task": {name: round(sum(s) / len(s), 1) for name, s in sorted(seconds.items())},
    }


def of_each(results: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The seconds of every task, and the place of its versions and its hardware in what is gathered."""
    kinds = {name: [record for record, _ in _counted(results, name)] for name in WITH}
    for result in results:
        places = {name: records.index(result[name]) for name, records in kinds.items()}
        yield {"task": Task(**result["task"]).key, "seconds": result["seconds"], **places}


def _counted(results: Sequence[Mapping[str, Any]], name: str) -> list[tuple[dict[str, Any], int]]:
    """Each different record of this name, the most frequent first, and how often it occurs."""
    told = {repr(result[name]): result[name] for result in results}
    return [(told[r], n) for r, n in Counter(repr(result[name]) for result in results).most_common()]
