"""Graphs from elsewhere, moved towards the posterior."""

from __future__ import annotations

import os
from functools import partial

import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.progress import Advance
from dagpost._util.randomness import generator
from dagpost.inference.checkpoints import NOWHERE, Section, State
from dagpost.inference.mcmc.ensembles import moved, start
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.models import Model, Statistics
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key


def equilibrated(
    graphs: Graphs, moves: int, model: Model, prior: GraphPrior, stats: Statistics, key: Key,
    advance_bar: Advance = lambda amount: None, section: Section = NOWHERE, clock: Clock | None = None,
) -> tuple[Graphs, int]:  # fmt: skip
    """Each DAG after this many Metropolis moves of its own, which leave `p(G | D)` as it is, and the smallest number
    that one has made: fewer, when the clock does not leave the time."""
    scoring = scorer_for(model, prior, stats, graphs.shape[-1])
    seeds = generator(key).integers(2**63, size=len(graphs))
    at_once = 2 * (os.cpu_count() or 1)
    out = np.empty((0, *graphs.shape[1:]), np.bool_) if section.found is None else section.found.arrays["graphs"]
    advance_bar(len(out))
    fewest = moves
    while len(out) < len(graphs):
        share = at_once / (len(graphs) - len(out))
        timer = None if clock is None else clock.until(min(share, 0.95))
        some = slice(len(out), len(out) + at_once)
        chains = [start(graph[None], scoring, seed, 1 << 15) for graph, seed in zip(graphs[some], seeds[some])]
        out = np.concatenate([out, moved(chains, scoring, "pair", moves, section, timer)])
        fewest = min(fewest, *(int(chain.tried.sum()) for chain in chains))
        advance_bar(len(chains))
        section.reached(partial(State, {"graphs": out}, {}))
    return out, fewest
