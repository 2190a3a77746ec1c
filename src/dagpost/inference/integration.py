"""Chains for models without closed-form evidence: families are estimated on demand, and again with more effort where
the posterior rests on them.

Chains run on quick estimates first. Families that many of their graphs have are then estimated carefully, and the
chains go on from there; twice, since better estimates shift weight to families that were passed over. What error is
left in the evidence is turned into an error of edge probabilities (`Integrated.edge_errors`), which is part of the
verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from dagpost._util.clock import Clock
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.refine import Effort, Refined, refine
from dagpost.models import Additive, Model, Statistics
from dagpost.models.integrated import Integrated, common_families
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Key

STAGES = (0.3, 0.6)
"""Shares of a time limit after which families are estimated again."""
STAGE_MOVES = 20_000
"""Moves per node of the chains before families are estimated again, where there is no time limit."""
LEAST_SHARE = 0.02
"""Share of graphs with a family from which on it is estimated carefully."""
START_MOVES = 20_000
"""Moves per node of the chains of the additive model that find where to start."""


def integrated(model: Model, stats: Statistics, seed: int, checkpoint: Sections | None = None) -> Integrated:
    """Return the model with its numerical evidence, as far as a checkpoint has it."""
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
                   progress=False)  # fmt: skip
    return found.graphs


def refine_numerically(
    graphs: Graphs, model: Integrated, prior: GraphPrior, key: Key, *, rows: int, draws: int, effort: Effort | None,
    clock: Clock, progress: bool | None = None, checkpoint: Sections | None = None,
    callback: Callable[[Any], None] | None = None,
) -> Refined:  # fmt: skip
    """Sample `p(G | D)` by chains on numerical evidence, as `refine` does on closed forms.

    A checkpoint holds the evidence, which is what takes long; chains begin anew.
    """
    section = section_of(checkpoint, "evidence")
    keys = jax.random.split(key, len(STAGES) + 1)
    d = graphs.shape[-1]

    def save(snapshot: Any) -> None:
        section.reached(lambda: State(model.evidence.to_arrays(), {}))
        section.check()
        if callback is not None:
            callback(snapshot)

    for stage, share in enumerate(STAGES):
        part = clock.until(share) if clock.limit is not None else Clock(stopped=clock.stopped)
        found = refine(
            graphs, model, prior, model.stats, keys[stage], rows=rows, draws=200, clock=part, progress=progress,
            effort=Effort(precision=0.05, max_moves=STAGE_MOVES * d), callback=save,
        )  # fmt: skip
        rough = model.rough_families(common_families(found.graphs, LEAST_SHARE))
        graphs = found.graphs[:: max(1, len(found.graphs) // 32)]
        if not rough or clock.expired:
            break
        with progress_bar(f"estimating {len(rough)} families again", len(rough), progress) as advance:
            for chunk in range(0, len(rough), 16):
                if clock.until(share + 0.2).expired if clock.limit is not None else clock.expired:
                    break
                model.improve(rough[chunk : chunk + 16])
                advance(len(rough[chunk : chunk + 16]))
                section.reached(lambda: State(model.evidence.to_arrays(), {}))
                section.check()
    return refine(
        graphs, model, prior, model.stats, keys[-1], rows=rows, draws=draws, effort=effort, clock=clock,
        progress=progress, callback=save,
    )  # fmt: skip
