"""DiBS on many data sets of one shape at once: a GPU that one small data set keeps half idle takes all of them along.

Each data set has its own particles, statistics and random numbers; what it gives is what it gives alone, up to the
rounding of sums in another order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from dagpost.data import Dataset
from dagpost.dibs.inference import prepare
from dagpost.dibs.particles import to_posterior
from dagpost.dibs.settings import Settings
from dagpost.dibs.svgd import Snapshot, State, initial_state, snapshot, step
from dagpost.dibs.target import Target
from dagpost.errors import InputError, RunError
from dagpost.models import Model
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior
from dagpost.randomness import key_from_seed


class Found(NamedTuple):
    """Of one data set: the posterior (None where every particle has a cycle), and the particles at recorded steps."""

    posterior: Posterior | None
    snapshots: list[Snapshot]


@partial(jax.jit, static_argnums=0)
def _several(target: Target, states: State, stats: Any, count: Any) -> tuple[State, Any]:
    """`count` steps of every data set, and which of them are finite."""
    each = jax.vmap(partial(step, target))
    states = jax.lax.fori_loop(0, count, lambda _, s: each(s, stats), states)
    leaves = jax.tree.leaves((states.z, states.theta))
    finite = [jnp.isfinite(leaf).reshape(leaf.shape[0], -1).all(axis=1) for leaf in leaves]
    return states, jnp.stack(finite).all(axis=0)


def infer_many(
    sets: Sequence[Dataset],
    model: Model,
    prior: GraphPrior,
    settings: Settings,
    *,
    seeds: Sequence[int],
    particles: int = 30,
    method: str = "dibs",
    record: Sequence[int] = (),
) -> list[Found]:
    """Run DiBS on every data set with its own seed; `record` names steps to look at on the way."""
    shapes = {data.values.shape for data in sets}
    if len(shapes) != 1 or len(seeds) != len(sets):
        raise InputError(
            f"data sets of shapes {sorted(shapes)} and {len(seeds)} seeds: give one shape, and a seed each"
        )
    prepared = [prepare(model, prior, settings, data, particles) for data in sets]
    target = prepared[0].target._replace(on_host=False)
    keys = [jax.random.split(key_from_seed(seed)) for seed in seeds]
    states: Any = [initial_state(target, key[0], particles, sets[0].nodes) for key in keys]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *states)
    used = jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *(p.used for p in prepared))
    seen: list[list[Snapshot]] = [[] for _ in sets]
    done = 0
    for stop in sorted({*(s for s in record if 0 < s < settings.steps), settings.steps}):
        states, finite = _several(target, states, used, stop - done)
        if not np.asarray(finite).all():
            bad = int(np.flatnonzero(~np.asarray(finite))[0])
            raise RunError(f"a particle of data set {bad} became infinite between steps {done} and {stop}")
        done = stop
        for k, snapshots in enumerate(seen):
            snapshots.append(snapshot(target, jax.tree.map(lambda leaf, k=k: leaf[k], states)))
    out = []
    for data, ready, key, snapshots in zip(sets, prepared, keys, seen):
        try:
            post = to_posterior(target, snapshots[-1], data, ready.stats, key[1], method)
        except InputError:
            post = None
        out.append(Found(post, snapshots))
    return out
