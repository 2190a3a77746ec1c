"""Structure MCMC as the paper runs it: one chain, one edge at a time, no tempering (MC³; Madigan and York, 1995)."""

from __future__ import annotations

from typing import Any, Literal

import jax
import numpy as np

from dagpost.data import Dataset
from dagpost.errors import InputError, nearest, whole_number
from dagpost.mcmc.ensembles import advance, forget, recipe, start
from dagpost.mcmc.scoring import scorer_for
from dagpost.models import Model
from dagpost.posterior import Posterior, log_joint_of
from dagpost.priors import GraphPrior
from dagpost.progress import progress_bar
from dagpost.randomness import generator, key_from_seed

BURN_IN, THIN = 100_000, 10_000
RATIOS = ("approximate", "exact")
UNTEMPERED = np.ones(1)


def mc3(
    data: Dataset, model: Model, prior: GraphPrior, *, particles: int, seed: int, burn_in: int = BURN_IN,
    thin: int = THIN, neighbourhood: Literal["approximate", "exact"] = "approximate", progress: bool | None = None,
) -> Posterior:  # fmt: skip
    """`particles` graphs of one chain from a DAG of the prior: `burn_in` moves, then one graph every `thin` moves.

    The ratio of neighbourhood sizes is taken to be one, as published, or computed (`neighbourhood="exact"`).
    """
    whole_number("burn_in", burn_in, least=0)
    whole_number("thin", thin, least=1)
    if neighbourhood not in RATIOS:
        raise InputError(f"neighbourhood={neighbourhood!r}: {nearest(str(neighbourhood), RATIOS)}")
    stats = model.summarise(data)
    scoring = scorer_for(model, prior, stats, data.nodes)
    key_start, key_chain, key_theta = jax.random.split(key_from_seed(seed), 3)
    first = np.asarray(prior.sample(key_start, data.nodes), dtype=np.bool_)
    chain = start(first[None], scoring, int(generator(key_chain).integers(2**63)))
    kind = "neighbour" if neighbourhood == "exact" else "approximate_neighbour"
    graphs = []
    with progress_bar(f"mc3, {burn_in + particles * thin:,} moves", burn_in + particles * thin, progress) as bar:
        for moves in _parts(burn_in, thin):
            advance([chain], scoring, UNTEMPERED, recipe(**{kind: moves}), 1)
            bar(moves)
        forget([chain])
        for _ in range(particles):
            graphs.append(advance([chain], scoring, UNTEMPERED, recipe(**{kind: thin}), 1).graphs[0, 0])
            bar(thin)
    drawn = np.stack(graphs)
    theta: Any = ()
    if model.has_parameters:
        theta = model.draw_thetas(jax.random.split(key_theta, particles), drawn, stats)
    return Posterior(
        graphs=drawn,
        log_weights=np.zeros(particles),
        names=data.names,
        model=model,
        prior=prior,
        theta=theta,
        log_joint=log_joint_of(drawn, (), model, prior, stats),
        info={
            "method": "mc3",
            "burn_in": burn_in,
            "thin": thin,
            "neighbourhood": neighbourhood,
            "acceptance": float(chain.accepted.sum() / chain.tried.sum()),
        },
    )


def _parts(total: int, size: int) -> list[int]:
    """`total` in parts of at most `size`, so that progress can be shown."""
    return [min(size, total - done) for done in range(0, total, size)]
