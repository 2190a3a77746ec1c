"""Graphs from elsewhere, moved towards the posterior."""

from __future__ import annotations

import os

import numpy as np

from dagpost.mcmc.ensembles import UNTEMPERED, advance, recipe, start
from dagpost.mcmc.scoring import scorer_for
from dagpost.models import Model, Statistics
from dagpost.priors import GraphPrior
from dagpost.progress import Advance
from dagpost.randomness import generator
from dagpost.typing import Graphs, Key


def equilibrated(
    graphs: Graphs, moves: int, model: Model, prior: GraphPrior, stats: Statistics, key: Key,
    advance_bar: Advance = lambda amount: None,
) -> Graphs:  # fmt: skip
    """Each DAG after this many Metropolis moves of its own, which leave `p(G | D)` as it is."""
    scoring = scorer_for(model, prior, stats, graphs.shape[-1])
    seeds = generator(key).integers(2**63, size=len(graphs))
    at_once = 2 * (os.cpu_count() or 1)
    out = []
    for first in range(0, len(graphs), at_once):
        some = slice(first, first + at_once)
        chains = [start(graph[None], scoring, seed, 1 << 15) for graph, seed in zip(graphs[some], seeds[some])]
        out.append(advance(chains, scoring, UNTEMPERED, recipe(pair=moves), rounds=1).graphs[:, -1])
        advance_bar(len(chains))
    return np.concatenate(out)
