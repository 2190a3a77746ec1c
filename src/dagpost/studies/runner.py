"""Runner of tasks: performs those that are not finished, and reports the ones that failed.

An executor decides where tasks run: in this process, in processes of this machine, or on a Dask cluster
(`_util/workers.py`).
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from dagpost._util.progress import progress_bar
from dagpost._util.workers import DaskWorkers, LocalWorkers, Workers
from dagpost.errors import InputError, RunError, nearest
from dagpost.studies.task import Store, Task, hardware, versions


def perform(task: Task, *fits: Any) -> dict[str, Any]:
    """Run one task from beginning to end.

    Errors that a method raises on purpose are returned, so that the other tasks of a study continue; programming errors
    are raised.

    Parameters
    ----------
    task
        What to run.
    fits
        Replacement for the function that fits, where the posteriors exist already (`experiments.fitting.Fits`).

    Returns
    -------
    dict
        "rows", "seconds", "versions" and "hardware"; or "failed", a sentence that says why.
    """
    from dagpost.studies.experiments import MEASURES

    if task.kind not in MEASURES:
        raise InputError(f"unknown kind of task {task.kind!r}: {nearest(task.kind, MEASURES)}")
    began = time.perf_counter()
    try:
        rows = [{name: _plain(value) for name, value in row.items()} for row in MEASURES[task.kind](task, *fits)]
    except (InputError, RunError, MemoryError) as error:
        return {"failed": f"{type(error).__name__}: {error}"}
    seconds = round(time.perf_counter() - began, 3)
    return {"rows": rows, "seconds": seconds, "versions": versions(), "hardware": hardware()}


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; numbers that are not finite become None."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


Results = Iterator[tuple[Task, dict[str, Any]]]
Executor = Callable[[Sequence[Task]], Results]
"""Performs tasks and yields each with its result, in any order."""

ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def use_one_thread() -> None:
    """Limit this process and its child processes to one thread each; call it before JAX computes anything.

    Tasks run side by side, one per core, and the result of a task is the same wherever it runs.
    """
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {XLA_ONE_THREAD}".strip()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes may share one GPU


def serial(tasks: Sequence[Task]) -> Results:
    """Perform tasks one after the other in this process."""
    for task in tasks:
        yield task, perform(task)


def _elsewhere(workers: Workers, tasks: Sequence[Task]) -> Results:
    """Yield results of other processes as they become available; closing the iterator stops the work."""
    with closing(workers):
        for index, result in workers.results(perform, tasks):
            yield tasks[index], result


def processes(workers: int) -> Executor:
    """Return an executor that runs tasks in processes of this machine.

    Parameters
    ----------
    workers
        Number of processes; 1 means this process.
    """

    def run(tasks: Sequence[Task]) -> Results:
        if workers == 1 or len(tasks) == 1:
            return serial(tasks)
        return _elsewhere(LocalWorkers(min(workers, len(tasks))), tasks)

    return run


def cluster(address: str, patience: float = 10.0) -> Executor:
    """Return an executor that runs tasks on all workers of a Dask scheduler.

    Parameters
    ----------
    address
        Address of the scheduler; its workers need the same version of dagpost.
    patience
        Seconds to wait for the scheduler's answer.
    """

    def run(tasks: Sequence[Task]) -> Results:
        return _elsewhere(DaskWorkers(address, patience), tasks)

    return run


@dataclass(frozen=True)
class Failure:
    """A task that failed, and why."""

    task: Task
    why: str


def run(
    tasks: Sequence[Task], store: Store, execute: Executor = serial, title: str = "tasks", progress: bool | None = None
) -> list[Failure]:
    """Perform the tasks that have no result yet; each result is on disk before the next one is fetched.

    Parameters
    ----------
    tasks
        What to run.
    store
        Where results are and go.
    execute
        Executor.
    title, progress
        Title of the progress bar, and whether to show it; None for only on a terminal.

    Returns
    -------
    list of Failure
        The tasks that failed; they have no result and are run again next time.
    """
    done = store.finished(tasks)
    todo = [task for task in tasks if task.key not in done]
    failures = []
    with progress_bar(f"{title}, {len(todo)} of {len(tasks)} tasks to do", len(todo), progress) as advance:
        for task, result in execute(todo) if todo else ():
            if "failed" in result:
                failures.append(Failure(task, result["failed"]))
            else:
                store.put(task, result)
            advance(1)
    return failures


def select_tasks(tasks: Sequence[Task], only: Sequence[str]) -> list[Task]:
    """Return the tasks that have the requested values.

    Parameters
    ----------
    tasks
        Tasks to select from.
    only
        Conditions such as "method=auto,mc3", which allows either method; all conditions must hold.
    """
    known = {
        name: {str(task.labels[name]) for task in tasks if name in task.labels}
        for task in tasks
        for name in task.labels
    }
    for text in only:
        name, equals, values = text.partition("=")
        if not equals:
            raise InputError(f"--only {text}: write NAME=VALUE, for example method=auto")
        if name not in known:
            raise InputError(f"--only {text}: {nearest(name, known)}")
        allowed = values.split(",")
        for value in allowed:
            if value not in known[name]:
                raise InputError(f"--only {text}: no task has {name}={value}: {nearest(value, sorted(known[name]))}")
        tasks = [task for task in tasks if str(task.labels.get(name)) in allowed]
    return list(tasks)


def tasks_by_index(tasks: Sequence[Task], indices: str) -> list[Task]:
    """Return tasks by index: "7", "0-9", "3,5,8-11".

    >>> tasks_by_index("abcdef", "0,2-3")
    ['a', 'c', 'd']
    """
    out = []
    for part in indices.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            span = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise InputError(f"--task {indices}: give an index, or a range such as 0-9") from None
        if not span or span[0] < 0 or span[-1] >= len(tasks):
            raise InputError(f"--task {indices}: tasks have indices from 0 to {len(tasks) - 1}; --list shows them")
        out += [tasks[k] for k in span]
    return out
