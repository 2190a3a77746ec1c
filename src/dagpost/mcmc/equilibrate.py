"""Graphs from elsewhere, moved towards the posterior."""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from dagpost.checkpoints import NOWHERE, Section, State
from dagpost.mcmc.ensembles import moved, start
from dagpost.mcmc.scoring import scorer_for
from dagpost.models import Model, Statistics
from dagpost.priors import GraphPrior
from dagpost.progress import Advance
from dagpost.randomness import generator
from dagpost.typing import Graphs, Key


def equilibrated(
    graphs: Graphs, moves: int, model: Model, prior: GraphPrior, stats: Statistics, key: Key,
    advance_bar: Advance = lambda amount: None, section: Section = NOWHERE,
) -> Graphs:  # fmt: skip
    """Each DAG after this many Metropolis moves of its own, which leave `p(G | D)` as it is."""
    scoring = scorer_for(model, prior, stats, graphs.shape[-1])
    seeds = generator(key).integers(2**63, size=len(graphs))
    at_once = 2 * (os.cpu_count() or 1)
    out = np.empty((0, *graphs.shape[1:]), np.bool_) if section.found is None else section.found.arrays["graphs"]
    advance_bar(len(out))
    while len(out) < len(graphs):
        some = slice(len(out), len(out) + at_once)
        chains = [start(graph[None], scoring, seed, 1 << 15) for graph, seed in zip(graphs[some], seeds[some])]
        out = np.concatenate([out, moved(chains, scoring, "pair", moves, section)])
        advance_bar(len(chains))
        section.reached(partial(State, {"graphs": out}, {}))
    return out
