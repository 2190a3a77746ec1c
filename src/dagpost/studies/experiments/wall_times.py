"""Wall times: the table of the paper's appendix E, on a CPU and on a GPU.

Times are of inference without compiling, on the device that JAX uses.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jax

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.inference.fit import fit
from dagpost.studies.experiments.fitting import MOVES_PER_NODE, model_of
from dagpost.studies.experiments.synthetic import simulation_of
from dagpost.studies.study import Layout, Scale, Study
from dagpost.studies.task import Task

TIMED_STEPS = {"cpu": 10, "gpu": 300}
"""Measured steps of the published method, from which the time of its 3,000 is scaled."""
METHODS = {
    "cpu": {
        "bge": ("dibs-paper", "dibs", "auto"),
        "linear": ("dibs-paper", "dibs", "auto"),
        "mlp": ("dibs-paper", "dibs"),
    },
    "gpu": {model: ("dibs-paper", "dibs") for model in ("bge", "linear", "mlp")},
}
"""Methods by device and model; the chains of `auto` run on the CPU wherever DiBS runs."""


def tasks_for(device: str, scale: Scale) -> list[Task]:
    """Return the tasks of a device: all sizes, models, numbers of particles and methods, from each restart."""
    out = []
    for restart in scale.replicates:
        for nodes in (3, 4) if scale.smoke else (10, 20, 50):
            for model, methods in METHODS[device].items():
                for particles in (2, 3) if scale.smoke else (10, 30):
                    data = {
                        "generator": "mlp" if model == "mlp" else "linear", "graphs": "erdos-renyi", "nodes": nodes,
                        "observations": 20 if scale.smoke else 100, "interventional_sets": 0, "set": restart,
                    }  # fmt: skip
                    for method in methods:
                        run: dict[str, Any] = {"model": model, "method": method, "particles": particles}
                        run |= {"device": device}
                        if method == "dibs-paper":
                            run["timed_steps"] = 2 if scale.smoke else TIMED_STEPS[device]
                        elif scale.smoke:
                            run["options"] = {"steps": 5} | ({"max_moves": 10_000} if method == "auto" else {})
                        elif method == "auto":
                            run["options"] = {"max_moves": MOVES_PER_NODE * nodes}
                        out.append(Task("wall-time", data, run))
    return out


def make_study(device: str) -> Study:
    """Return the study of a device, "cpu" or "gpu"."""
    return Study(
        f"wall-times-{device}",
        f"Wall times on a {device.upper()}",
        "appendix E, table of wall times",
        "Minutes of one run without compiling. Those of `dibs-paper` are scaled to 3,000 steps from "
        f"{TIMED_STEPS[device]}; every step does the same work. The paper's were taken on "
        + (
            "a whole Xeon Gold 6150 node."
            if device == "cpu"
            else "one GeForce RTX 2080 Ti; a dash exceeded its memory."
        ),
        lambda scale: tasks_for(device, scale),
        Layout(
            rows=("model", "method", "particles"),
            metrics={"minutes": "minutes"},
            spread="nodes",
            figure="lines",
            panels="model",
            x="nodes",
            logarithmic=True,
            digits={"minutes": 3},
        ),
        published=True,
        alone=True,
        seeds=10,
    )


WALL_TIMES = (make_study("cpu"), make_study("gpu"))


PUBLISHED_STEPS = 3000
LONG = 600.0
"""Seconds from which on a run is not repeated without compiling, which takes about a minute and hardly matters then."""


def wall_time(task: Task) -> Iterator[dict[str, Any]]:
    """Yield one row: minutes of a run without compiling, and the seconds of compiling."""
    run = task.run
    if jax.default_backend() != run["device"]:
        raise InputError(
            f"this task is for a {run['device'].upper()}, JAX computes on a {jax.default_backend().upper()}: "
            f"use --accelerator {run['device']} on a machine that has one"
        )
    data = simulation_of(task).train
    yield _scaled(task, data, run["timed_steps"]) if "timed_steps" in run else _whole(task, data)


def _time_fit(task: Task, data: Dataset, **options: Any) -> float:
    """Return the seconds of one call of `fit`."""
    run = task.run
    began = time.perf_counter()
    fit(
        data, model_of(run), task.data["graphs"], run["method"], particles=run["particles"], seed=task.seed,
        time_limit=None, progress=False, **run.get("options", {}), **options,
    )  # fmt: skip
    return time.perf_counter() - began


def _scaled(task: Task, data: Dataset, steps: int) -> dict[str, Any]:
    """Return the row of a run of 3,000 steps, scaled from fewer: every step does the same work.

    After so few steps particles are not DAGs, so cyclic ones are repaired instead of dropped.
    """
    seen: list[tuple[int, float]] = []
    every = max(1, steps // 10)
    began = time.perf_counter()
    _time_fit(
        task, data, steps=every + steps, every=every, cyclic="repair",
        callback=lambda snapshot: seen.append((int(snapshot.step), time.perf_counter())),
    )  # fmt: skip
    (first, compiled), (last, ended) = seen[0], seen[-1]  # the first part compiles
    step = (ended - compiled) / (last - first)
    return {
        "minutes": PUBLISHED_STEPS * step / 60, "compiling": compiled - began - first * step, "scaled": True,
    }  # fmt: skip


def _whole(task: Task, data: Dataset) -> dict[str, Any]:
    """Return the row of a whole run; a second one separates compiling from computing."""
    first = _time_fit(task, data)
    if first > LONG:
        return {"minutes": first / 60, "compiling": None, "scaled": False}
    second = _time_fit(task, data)
    return {"minutes": second / 60, "compiling": first - second, "scaled": False}
