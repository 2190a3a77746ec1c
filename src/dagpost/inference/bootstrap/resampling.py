"""The DAG bootstrap (Friedman, Goldszmidt and Wyner, 1999): one graph learned from each resampled data set.

PC or GES learns an essential graph from each resample of the rows; a random DAG represents each class. Unique graphs
are weighted by their unnormalised posterior, as DiBS+ weights its particles. For the linear model the graphs get
closed-form maximum-likelihood parameters and are weighted by `p(G, Theta, D)` (the starred variants of the paper).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from math import log2
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float

from dagpost._util.clock import Clock
from dagpost._util.numerics import generator, key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest, positive, whole_number
from dagpost.graphs import consistent_extension
from dagpost.inference.bootstrap.ges import limited_search
from dagpost.inference.bootstrap.pc import pc_of_counts, pc_search
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.method import Method, Problem
from dagpost.models import LinearGaussian, Model
from dagpost.models.linear_gaussian import LinearTheta
from dagpost.posterior import Posterior, log_joint_of
from dagpost.posterior.records import ResamplingDiagnostics, RunRecord, Verdict
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs, Theta

WITHOUT_DAG = ("halve", "drop")
LEAST_SIGNIFICANCE = 1e-12
"""Lowest significance level tried; a resample without a DAG down to this level is dropped."""


CUT_SHORT = Verdict(
    "Do not trust this run: the time limit ended its only search before it was complete, and its graph is what had "
    "been found. A longer time limit helps (--time-limit, time_limit=).",
    trusted=False,
)


@dataclass(frozen=True)
class PcSettings:
    """Settings of PC on resamples; the defaults are those of the authors' experiments.

    Parameters
    ----------
    significance
        Level of the tests at the first resample.
    without_dag
        What to do if the learned graph has no consistent extension. "halve": halve the level, for this resample and all
        later ones, and learn again. "drop": drop the resample and keep the level.
    """

    significance: float = 0.05
    without_dag: Literal["halve", "drop"] = "halve"

    def __post_init__(self):
        level: Any = self.significance
        if isinstance(level, str | bool) or not hasattr(level, "__float__") or not 0 < float(level) < 1:
            raise InputError(f"significance={level!r}: give a number between 0 and 1")
        if self.without_dag not in WITHOUT_DAG:
            raise InputError(f"without_dag={self.without_dag!r}: {nearest(str(self.without_dag), WITHOUT_DAG)}")

    def levels(self, level: float) -> Iterator[float]:
        """Yield this level, then those to try while the learned graphs have no consistent extension."""
        yield level
        while self.without_dag == "halve" and level / 2 >= LEAST_SIGNIFICANCE:
            level /= 2
            yield level

    def halvings(self, level: float) -> int:
        """How often the level was halved to reach this one."""
        return round(log2(self.significance / level))


def bootstrap(
    data: Dataset, model: Model, prior: GraphPrior, *, learner: Literal["pc", "ges"], particles: int, seed: int,
    pc: PcSettings | None = None, penalty: float = 1.0, progress: bool | None = None,
    checkpoint: Sections | None = None, clock: Clock | None = None,
) -> Posterior:  # fmt: skip
    """Learn one graph from each of `particles` resamples of the rows; from fewer, at least one, if the clock expires.
    A search by GES that it cuts short counts only if there is no other, and the verdict says so.

    Resamples whose graph has no consistent extension are dropped. `pc` holds the settings of PC. Graphs of GES always
    have an extension; `penalty` is the factor on its BIC's penalty.
    """
    if not model.has_evidence:
        raise InputError(f"bootstrap-{learner} needs a model with closed-form evidence, not {model.name!r}: use 'dibs'")
    if prior.constraints is not None:
        raise InputError(
            f"bootstrap-{learner} cannot be held to prior knowledge or to lags: leave them out, or use "
            "'auto', 'exact', 'dibs', 'dibs-paper', 'mc3', 'm-mc3' or 'g-mc3'"
        )
    if data.intervened.any():
        raise InputError("PC and GES need observational data: remove the rows with interventions, or use 'auto'")
    if model.categorical and penalty != 1:
        raise InputError(f"penalty={penalty:g} is for BIC: GES scores categories by their evidence, leave it out")
    rng = generator(key_from_seed(seed))
    settings = pc or PcSettings()
    level = float(settings.significance)
    classes: dict[bytes, Graph] = {}
    done = dropped = 0
    complete = True
    section = section_of(checkpoint, "resamples")
    if section.found is not None:
        facts = section.found.facts
        done, dropped, level = facts["done"], facts["dropped"], facts["significance"]
        rng.bit_generator.state = facts["rng"]
        arrays = section.found.arrays
        classes = {essential.tobytes(): dag for essential, dag in zip(arrays["essential"], arrays["dags"])}
    with progress_bar(f"bootstrap-{learner}", particles, progress) as advance:
        advance(done)
        for resample in range(done, particles):
            if classes and clock is not None and clock.expired:
                break
            sample = data.rows(rng.integers(data.observations, size=data.observations))
            counts = model.count_table(model.summarise(sample)) if model.categorical else None
            for tried in settings.levels(level):
                if learner == "ges":
                    essential, complete = limited_search(sample.values, counts, penalty, clock, section)
                else:
                    essential = pc_search(sample.values, tried) if counts is None else pc_of_counts(counts, tried)
                if classes and not complete:
                    break
                if _has_dag(essential, classes, rng):
                    level = tried
                    break
            else:
                dropped += 1
            if not complete:
                break
            done = resample + 1
            advance(1)
            state = {"done": resample + 1, "dropped": dropped, "significance": level, "rng": rng.bit_generator.state}
            section.reached(partial(_state, dict(classes), data.nodes, state))
    if not classes:
        raise InputError(f"none of {particles} graphs learned by {learner.upper()} contains a DAG: use more rows")
    diagnostics = ResamplingDiagnostics(max(done, 1), dropped, ended_by="steps" if done == particles else "limit")
    if learner == "pc":
        diagnostics = replace(diagnostics, significance=level, halvings=settings.halvings(level))
    record = RunRecord(f"bootstrap-{learner}", diagnostics=diagnostics, verdict=None if done else CUT_SHORT)
    return weighted_posterior(np.stack(list(classes.values())), data, model, prior, record)


def _has_dag(essential: Graph, classes: dict[bytes, Graph], rng: np.random.Generator) -> bool:
    """Return whether the graph has a consistent extension; for a new graph, store a random one in `classes`."""
    if essential.tobytes() not in classes:
        try:
            classes[essential.tobytes()] = consistent_extension(essential, rng)
        except InputError:
            return False
    return True


def weighted_posterior(graphs: Graphs, data: Dataset, model: Model, prior: GraphPrior, record: RunRecord) -> Posterior:
    """Return the graphs weighted by their posterior under a model; a linear one gets maximum-likelihood parameters."""
    theta: Theta = ()
    if isinstance(model, LinearGaussian):
        fits = [maximum_likelihood(model, graph, data.values) for graph in graphs]
        theta = jax.tree.map(lambda *leaves: np.stack(leaves), *fits)
    joint = log_joint_of(graphs, theta, model, prior, model.summarise(data))
    return Posterior(
        graphs=graphs, log_weights=joint, names=data.names, model=model, prior=prior, theta=theta, log_joint=joint,
        record=record,
    )  # fmt: skip


def _state(classes: dict[bytes, Graph], d: int, facts: dict[str, Any]) -> State:
    """Return the checkpoint state: the learned graphs, their DAGs, and the counters."""
    essential = np.frombuffer(b"".join(classes), np.bool_).reshape(-1, d, d)
    return State({"essential": essential, "dags": np.array([*classes.values()], np.bool_).reshape(-1, d, d)}, facts)


def maximum_likelihood(model: LinearGaussian, graph: Graph, values: Float[np.ndarray, "n d"]) -> Theta:
    """Return maximum-likelihood weights (least squares on the parents), and log noise variances if noise is learned."""
    d = graph.shape[0]
    weights, variance = np.zeros((d, d)), np.zeros(d)
    for j in range(d):
        parents = np.flatnonzero(graph[:, j])
        weights[parents, j] = np.linalg.lstsq(values[:, parents], values[:, j])[0]
        variance[j] = np.mean((values[:, j] - values @ weights[:, j]) ** 2)
    return LinearTheta(weights, np.log(variance)) if model.noise.learned else weights


@dataclass(frozen=True)
class Bootstrap(Method):
    """A graph from each of many resamples of the rows, weighted by its posterior (the DAG bootstrap).

    For observational data and models with closed-form evidence.

    Parameters
    ----------
    learner
        "pc" or "ges".
    particles
        Number of resamples.
    significance, without_dag
        Options of PC; see `PcSettings`.
    penalty
        Option of GES: factor on the penalty of BIC, under which graphs have too many edges where columns are many and
        rows are few.
    """

    learner: Literal["pc", "ges"] = "ges"
    particles: int = 30
    significance: float = PcSettings.significance
    without_dag: Literal["halve", "drop"] = PcSettings.without_dag
    penalty: float = 1.0

    def __post_init__(self):
        positive("penalty", self.penalty)
        if self.learner == "pc" and self.penalty != 1:
            raise InputError(f"penalty={self.penalty:g} is an option of GES, and the learner is PC: leave it out")
        if self.learner not in ("pc", "ges"):
            raise InputError(f"learner={self.learner!r}: give 'pc' or 'ges'")
        whole_number("particles", self.particles, least=1)
        PcSettings(self.significance, self.without_dag)

    @property
    def name(self) -> str:
        return f"bootstrap-{self.learner}"

    def options(self) -> dict[str, Any]:
        others = {"penalty"} if self.learner == "pc" else {"significance", "without_dag"}
        others |= {"penalty"} if self.penalty == 1 else set()
        return {name: value for name, value in super().options().items() if name not in others}

    def run(self, problem: Problem) -> Posterior:
        return bootstrap(
            problem.data, problem.model, problem.prior, learner=self.learner, particles=self.particles,
            seed=problem.seed, pc=PcSettings(self.significance, self.without_dag), penalty=self.penalty,
            progress=problem.progress, checkpoint=problem.checkpoint, clock=problem.clock,
        )  # fmt: skip
