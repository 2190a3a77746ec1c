"""One task from beginning to end, wherever it runs."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Any

from dagpost.errors import InputError, RunError, nearest
from dagpost.studies.provenance import hardware, versions
from dagpost.studies.task import Task


def perform(task: Task) -> dict[str, Any]:
    """The measured rows, how long it took, and with what; or what went wrong, in one sentence.

    Data that cannot be used and runs that cannot go on are told, not raised: the other tasks of a study go on. Tells
    apart what a method refuses from a fault in the program, which is raised.
    """
    from dagpost.studies.measures import MEASURES

    if task.kind not in MEASURES:
        raise InputError(f"unknown kind of task {task.kind!r}: {nearest(task.kind, MEASURES)}")
    began = time.perf_counter()
    try:
        rows = list(MEASURES[task.kind](task))
    except (InputError, RunError, MemoryError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    return outcome(rows, time.perf_counter() - began)


def outcome(rows: Iterable[dict[str, Any]], seconds: float) -> dict[str, Any]:
    """Rows as JSON holds them, with how long they took and what computed them."""
    plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
    return {"rows": plain, "seconds": round(seconds, 3), "versions": versions(), "hardware": hardware()}


def _plain(value: Any) -> Any:
    """What JSON holds; a number that is not finite is not known."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
