"""M-MC³ or G-MC³ on many data sets of one shape at once: a step is short, so most of its time is starting it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from dagpost._util.compiling import jitted
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.inference.batches import check_alike, member, stacked
from dagpost.inference.mcmc.joint import (
    Chain,
    Kernel,
    adaptation,
    first_chain,
    joint_posterior,
    kernel_of,
    several_steps,
    starting_scale,
)
from dagpost.inference.mcmc.thinning import Thinning
from dagpost.models import Model
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior


def joint_mc3_together(
    data: Sequence[Dataset], model: Model, prior: GraphPrior, *, variant: Literal["m", "g"], particles: int,
    seeds: Sequence[int], thinning: Thinning, progress: bool | None = None,
) -> list[Posterior]:  # fmt: skip
    """What `joint_mc3` gives for each data set and its seed, up to rounding."""
    check_alike(data, seeds)
    d = data[0].nodes
    scale = starting_scale(variant, model, d)
    kernel, least = kernel_of(model, prior, variant, thinning), float(np.log(scale))
    each_stats = [jax.tree.map(jnp.asarray, model.summarise(one)) for one in data]
    chains = stacked([first_chain(kernel, d, stats, seed, scale) for stats, seed in zip(each_stats, seeds)])
    stats = stacked(each_stats)
    warm_up, total = thinning.warm_up(), thinning.steps(particles)
    graphs, thetas = [], []
    with progress_bar(f"{variant}-mc3, {total:,} steps, {len(data)} data sets", total, progress) as advance:
        for part, count in enumerate(warm_up):
            chains = _several(kernel, chains, stats, count, adaptation(part, len(warm_up)), least)
            jax.block_until_ready(chains)
            advance(count)
        chains = chains._replace(accepted=jnp.zeros(len(data)), tried=jnp.zeros(len(data)))
        for _ in range(particles):
            chains = _several(kernel, chains, stats, thinning.thin, 0.0, least)
            graphs.append(np.asarray(chains.graph) > 0.5)
            thetas.append(jax.tree.map(np.asarray, chains.theta))
            advance(thinning.thin)
    drawn = np.stack(graphs, axis=1)
    drawn_theta = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *thetas)
    last = jax.tree.map(np.asarray, chains._replace(key=()))
    return [
        joint_posterior(kernel, one, drawn[k], member(drawn_theta, k), thinning, member(last, k))
        for k, one in enumerate(data)
    ]


@partial(jitted, static_argnums=0)
def _several(kernel: Kernel, chains: Chain, stats: Any, count: Any, adapt_rate, least_log_scale) -> Chain:
    several = lambda chain, stats: several_steps(kernel, chain, stats, count, adapt_rate, least_log_scale)  # noqa: E731
    return jax.vmap(several)(chains, stats)
