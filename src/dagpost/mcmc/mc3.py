"""Structure MCMC as the paper runs it: one chain, one edge at a time, no tempering (MC³; Madigan and York, 1995)."""

from __future__ import annotations

import jax
import numpy as np

from dagpost.data import Dataset
from dagpost.mcmc.ensembles import UNTEMPERED, advance, forget, recipe, start
from dagpost.mcmc.scoring import scorer_for
from dagpost.mcmc.thinning import Thinning
from dagpost.models import Model
from dagpost.posterior import Posterior, posterior_of_draws
from dagpost.priors import GraphPrior
from dagpost.progress import progress_bar
from dagpost.randomness import generator, key_from_seed


def mc3(
    data: Dataset, model: Model, prior: GraphPrior, *, particles: int, seed: int, thinning: Thinning,
    progress: bool | None = None,
) -> Posterior:  # fmt: skip
    """`particles` graphs of one chain that starts at a DAG of the prior."""
    stats = model.summarise(data)
    scoring = scorer_for(model, prior, stats, data.nodes)
    key_start, key_chain, key_theta = jax.random.split(key_from_seed(seed), 3)
    first = np.asarray(prior.sample(key_start, data.nodes), dtype=np.bool_)
    chain = start(first[None], scoring, int(generator(key_chain).integers(2**63)))
    kind = "neighbour" if thinning.neighbourhood == "exact" else "approximate_neighbour"
    total = thinning.steps(particles)
    graphs = []
    with progress_bar(f"mc3, {total:,} moves", total, progress) as bar:
        for moves in thinning.warm_up():
            advance([chain], scoring, UNTEMPERED, recipe(**{kind: moves}), 1)
            bar(moves)
        forget([chain])
        for _ in range(particles):
            graphs.append(advance([chain], scoring, UNTEMPERED, recipe(**{kind: thinning.thin}), 1).graphs[0, 0])
            bar(thinning.thin)
    acceptance = float(chain.accepted.sum() / chain.tried.sum())
    info = {"method": "mc3", **thinning.info, "acceptance": acceptance}
    return posterior_of_draws(np.stack(graphs), data.names, model, prior, stats, key_theta, info)
