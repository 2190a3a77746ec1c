"""Tasks of the published method that differ in their data set alone, many at once: for a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from dagpost.dibs import paper_settings
from dagpost.dibs.many import infer_many
from dagpost.errors import InputError, RunError
from dagpost.priors import as_prior
from dagpost.studies.executors import Executor, Results
from dagpost.studies.measures.fitting import model_of, options_of, weightings
from dagpost.studies.measures.synthetic import scores, simulated
from dagpost.studies.perform import outcome, perform
from dagpost.studies.task import Task


def together(size: int) -> Executor:
    """Up to `size` data sets in one computation, in this process; all other tasks one by one."""

    def run(tasks: Sequence[Task]) -> Results:
        for group in grouped(tasks, size):
            if len(group) == 1:
                yield group[0], perform(group[0])
            else:
                yield from zip(group, performed(group))

    return run


def grouped(tasks: Sequence[Task], size: int) -> list[list[Task]]:
    """Tasks that can be computed at once: simulated data by the published method, alike but for the data set."""
    groups: dict[str, list[list[Task]]] = {}
    for task in tasks:
        alike = task.kind == "synthetic" and task.run["method"] == "dibs-paper"
        rest = {name: value for name, value in task.data.items() if name != "set"}
        places = groups.setdefault(Task(task.kind, rest, task.run).key if alike else task.key, [[]])
        if len(places[-1]) == (size if alike else 1):
            places.append([])
        places[-1].append(task)
    return [group for places in groups.values() for group in places]


def performed(tasks: Sequence[Task]) -> Iterator[dict[str, Any]]:
    """Results as `perform` gives them; each task is told its share of the time."""
    began = time.perf_counter()
    first, sims = tasks[0], [simulated(task) for task in tasks]
    model, options = model_of(first.run), options_of(first.run)
    particles = options.pop("particles", 30)
    try:
        settings = paper_settings(model, first.data["nodes"], first.data["observations"], **options)
        found = infer_many(
            [sim.train for sim in sims], model, as_prior(first.data["graphs"]), settings, particles=particles,
            seeds=[task.seed for task in tasks], method="dibs-paper", record=first.run.get("record", ()),
        )  # fmt: skip
    except (InputError, RunError, MemoryError) as error:
        yield from ({"failed": f"{type(error).__name__}: {error}"} for _ in tasks)
        return
    seconds = (time.perf_counter() - began) / len(tasks)
    for task, sim, one in zip(tasks, sims, found):
        posteriors = weightings(task.run, one.posterior, one.snapshots, sim.train, task.data["graphs"])
        rows = [{**f.columns, **scores(f.posterior, sim, f.columns["method"])} for f in posteriors]
        yield outcome(rows, seconds)
