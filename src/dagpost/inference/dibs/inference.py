"""DiBS from data to posterior: checks and preparation, then the sampler's steps, then the posterior over DAGs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import jax

from dagpost._util.clock import Clock
from dagpost._util.numerics import key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import InputError, whole_number
from dagpost.graphs import all_columns
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.dibs.devices import check_devices
from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.family_terms import kernel_takes
from dagpost.inference.dibs.latent import Embedding
from dagpost.inference.dibs.particles import to_posterior
from dagpost.inference.dibs.posterior import DibsPosterior, evidences
from dagpost.inference.dibs.samplers import Hmc, RmsProp, Schedule, Sgld, as_chain
from dagpost.inference.dibs.settings import Settings, default_settings, paper_settings
from dagpost.inference.dibs.svgd import Callback, ParticleState, initial_state, run, snapshot
from dagpost.inference.dibs.target import Target
from dagpost.inference.method import Method, Problem
from dagpost.models import Model, Statistics
from dagpost.models.conjugate import ConjugateTable
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior

STEPS_SHARE = 0.7
"""Share of a time limit for the steps; the rest is for the moves, or for the parameter steps."""
CLOSING_SHARE = 0.95
"""The same where neither moves nor parameter steps follow; the rest is for scoring the particles."""


class Prepared(NamedTuple):
    """What a run needs before its first step."""

    target: Target
    gradient_stats: Any  # what the gradient reads: statistics, evidence table or rows
    stats: Statistics


def prepare(model: Model, prior: GraphPrior, settings: Settings, data: Dataset, particles: int) -> Prepared:
    """Check that model and settings fit, and return the target, the statistics and what the gradient reads of them."""
    if settings.collapsed and not model.has_evidence:
        raise InputError(f"the model {model.name!r} has no closed-form evidence: set collapsed=False")
    if not model.traceable:
        raise InputError(
            f"DiBS needs a score that JAX can compile, and that of the model {model.name!r} is not one: use "
            "method='auto', which sums over graphs or runs chains, or the model 'additive'"
        )
    if model.categorical and settings.estimator.kind not in ("score", "exact"):
        raise InputError(
            f"the model {model.name!r} counts rows, for hard graphs alone: use method='dibs' with the estimator 'score'"
        )
    if settings.estimator.kind == "gumbel" and not model.soft:
        raise InputError(
            f"the model {model.name!r} is defined for hard graphs only: use the estimator 'straight-through' or 'score'"
        )
    stats = model.summarise(data)
    gradient_stats: Any = stats
    if settings.collapsed:
        counts = model.count_table(stats)
        gradient_stats = model.evidence_table(stats) if counts is None else counts
        if gradient_stats is None:
            raise InputError(f"the evidence of the model {model.name!r} has no compiled table: set collapsed=False")
        if settings.estimator.kind == "flip" and gradient_stats.width > 1:
            raise InputError(f"the flip estimator has no version for the model {model.name!r}: use 'score'")
        if settings.estimator.kind == "flip" and not gradient_stats.diagonal_prior:
            raise InputError("the flip estimator needs a diagonal scale_matrix: use the estimator 'score'")
        if settings.estimator.kind == "exact":
            gradient_stats = evidences(gradient_stats, all_columns(data.nodes))
    elif settings.batch is not None:
        gradient_stats = model.rows(data)
    on_host = jax.default_backend() == "cpu"
    uses_host = on_host and settings.collapsed and settings.estimator.kind in ("flip", "score")
    check_devices(settings.devices, particles, uses_host, isinstance(settings.optimiser, RmsProp))
    chunks = chunk_sizes(model, settings, data.nodes, stats, particles // settings.devices)
    by_kernel = isinstance(gradient_stats, ConjugateTable) and kernel_takes(gradient_stats)
    return Prepared(Target(model, prior, settings, on_host, *chunks, by_kernel), gradient_stats, stats)


def chunk_sizes(model: Model, settings: Settings, d: int, stats: Statistics, particles: int) -> tuple[int, int]:
    """Return how many particles, and samples of each, one step can process at once within the memory limit."""
    samples = max(settings.estimator.samples, settings.acyclicity_samples if settings.acyclicity == "sampled" else 1)
    if settings.estimator.kind == "exact":
        samples = max(samples, len(all_columns(d)))
    floats = 16.0 * d * d
    if settings.collapsed:
        floats = (8.0 if settings.estimator.kind == "flip" else 4.0 * d) * d * d
        if jax.default_backend() != "cpu" or settings.estimator.kind == "gumbel":
            floats = 8.0 * d**3
    elif hasattr(stats.shared, "values"):
        rows = stats.shared.values.shape[0]
        rows = min(settings.batch or rows, rows)
        shapes = jax.eval_shape(lambda k: model.sample_theta(k, d), jax.random.key(0))
        width = sum(leaf.shape[-1] for leaf in jax.tree.leaves(shapes) if len(leaf.shape) > 1)
        floats += 4.0 * d * rows * max(width, 2)
    graphs = settings.memory_limit * 2**30 / (4 * floats)
    if graphs >= samples:
        return min(particles, int(graphs / samples)), samples
    return 1, max(1, int(graphs))


def infer(
    data: Dataset,
    model: Model,
    prior: GraphPrior,
    settings: Settings,
    *,
    particles: int = 30,
    seed: int = 0,
    method: str = "dibs",
    callback: Callback | None = None,
    every: int | None = None,
    progress: bool | None = None,
    checkpoint: Sections | None = None,
    clock: Clock | None = None,
) -> DibsPosterior:
    """Run DiBS with the given settings.

    Parameters
    ----------
    data
        Data set, already standardised if that is wanted.
    model, prior
        Model and graph prior; the settings have to suit the model.
    settings
        See `default_settings` and `paper_settings`.
    particles
        Number of particles.
    seed
        Root of all random numbers of the run.
    method
        Name of the method, for the progress bar and `Posterior.info`.
    callback
        Called with a `Snapshot` after every `every` steps.
    every
        Steps between snapshots; None takes a twentieth of all steps.
    progress
        Whether to show progress; None: on a terminal only.
    checkpoint
        Where the run saves its state; None: nowhere.
    clock
        Time limit: where it leaves no time for all steps and moves, fewer are made.

    Returns
    -------
    DibsPosterior
        One DAG per particle, with equal weights; cyclic particles are dropped or repaired.
    """
    whole_number("particles", particles, least=1)
    target, gradient_stats, stats = prepare(model, prior, settings, data, particles)
    key_start, key_end = jax.random.split(key_from_seed(seed))
    state = initial_state(target, key_start, particles, data.nodes)
    clock = clock or Clock()
    for_steps = clock.until(STEPS_SHARE if settings.moves or settings.parameter_steps else CLOSING_SHARE)
    with progress_bar(f"{method}, {particles} particles", settings.steps, progress) as advance:
        section = section_of(checkpoint, "dibs")
        state: ParticleState = run(target, state, gradient_stats, every, callback, advance, section, for_steps)
    moves = section_of(checkpoint, "moves")
    return to_posterior(target, snapshot(target, state), data, stats, key_end, method, progress, moves, clock)


@dataclass(frozen=True)
class Dibs(Method):
    """Differentiable Bayesian structure learning (DiBS): gradients on a latent embedding of graphs.

    Every field after `published` is one of `dp.dibs.Settings`, where it is described; None leaves it to
    `dp.dibs.default_settings`, or to `dp.dibs.paper_settings` where `published` is set.

    Parameters
    ----------
    particles
        Number of particles: graphs, with their parameters where the model has any.
    published
        Everything as in the paper, in place of our defaults.

    >>> import dagpost as dp
    >>> data = dp.simulate(nodes=4, observations=50, seed=0).train
    >>> len(dp.fit(data, method=dp.Dibs(particles=5, steps=50, moves=0)))
    5
    """

    watchable: ClassVar[bool] = True

    particles: int = 30
    published: bool = False
    steps: int | None = None
    sampler: str | Sgld | Hmc | None = None
    alpha: Schedule | None = None
    beta: Schedule | None = None
    bandwidth_z: float | None = None
    bandwidth_theta: float | None = None
    estimator: Estimator | None = None
    embedding: Embedding | None = None
    optimiser: RmsProp | None = None
    acyclicity: Literal["mean-field", "sampled"] | None = None
    acyclicity_samples: int | None = None
    shared_noise: bool | None = None
    collapsed: bool | None = None
    batch: int | None = None
    scaled: bool | None = None
    cyclic: Literal["drop", "repair"] | None = None
    moves: int | None = None
    parameter_steps: int | None = None
    draw_parameters: bool | None = None
    memory_limit: float | None = None
    devices: int | None = None

    def __post_init__(self):
        whole_number("particles", self.particles, least=1)
        if self.steps is not None:
            whole_number("steps", self.steps, least=1)
        as_chain(self.sampler or "svgd")

    @property
    def name(self) -> str:
        return "dibs-paper" if self.published else "dibs"

    def changes(self) -> dict[str, Any]:
        """Settings that differ from the preset, by name."""
        return {name: value for name, value in self.options().items() if name not in ("particles", "published")}

    def settings(self, model: Model, d: int, rows: int) -> Settings:
        """Settings for this model on d nodes and so many rows."""
        preset = paper_settings if self.published else default_settings
        return preset(model, d, rows, **self.changes())

    def plan(self, problem: Problem) -> str:
        data = problem.data
        settings = self.settings(problem.model, data.nodes, data.observations)
        kind = "" if settings.chain is None else f" of {type(settings.chain).__name__.upper()}"
        size = f"{self.particles} particles and {settings.steps:,} steps{kind}"
        return f"DiBS with {size}, an approximation of the posterior"

    def run(self, problem: Problem) -> Posterior:
        data, model = problem.data, problem.model
        return infer(
            data, model, problem.prior, self.settings(model, data.nodes, data.observations), particles=self.particles,
            seed=problem.seed, method=self.name, callback=problem.callback, every=problem.every,
            progress=problem.progress, checkpoint=problem.checkpoint, clock=problem.clock,
        )  # fmt: skip
