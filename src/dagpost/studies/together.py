"""Tasks of DiBS, M-MC³ and G-MC³ that differ in data or restart alone, run as one: a GPU has room for many."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax

from dagpost.data import Dataset
from dagpost.errors import AllCyclic, InputError, RunError
from dagpost.inference.dibs import Snapshot, default_settings, infer_batched, paper_settings
from dagpost.inference.dibs.together import Outcome
from dagpost.inference.mcmc.joint import joint_mc3_batched
from dagpost.inference.mcmc.mc3 import Thinning
from dagpost.posterior import Posterior
from dagpost.priors import as_prior
from dagpost.studies.experiments import MEASURES
from dagpost.studies.experiments.fitting import Fitted, model_of, options_of, told
from dagpost.studies.runner import Executor, Results, perform
from dagpost.studies.task import Task, words

PRESETS = {"dibs-paper": paper_settings, "dibs": default_settings}
JOINT: dict[str, Literal["m", "g"]] = {"m-mc3": "m", "g-mc3": "g"}
SHARE = 0.4
"""Of the device's memory for the intermediate values of a step."""


class Asked(NamedTuple):
    """What the measure of a task wants fitted."""

    data: Dataset
    run: Mapping[str, Any]
    prior: str
    seed: int


def together(most: int) -> Executor:
    """At most that many tasks at once, in this process; those that cannot be joined one by one."""

    def run(tasks: Sequence[Task]) -> Results:
        for group in groups(tasks, most):
            yield from _performed(group)

    return run


def groups(tasks: Sequence[Task], most: int) -> Iterator[list[Task]]:
    """Those that can be run as one, at most so many each."""
    alike: dict[str, list[Task]] = {}
    for task in tasks:
        alike.setdefault(_alike(task), []).append(task)
    for group in alike.values():
        for first in range(0, len(group), most):
            yield group[first : first + most]


def _alike(task: Task) -> str:
    """Equal for tasks that can be run as one."""
    if task.run["method"] not in (*PRESETS, *JOINT) or task.kind == "wall-time":
        return task.identity
    data = {name: value for name, value in task.data.items() if name != "set"}
    run = {name: value for name, value in task.run.items() if name != "restart"}
    return words([task.kind, data, run])


def _performed(tasks: Sequence[Task]) -> Results:
    if len(tasks) == 1:
        yield tasks[0], perform(tasks[0])
        return
    began = time.perf_counter()
    fitted = list(_fitted([_asked(task) for task in tasks]))
    share = (time.perf_counter() - began) / len(tasks)
    for task, found in zip(tasks, fitted):
        result = perform(task, lambda *_, found=found: found)
        yield task, result | ({"seconds": round(result["seconds"] + share, 3)} if "seconds" in result else {})


def _asked(task: Task) -> Asked:
    asked: list[Asked] = []

    def listening(*arguments: Any) -> Iterator[Fitted]:
        asked.append(Asked(*arguments))
        return iter(())

    list(MEASURES[task.kind](task, listening))
    return asked[0]


def _fitted(asked: Sequence[Asked]) -> Iterator[Iterator[Fitted]]:
    """The posteriors of each, as `fitted` would give them."""
    seen: list[list[Snapshot]] = [[] for _ in asked]
    outcomes = _sampled(asked) if asked[0].run["method"] in JOINT else _transported(asked, seen)
    for one, outcome, snapshots in zip(asked, outcomes, seen):
        if isinstance(outcome, Posterior | AllCyclic):
            yield told(one.data, one.run, one.prior, outcome, snapshots)
        else:
            yield _raised(outcome)


def _transported(asked: Sequence[Asked], seen: list[list[Snapshot]]) -> Sequence[Outcome]:
    """By DiBS; `seen` takes the snapshots that are asked for."""
    data, run, prior, _ = asked[0]
    model, options = model_of(run), options_of(run)
    particles = options.pop("particles")
    options.setdefault("memory_limit", _memory())
    settings = PRESETS[run["method"]](model, data.nodes, data.observations, **options)
    watch: dict[str, Any] = {}
    if "record" in run:
        watch = {"callback": lambda number, snapshot: seen[number].append(snapshot), "watched": run["record"]}
    return infer_batched(
        [one.data for one in asked], model, as_prior(prior), settings, seeds=[one.seed for one in asked],
        particles=particles, method=run["method"], progress=False, **watch,
    )  # fmt: skip


def _sampled(asked: Sequence[Asked]) -> Sequence[Outcome]:
    """By M-MC³ or G-MC³."""
    _, run, prior, _ = asked[0]
    options = options_of(run)
    particles = options.pop("particles")
    return joint_mc3_batched(
        [one.data for one in asked], model_of(run), as_prior(prior), seeds=[one.seed for one in asked],
        variant=JOINT[run["method"]], particles=particles, thinning=Thinning(**options), progress=False,
    )  # fmt: skip


def _raised(error: InputError | RunError) -> Iterator[Fitted]:
    raise error
    yield


def _memory() -> float:
    """GiB."""
    known = jax.devices()[0].memory_stats() or {}
    return max(2.0, SHARE * known.get("bytes_limit", 0) / 2**30)
