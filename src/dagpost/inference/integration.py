"""Chains for models whose families take milliseconds, because their evidence has no compiled form or no closed form.

Candidate parents are found, the families among them are scored, and chains run on that table (`candidates.py`). Where
the chains have been, the search for candidates is repeated; where evidence is an estimate, families that their graphs
have are estimated with more effort, and so on until nothing is left to improve or time is short. What error is left in
the evidence is turned into an error of edge probabilities (`Integrated.edge_errors`), which is part of the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dagpost._util.clock import Clock
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.inference.candidates import Candidates
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.refine import Effort, Refined, refine
from dagpost.models import Additive, Model, Statistics
from dagpost.models.family_evidence import CAREFUL, LARGEST
from dagpost.models.integrated import TIMES_DEARER, Family, Integrated, influences
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key

SEARCH_SHARE, TABLE_SHARE = 0.1, 0.2
"""Shares of a time limit, from the start of the search, after which it ends, and after which the first table does."""
STAGES, EXPLORING = 12, 3
"""Most repetitions of chains, search, and better estimates; and how many of them have no better estimates yet."""
STAGE_SHARE, IMPROVING_SHARE = 0.05, 0.12
"""Shares of a time limit that the chains and the search of a stage take at most, and its estimates."""
LAST_STAGE, LAST_CHAINS = 0.75, 0.85
"""Shares of a time limit after which no stage begins, and after which the last chains begin."""
STAGE_MOVES = 400_000
"""Moves per node of the chains of a stage."""
STAGE_DRAWS = 4000
"""Graphs of a stage, whose families are counted."""
AT_A_TIME, AT_LEAST = 128, 16
"""Families that are estimated better before it is asked again which matter most, as a new estimate may change that: so
many if one effort more is little, but not fewer than so many."""
START_MOVES = 20_000
"""Moves per node of the chains of the additive model that find where to start."""


def integrated(model: Model, stats: Statistics, seed: int, checkpoint: Sections | None = None) -> Integrated:
    """Return the model with its evidence, as far as a checkpoint has it."""
    out = Integrated(model, stats, seed)
    found = section_of(checkpoint, "evidence").found
    if found is not None:
        out.evidence.from_arrays(found.arrays)
    return out


def additive_start(data: Dataset, prior: GraphPrior, graphs: Graphs, key: Key, clock: Clock) -> Graphs:
    """Return graphs that chains of the additive model reach: its families take microseconds."""
    model = Additive()
    effort = Effort(precision=0.05, max_moves=START_MOVES * data.nodes)
    stats = model.summarise(data)
    found = refine(graphs, model, prior, stats, key, rows=data.observations, draws=32, effort=effort, clock=clock,
                   progress=False, annealed=True)  # fmt: skip
    return found.graphs


def at_once(rough: list[tuple[Family, int]]) -> list[tuple[Family, int]]:
    """Return the first families of those that are rough, fewer the more effort they take."""
    cost = np.cumsum([TIMES_DEARER ** (min(effort, LARGEST) - CAREFUL) for _, effort in rough])
    return rough[: max(int((cost <= AT_A_TIME).sum()), AT_LEAST)]


def refine_numerically(
    graphs: Graphs, model: Integrated, prior: GraphPrior, key: Key, *, rows: int, draws: int, effort: Effort | None,
    clock: Clock, progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[Any], None] | None = None,
) -> tuple[Refined, Float[np.ndarray, "d d"], bool]:  # fmt: skip
    """Sample `p(G | D)` by chains on a table of families, as `refine` does on compiled evidence; return the draws, the
    estimated probabilities of edges that the table does not have, which the edge probabilities of the result include,
    and whether there was time to look for families around those of the first chains.

    A checkpoint holds the evidence, which is what takes long; chains begin anew.
    """
    section = section_of(checkpoint, "evidence")
    keys = jax.random.split(key, STAGES + 1)
    d = graphs.shape[-1]

    def used_share() -> float:
        return 0.0 if clock.limit is None else clock.seconds / clock.limit

    def until(share: float) -> Clock:
        return clock if clock.limit is None else clock.within(share * clock.limit - clock.seconds)

    def save(snapshot: Any = None) -> None:
        section.reached(lambda: State(model.evidence.to_arrays(), {}))
        section.check()
        if callback is not None and snapshot is not None:
            callback(snapshot)

    def improve(candidates: Candidates, graphs: Graphs, improving: Clock) -> bool:
        """Estimate families better until none near the best is rough; return whether there was any."""
        any_rough, influence = False, influences(graphs)
        while rough := candidates.rough(graphs, influence):
            any_rough = True
            with progress_bar(f"estimating {len(rough)} families again", len(rough), progress) as advance:
                while rough and not improving.expired:
                    first = at_once(rough)
                    for _ in model.improve(first, improving):
                        advance(1)
                        save()
                    candidates.update(family for family, _ in first)
                    rough = candidates.rough(graphs, influence)
            candidates.renew(graphs, clock, progress)
            if improving.expired:
                break
        return any_rough

    candidates = Candidates(model, prior)
    began = used_share()
    candidates.search(graphs, until(began + SEARCH_SHARE), True, progress)
    candidates.fill(graphs, until(began + TABLE_SHARE), progress)
    explored = False
    for stage in range(STAGES):
        used = used_share()
        if used >= LAST_STAGE:
            break
        graphs = refine(
            candidates.nearest(graphs), model, prior, model.stats, keys[stage], rows=rows, draws=STAGE_DRAWS,
            clock=until(used + STAGE_SHARE), progress=progress, callback=save,
            effort=Effort(precision=0.02, max_moves=STAGE_MOVES * d),
        ).graphs  # fmt: skip
        if clock.expired:
            break
        # not in the first stages, whose graphs have families that nothing around them is known of
        candidates.search(graphs, until(used + 2 * STAGE_SHARE), False, progress, without=stage >= EXPLORING - 1)
        candidates.renew(graphs, until(used + 3 * STAGE_SHARE), progress)
        explored = stage >= EXPLORING - 1
        if stage < EXPLORING:
            continue
        if not improve(candidates, graphs, until(min(used_share() + IMPROVING_SHARE, LAST_CHAINS))):
            break
    found = refine(
        candidates.nearest(graphs), model, prior, model.stats, keys[-1], rows=rows, draws=draws, effort=effort,
        clock=clock, progress=progress, callback=save,
    )  # fmt: skip
    outside = candidates.absent_edges(found.graphs)
    return replace(found, marginals=found.marginals + outside), outside, explored
