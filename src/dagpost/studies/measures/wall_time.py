"""How long inference takes, on whatever JAX computes on; times of compiling apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import jax

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.inference.fit import fit
from dagpost.studies.measures.fitting import model_of
from dagpost.studies.measures.synthetic import simulated
from dagpost.studies.task import Task

PUBLISHED_STEPS = 3000
LONG = 600.0
"""Seconds from which on compiling, which can take one minute, is a small part of a run: it is not repeated without."""


def wall_time(task: Task) -> Iterator[dict[str, Any]]:
    """Minutes of one run, and seconds that compiling took on top of it."""
    run = task.run
    if jax.default_backend() != run["device"]:
        raise InputError(
            f"this task is for a {run['device'].upper()}, JAX computes on a {jax.default_backend().upper()}: "
            f"use --accelerator {run['device']} on a machine that has one"
        )
    data = simulated(task).train
    yield _scaled(task, data, run["timed_steps"]) if "timed_steps" in run else _whole(task, data)


def _timed(task: Task, data: Dataset, **options: Any) -> float:
    run = task.run
    began = time.perf_counter()
    fit(
        data, model_of(run), task.data["graphs"], run["method"], particles=run["particles"], seed=task.seed,
        progress=False, **run.get("options", {}), **options,
    )  # fmt: skip
    return time.perf_counter() - began


def _scaled(task: Task, data: Dataset, steps: int) -> dict[str, Any]:
    """3,000 steps, by the time of some within one run: every step does the same work. Particles are not DAGs after so
    few steps, so cycles are broken up instead of dropped."""
    seen: list[tuple[int, float]] = []
    every = max(1, steps // 10)
    began = time.perf_counter()
    _timed(
        task, data, steps=every + steps, every=every, cyclic="repair",
        callback=lambda snapshot: seen.append((int(snapshot.step), time.perf_counter())),
    )  # fmt: skip
    (first, compiled), (last, ended) = seen[0], seen[-1]  # the first part compiles
    step = (ended - compiled) / (last - first)
    return {
        "minutes": PUBLISHED_STEPS * step / 60, "compiling": compiled - began - first * step, "scaled": True,
    }  # fmt: skip


def _whole(task: Task, data: Dataset) -> dict[str, Any]:
    first = _timed(task, data)
    if first > LONG:
        return {"minutes": first / 60, "compiling": None, "scaled": False}
    again = _timed(task, data)
    return {"minutes": again / 60, "compiling": first - again, "scaled": False}
