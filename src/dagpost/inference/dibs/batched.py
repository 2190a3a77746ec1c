"""DiBS on many data sets of one shape, batched: a single run does not fill a GPU."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np

from dagpost._util.numerics import jitted, key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.data.checks import check_same_shape, member, stack_trees
from dagpost.errors import AllCyclic, InputError, RunError
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.particles import to_posterior
from dagpost.inference.dibs.settings import Settings
from dagpost.inference.dibs.svgd import ParticleState, Snapshot, initial_state, snapshot, step
from dagpost.inference.dibs.target import Target
from dagpost.models import Model
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior

Outcome = Posterior | InputError | RunError


def infer_batched(
    data: Sequence[Dataset],
    model: Model,
    prior: GraphPrior,
    settings: Settings,
    *,
    seeds: Sequence[int],
    particles: int = 30,
    method: str = "dibs",
    callback: Callable[[int, Snapshot], None] | None = None,
    watched: Collection[int] = (),
    progress: bool | None = None,
) -> list[Outcome]:
    """Run `infer` on many data sets at once; results agree with separate runs up to rounding.

    Parameters
    ----------
    data
        Data sets with the same number of rows and columns.
    model, prior, settings
        As for `infer`; the data sets share `settings.memory_limit`.
    seeds
        One seed per data set.
    particles
        Number of SVGD particles per data set.
    method
        Name of the method, for the progress bar and `Posterior.info`.
    callback
        Called as `callback(number, snapshot)` for every data set after each of the `watched` steps.
    watched
        Steps after which `callback` is called.
    progress
        Whether to show progress; None: on a terminal only.

    Returns
    -------
    list
        For each data set a Posterior, or the error that `infer` would raise.
    """
    check_same_shape(data, seeds)
    if settings.devices > 1:
        raise InputError("many data sets at once run on one device: leave `devices` out")
    shared = replace(settings, memory_limit=settings.memory_limit / len(data))
    prepared = [prepare(model, prior, shared, one, particles) for one in data]
    target = prepared[0].target._replace(on_host=False)  # nothing leaves the device
    keys = [jax.random.split(key_from_seed(seed)) for seed in seeds]
    states = stack_trees([initial_state(target, start, particles, one.nodes) for (start, _), one in zip(keys, data)])
    gradient_stats = stack_trees([one.gradient_stats for one in prepared])
    part = max(1, settings.steps // 20)
    done = 0
    with progress_bar(f"{method}, {len(data)} data sets", settings.steps, progress) as advance:
        for stop in sorted({*range(part, settings.steps, part), *watched, settings.steps}):
            states = jax.block_until_ready(_run_steps_batched(target, states, gradient_stats, stop - done))
            advance(stop - done)
            done = stop
            if callback is not None and done in watched:
                for number in range(len(data)):
                    callback(number, snapshot(target, member(states, number)))
    return [
        _outcome(target, member(states, number), one, prepared[number].stats, keys[number][1], method)
        for number, one in enumerate(data)
    ]


@partial(jitted, static_argnums=0)
def _run_steps_batched(target: Target, states: ParticleState, stats: Any, count: Any) -> ParticleState:
    """Return the states of all data sets after `count` steps."""
    several = lambda state, stats: jax.lax.fori_loop(0, count, lambda _, s: step(target, s, stats), state)  # noqa: E731
    return jax.vmap(several)(states, stats)


def _outcome(target: Target, state: ParticleState, data: Dataset, stats: Any, key: Any, method: str) -> Outcome:
    """Return the posterior of one data set, or the error that its run ends with."""
    last = snapshot(target, state)
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves((last.z, last.theta))):
        return RunError(f"a particle became infinite within {last.step} steps")
    try:
        return to_posterior(target, last, data, stats, key, method, progress=False)
    except AllCyclic as error:
        return error
