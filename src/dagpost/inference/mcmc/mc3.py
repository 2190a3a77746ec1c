"""Structure MCMC as the paper runs it (MC³; Madigan and York, 1995): one chain, one edge at a time, no tempering.

`Thinning` is the paper's schedule, a burn-in and then one sample every `thin` steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import jax
import numpy as np

from dagpost._util.clock import Clock
from dagpost._util.numerics import generator, key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest, whole_number
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.ensembles import (
    ensembles_from_arrays,
    ensembles_to_arrays,
    reset_counters,
    run_moves,
    start,
)
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.inference.method import Method, Problem
from dagpost.models import Model
from dagpost.posterior import Posterior, posterior_of_draws
from dagpost.posterior.records import RunRecord, Sampling, SingleChainDiagnostics, Verdict
from dagpost.priors import GraphPrior
from dagpost.typing import Graph

NEIGHBOURHOODS = ("approximate", "exact")


@dataclass(frozen=True)
class Thinning:
    """Burn-in and thinning of a single chain; the defaults are the published ones.

    Parameters
    ----------
    burn_in
        Steps before the first sample is kept.
    thin
        Steps between samples.
    neighbourhood
        Whether the ratio of neighbourhood sizes in the acceptance probability is computed ("exact") or taken to be one
        ("approximate"), as published.
    """

    burn_in: int = 100_000
    thin: int = 10_000
    neighbourhood: Literal["approximate", "exact"] = "approximate"

    def __post_init__(self):
        whole_number("burn_in", self.burn_in, least=0)
        whole_number("thin", self.thin, least=1)
        if self.neighbourhood not in NEIGHBOURHOODS:
            cure = nearest(str(self.neighbourhood), NEIGHBOURHOODS)
            raise InputError(f"neighbourhood={self.neighbourhood!r}: {cure}")

    def steps(self, samples: int) -> int:
        """Return the total number of steps for this many samples."""
        return self.burn_in + samples * self.thin

    def warm_up(self) -> list[int]:
        """Return the burn-in in parts of at most `thin` steps, so that progress can be shown."""
        return [min(self.thin, self.burn_in - done) for done in range(0, self.burn_in, self.thin)]

    def record(
        self, method: str, kept: int, wanted: int, acceptance: float, collapsed: bool, scale: float | None = None
    ) -> RunRecord:
        """Return the record of a chain that kept so many of the samples wanted; fewer if its time limit ended it."""
        early = kept < wanted
        text = f"The time limit ended the chain after {kept} of {wanted} samples: do not trust it, raise time_limit."
        return RunRecord(
            method,
            Sampling(sample=True, collapsed=collapsed, chain_lengths=[kept]),
            SingleChainDiagnostics(
                self.burn_in, self.thin, self.neighbourhood, acceptance, scale, ended_by="limit" if early else "steps"
            ),
            Verdict(text) if early else None,
        )


def mc3(
    data: Dataset, model: Model, prior: GraphPrior, *, particles: int, seed: int, thinning: Thinning,
    progress: bool | None = None, checkpoint: Sections | None = None, clock: Clock | None = None,
) -> Posterior:  # fmt: skip
    """Sample `particles` graphs from one chain that starts at a draw from the prior; fewer if the clock expires."""
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
        (chain,) = ensembles_from_arrays(section.found.arrays)
    with progress_bar(f"mc3, {total:,} moves", total, progress) as bar:
        bar(sum(warm_up[:warmed]) + len(graphs) * thinning.thin)
        for moves in warm_up[warmed:]:
            run_moves([chain], scoring, kind, moves, section, clock)
            if clock.expired:
                break
            bar(moves)
            warmed += 1
            section.reached(partial(_state, ensembles_to_arrays([chain]), graphs, 0, data.nodes, warmed))
        if not graphs:
            reset_counters([chain])
        while len(graphs) < particles:
            latest = run_moves([chain], scoring, kind, thinning.thin, section, clock)[0]
            if clock.expired and graphs:
                break
            graphs.append(latest)
            bar(thinning.thin)
            section.reached(partial(_state, ensembles_to_arrays([chain]), graphs, len(graphs), data.nodes, warmed))
    acceptance = float(chain.accepted.sum() / max(chain.tried.sum(), 1))
    record = thinning.record("mc3", len(graphs), particles, acceptance, collapsed=True)
    return posterior_of_draws(np.stack(graphs), data.names, model, prior, stats, key_theta, record)


def _state(chain: dict[str, np.ndarray], graphs: list[Graph], count: int, d: int, warmed: int) -> State:
    """Return the checkpoint state: the chain, the first `count` of its graphs, and the parts of the burn-in done."""
    kept = np.array(graphs[:count], np.bool_).reshape(count, d, d)
    return State({**chain, "graphs": kept}, {"warmed": warmed})


@dataclass(frozen=True)
class SingleChain(Method):
    """Options of the paper's chains: one chain, a burn-in, then one sample every so many steps.

    Parameters
    ----------
    particles
        Number of graphs kept.
    burn_in
        Steps before the first graph is kept.
    thin
        Steps between graphs that are kept.
    neighbourhood
        Hastings correction for the number of neighbours of a graph: "approximate" takes the ratio to be 1, as
        published, "exact" computes it.
    """

    particles: int = 30
    burn_in: int = Thinning.burn_in
    thin: int = Thinning.thin
    neighbourhood: Literal["approximate", "exact"] = Thinning.neighbourhood

    def __post_init__(self):
        whole_number("particles", self.particles, least=1)
        self.thinning()

    def thinning(self) -> Thinning:
        return Thinning(self.burn_in, self.thin, self.neighbourhood)


@dataclass(frozen=True)
class Mc3(SingleChain):
    """Structure MCMC as published (MC³): a chain over graphs, one edge at a time, no tempering.

    For models with closed-form evidence. The fields are those of `SingleChain`, with the paper's defaults.

    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=4, observations=50, seed=0).train
    >>> len(dp.fit(data, "bge", method=dp.Mc3(particles=5, burn_in=100, thin=10)))
    5
    """

    takes_conditions: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "mc3"

    def compile_seconds(self, problem: Problem) -> int:
        return 90

    def run(self, problem: Problem) -> Posterior:
        return mc3(
            problem.data, problem.model, problem.prior, particles=self.particles, seed=problem.seed,
            thinning=self.thinning(), progress=problem.progress, checkpoint=problem.checkpoint, clock=problem.clock,
        )  # fmt: skip
