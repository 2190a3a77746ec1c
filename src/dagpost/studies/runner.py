"""The runner: does what is not done yet, and says what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dagpost._util.progress import progress_bar
from dagpost.errors import InputError, nearest
from dagpost.studies.executors import Executor, here
from dagpost.studies.store import Store
from dagpost.studies.task import Task


@dataclass(frozen=True)
class Failure:
    task: Task
    why: str


def run(
    tasks: Sequence[Task], store: Store, execute: Executor = here, title: str = "tasks", progress: bool | None = None
) -> list[Failure]:
    """Perform the tasks that have no result yet; each result is on disk before the next is waited for."""
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


def chosen(tasks: Sequence[Task], only: Sequence[str]) -> list[Task]:
    """Those that have the values asked for: "method=auto,mc3" is either, several such words must all hold."""
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
        wanted = values.split(",")
        for value in wanted:
            if value not in known[name]:
                raise InputError(f"--only {text}: no task has {name}={value}: {nearest(value, sorted(known[name]))}")
        tasks = [task for task in tasks if str(task.labels.get(name)) in wanted]
    return list(tasks)


def numbered(tasks: Sequence[Task], places: str) -> list[Task]:
    """By index: "7", "0-9", "3,5,8-11".

    >>> numbered("abcdef", "0,2-3")
    ['a', 'c', 'd']
    """
    out = []
    for part in places.split(","):
        first, dash, last = part.strip().partition("-")
        try:
            span = range(int(first), int(last if dash else first) + 1)
        except ValueError:
            raise InputError(f"--task {places}: give an index, or a range such as 0-9") from None
        if not span or span[0] < 0 or span[-1] >= len(tasks):
            raise InputError(f"--task {places}: there are {len(tasks)} tasks, 0 to {len(tasks) - 1}; --list shows them")
        out += [tasks[k] for k in span]
    return out
