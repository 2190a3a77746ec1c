"""From latent particles to a posterior over DAGs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import AllCyclic
from dagpost.graphs import is_acyclic, with_few_parents, without_cycles
from dagpost.inference.checkpoints import NOWHERE, Section
from dagpost.inference.dibs.settling import settled
from dagpost.inference.dibs.svgd import Snapshot
from dagpost.inference.dibs.target import Target
from dagpost.inference.mcmc import equilibrated
from dagpost.models import Statistics
from dagpost.posterior import Posterior, log_joint_of
from dagpost.typing import Key


def to_posterior(
    target: Target, last: Snapshot, data: Dataset, stats: Statistics, key: Key, method: str,
    progress: bool | None = None, section: Section = NOWHERE, clock: Clock | None = None,
) -> Posterior:  # fmt: skip
    """DAGs of the particles with equal weights; cyclic ones are dropped or repaired, and counted. A run that its time
    limit has cut short keeps cyclic particles, repaired, where it would have none otherwise.

    Where a number of parents is too large by what is known, the weakest go first; required edges never do.
    """
    key_moves, key_theta = jax.random.split(key)
    settings, model = target.settings, target.model
    scores = np.asarray(jax.vmap(settings.embedding.scores)(jnp.asarray(last.z)))
    graphs, theta, known = last.graphs, last.theta, target.known
    if known is not None:
        scores = np.stack([known.strength(s) for s in scores])
        graphs = np.stack([with_few_parents(g, s, known.most_parents) for g, s in zip(graphs, scores)])
    acyclic = is_acyclic(graphs)
    cut_short = clock is not None and clock.limit is not None and last.made < last.steps
    handling = "repair" if cut_short and not acyclic.any() else settings.cyclic
    if handling == "repair":
        graphs = np.stack([g if ok else without_cycles(g, s) for g, ok, s in zip(graphs, acyclic, scores)])
        kept = np.arange(len(graphs))
    else:
        kept = np.flatnonzero(acyclic)
        if len(kept) == 0:
            raise AllCyclic(
                f"all {len(graphs)} particles have a cycle after {last.step} steps: run more steps, raise beta, "
                "or set cyclic='repair'",
                int(last.step),
            )
    graphs = graphs[kept]
    moves = settings.moves if target.prior.decomposes else 0
    if moves:
        with progress_bar(f"{method}, {moves:,} moves for each particle", len(graphs), progress) as done:
            graphs, moves = equilibrated(graphs, moves, model, target.prior, stats, key_moves, done, section, clock)
    theta: Any = jax.tree.map(lambda leaf: np.asarray(leaf)[kept], theta)
    if settings.parameter_steps and jax.tree.leaves(theta) and not cut_short:  # else the time is up
        rows = stats if settings.batch is None else model.rows(data)
        theta = jax.tree.map(np.asarray, settled(target, graphs, theta, rows, key_theta, clock))
    joint = log_joint_of(graphs, theta, model, target.prior, stats)
    if settings.collapsed and model.has_parameters:
        theta = model.draw_thetas(jax.random.split(key_theta, len(graphs)), graphs, stats)
    return Posterior(
        graphs=graphs,
        log_weights=np.zeros(len(graphs)),
        names=data.names,
        model=model,
        prior=target.prior,
        theta=theta,
        log_joint=joint,
        info={
            "method": method,
            "steps": last.made,
            "particles": len(last.z),
            "cyclic": int((~acyclic).sum()),
            "cyclic_handling": handling,
            "collapsed": settings.collapsed,
            "moves": moves,
            "sample": moves > 0,
            "ended_by": "limit" if cut_short or moves < settings.moves else "steps",
            **({"verdict": _cut_short(last, moves, settings.moves)} if cut_short or moves < settings.moves else {}),
        },
    )


def _cut_short(last: Snapshot, moves: int, wanted: int) -> str:
    made = f"{last.made:,} of {last.steps:,} steps"
    if wanted:
        made += f" and {moves:,} of {wanted:,} moves for each particle"
    return f"The time limit cut DiBS short after {made}: take this for a first look, or give it more time."
