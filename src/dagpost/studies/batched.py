"""Executor that batches tasks of DiBS, dibs-lib, M-MC³ and G-MC³ that differ in data or restart alone, for a GPU."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax

from dagpost.data import Dataset
from dagpost.errors import AllCyclic, InputError, RunError
from dagpost.inference.dibs import Snapshot, default_settings, infer_batched, paper_settings
from dagpost.inference.dibs.batched import Outcome
from dagpost.inference.mcmc.joint import joint_mc3_batched
from dagpost.inference.mcmc.mc3 import Thinning
from dagpost.posterior import Posterior
from dagpost.priors import as_prior
from dagpost.studies.dibs_lib import fit_dibs_lib_batched
from dagpost.studies.experiments import MEASURES
from dagpost.studies.experiments.fitting import Fitted, label_posteriors, model_of, options_of
from dagpost.studies.runner import Executor, Results, perform
from dagpost.studies.task import Task, canonical_json

PRESETS = {"dibs-paper": paper_settings, "dibs": default_settings}
JOINT: dict[str, Literal["m", "g"]] = {"m-mc3": "m", "g-mc3": "g"}
SHARE = 0.4
"""Share of the device's memory for the intermediate values of a step."""


class FitRequest(NamedTuple):
    """Arguments with which the measure of a task calls its `Fits` function."""

    data: Dataset
    run: Mapping[str, Any]
    prior: str
    seed: int


def batched(size: int) -> Executor:
    """Return an executor that runs tasks in batches, in this process; those that cannot be batched run one by one.

    Parameters
    ----------
    size
        Maximum number of tasks in a batch.
    """

    def run(tasks: Sequence[Task]) -> Results:
        for batch in batches(tasks, size):
            yield from _perform_batch(batch)

    return run


def batches(tasks: Sequence[Task], size: int) -> Iterator[list[Task]]:
    """Yield batches of at most `size` tasks that can run as one."""
    groups: dict[str, list[Task]] = {}
    for task in tasks:
        groups.setdefault(_batch_key(task), []).append(task)
    for group in groups.values():
        for first in range(0, len(group), size):
            yield group[first : first + size]


def _batch_key(task: Task) -> str:
    """Return a text that is equal for tasks that can run as one."""
    if task.run["method"] not in (*PRESETS, *JOINT, "dibs-lib") or task.kind == "wall-time":
        return task.identity
    data = {name: value for name, value in task.data.items() if name != "set"}
    run = {name: value for name, value in task.run.items() if name != "restart"}
    return canonical_json([task.kind, data, run])


def _perform_batch(tasks: Sequence[Task]) -> Results:
    """Yield each task of a batch with its result; the time of the joint run is divided equally among them."""
    if len(tasks) == 1:
        yield tasks[0], perform(tasks[0])
        return
    began = time.perf_counter()
    fits = list(_fit_batch([_fit_request(task) for task in tasks]))
    share = (time.perf_counter() - began) / len(tasks)
    for task, fitted in zip(tasks, fits):
        result = perform(task, lambda *_, fitted=fitted: fitted)
        yield task, result | ({"seconds": round(result["seconds"] + share, 3)} if "seconds" in result else {})


def _fit_request(task: Task) -> FitRequest:
    """Return the arguments with which the measure of a task would call `fit_run`."""
    requests: list[FitRequest] = []

    def record(*arguments: Any) -> Iterator[Fitted]:
        requests.append(FitRequest(*arguments))
        return iter(())

    list(MEASURES[task.kind](task, record))
    return requests[0]


def _fit_batch(requests: Sequence[FitRequest]) -> Iterator[Iterator[Fitted]]:
    """Yield the posteriors of each request, as `fit_run` would; consuming those of a failed one raises its error."""
    seen: list[list[Snapshot]] = [[] for _ in requests]
    method = requests[0].run["method"]
    if method in JOINT:
        outcomes = _run_joint_mc3(requests)
    elif method == "dibs-lib":
        outcomes = _run_dibs_lib(requests)
    else:
        outcomes = _run_dibs(requests, seen)
    for one, outcome, snapshots in zip(requests, outcomes, seen):
        if isinstance(outcome, Posterior | AllCyclic):
            yield label_posteriors(one.data, one.run, one.prior, outcome, snapshots)
        else:
            yield _raise(outcome)


def _run_dibs(requests: Sequence[FitRequest], seen: list[list[Snapshot]]) -> Sequence[Outcome]:
    """Return the outcomes of DiBS; snapshots of the steps that the tasks record are appended to `seen`."""
    data, run, prior, _ = requests[0]
    model, options = model_of(run), options_of(run)
    particles = options.pop("particles")
    options.setdefault("memory_limit", _memory())
    settings = PRESETS[run["method"]](model, data.nodes, data.observations, **options)
    watch: dict[str, Any] = {}
    if "record" in run:
        watch = {"callback": lambda number, snapshot: seen[number].append(snapshot), "watched": run["record"]}
    return infer_batched(
        [one.data for one in requests], model, as_prior(prior), settings, seeds=[one.seed for one in requests],
        particles=particles, method=run["method"], progress=False, **watch,
    )  # fmt: skip


def _run_dibs_lib(requests: Sequence[FitRequest]) -> Sequence[Outcome]:
    """Return the outcomes of dibs-lib."""
    _, run, prior, _ = requests[0]
    return fit_dibs_lib_batched(
        [one.data for one in requests], model_of(run), prior, seeds=[one.seed for one in requests], **options_of(run)
    )


def _run_joint_mc3(requests: Sequence[FitRequest]) -> Sequence[Outcome]:
    """Return the outcomes of M-MC³ or G-MC³."""
    _, run, prior, _ = requests[0]
    options = options_of(run)
    particles = options.pop("particles")
    return joint_mc3_batched(
        [one.data for one in requests], model_of(run), as_prior(prior), seeds=[one.seed for one in requests],
        variant=JOINT[run["method"]], particles=particles, thinning=Thinning(**options), progress=False,
    )  # fmt: skip


def _raise(error: InputError | RunError) -> Iterator[Fitted]:
    """Return an iterator that raises the error when it is consumed."""
    raise error
    yield


def _memory() -> float:
    """Return the GiB for intermediate values; 2 where the device does not report its memory."""
    statistics = jax.devices()[0].memory_stats() or {}
    return max(2.0, SHARE * statistics.get("bytes_limit", 0) / 2**30)
