"""Structure MCMC as the paper runs it: one chain, one edge at a time, no tempering (MC³; Madigan and York, 1995)."""

from __future__ import annotations

from functools import partial

import jax
import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.progress import progress_bar
from dagpost._util.randomness import generator, key_from_seed
from dagpost.data import Dataset
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.section import Sections, section_of
from dagpost.inference.mcmc.ensembles import forget, moved, restored, saved, start
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.inference.mcmc.thinning import Thinning
from dagpost.models import Model
from dagpost.posterior import Posterior, posterior_of_draws
from dagpost.posterior.chains import CHAIN_LENGTHS
from dagpost.priors import GraphPrior
from dagpost.typing import Graph


def mc3(
    data: Dataset, model: Model, prior: GraphPrior, *, particles: int, seed: int, thinning: Thinning,
    progress: bool | None = None, checkpoint: Sections | None = None, clock: Clock | None = None,
) -> Posterior:  # fmt: skip
    """`particles` graphs of one chain that starts at a DAG of the prior; fewer when the clock expires, at least one."""
    clock = clock or Clock()
    stats = model.summarise(data)
    scoring = scorer_for(model, prior, stats, data.nodes)
    key_start, key_chain, key_theta = jax.random.split(key_from_seed(seed), 3)
    first = np.asarray(prior.sample(key_start, data.nodes), dtype=np.bool_)
    chain = start(first[None], scoring, int(generator(key_chain).integers(2**63)))
    kind = "neighbour" if thinning.neighbourhood == "exact" else "approximate_neighbour"
    total = thinning.steps(particles)
    warm_up, graphs = thinning.warm_up(), []
    section, warmed = section_of(checkpoint, "chain"), 0
    if section.found is not None:
        warmed, graphs = section.found.facts["warmed"], list(section.found.arrays["graphs"])
        (chain,) = restored(section.found.arrays)
    with progress_bar(f"mc3, {total:,} moves", total, progress) as bar:
        bar(sum(warm_up[:warmed]) + len(graphs) * thinning.thin)
        for moves in warm_up[warmed:]:
            moved([chain], scoring, kind, moves, section, clock)
            if clock.expired:
                break
            bar(moves)
            warmed += 1
            section.reached(partial(_state, saved([chain]), graphs, 0, data.nodes, warmed))
        if not graphs:
            forget([chain])
        while len(graphs) < particles:
            latest = moved([chain], scoring, kind, thinning.thin, section, clock)[0]
            if clock.expired and graphs:
                break
            graphs.append(latest)
            bar(thinning.thin)
            section.reached(partial(_state, saved([chain]), graphs, len(graphs), data.nodes, warmed))
    acceptance = float(chain.accepted.sum() / max(chain.tried.sum(), 1))
    info = {"method": "mc3", **thinning.info, "acceptance": acceptance, CHAIN_LENGTHS: [len(graphs)]}
    info |= thinning.ended(len(graphs), particles)
    return posterior_of_draws(np.stack(graphs), data.names, model, prior, stats, key_theta, info)


def _state(chain: dict[str, np.ndarray], graphs: list[Graph], count: int, d: int, warmed: int) -> State:
    """The chain, the first `count` of its graphs, and how much of the burn-in is done."""
    kept = np.array(graphs[:count], np.bool_).reshape(count, d, d)
    return State({**chain, "graphs": kept}, {"warmed": warmed})
