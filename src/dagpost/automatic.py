"""`method="auto"`: DiBS finds where the posterior is, tempered chains started at its particles sample it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax

from dagpost.checkpoints.section import Sections
from dagpost.data import Dataset
from dagpost.dibs import default_settings, infer
from dagpost.mcmc.refine import Effort, refine
from dagpost.models import Model
from dagpost.posterior import Posterior, posterior_of_draws
from dagpost.priors import GraphPrior
from dagpost.randomness import key_from_seed

DIBS_SHARE = 0.25
"""Of the steps that DiBS takes on its own: its particles are starting points here, not the result."""


def auto(
    data: Dataset, model: Model, prior: GraphPrior, *, particles: int, draws: int, seed: int, steps: int | None = None,
    effort: Effort | None = None, progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[Any], None] | None = None, every: int | None = None, **options: Any,
) -> Posterior:  # fmt: skip
    """The posterior over graphs by DiBS and MCMC; DiBS alone where families have no closed-form evidence.

    `particles` is the number of DiBS particles, `draws` the number of graphs kept. `effort` says how long
    the chains run; a time limit in it holds for all. `callback` sees a `Snapshot` after `every` steps of DiBS, then
    a `ChainSnapshot` after every batch of the chains.
    """
    d, rows = data.nodes, data.observations
    common: dict[str, Any] = {
        "particles": particles, "seed": seed, "method": "auto", "progress": progress, "checkpoint": checkpoint,
        "callback": callback, "every": every,
    }  # fmt: skip
    if not (model.has_evidence and prior.decomposes):
        what = f"model {model.name!r} has no closed-form evidence"
        if model.has_evidence:
            what = f"prior {prior.name!r} does not decompose by column"
        settings = default_settings(model, d, rows, **({} if steps is None else {"steps": steps}), **options)
        post = infer(data, model, prior, settings, **common)
        return post.with_info(verdict=f"DiBS alone, not refined by MCMC: the {what}.")
    began = time.perf_counter()
    effort = effort or Effort()
    usual = default_settings(model, d, rows, **options)
    steps = steps or max(1, round(DIBS_SHARE * usual.steps))
    settings = default_settings(model, d, rows, **{**options, "steps": steps, "moves": 0})
    sketch = infer(data, model, prior, settings, **common)
    if effort.time_limit is not None:
        spent = time.perf_counter() - began
        effort = replace(effort, time_limit=max(effort.time_limit - spent, 0.1 * effort.time_limit))
    stats = model.summarise(data)
    key_chains, key_theta = jax.random.split(jax.random.fold_in(key_from_seed(seed), 1))
    found = refine(
        sketch.graphs, model, prior, stats, key_chains, rows=rows, draws=draws, effort=effort, progress=progress,
        checkpoint=checkpoint, callback=callback,
    )  # fmt: skip
    info = {
        "method": "auto",
        "particles": particles,
        "steps": steps,
        **found.info,
        **found.diagnostics._asdict(),
        "trusted": found.diagnostics.trusted,
        "verdict": found.diagnostics.verdict,
    }
    return posterior_of_draws(found.graphs, data.names, model, prior, stats, key_theta, info, found.marginals)
