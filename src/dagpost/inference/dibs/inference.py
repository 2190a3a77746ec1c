"""DiBS from data to posterior: checks and preparation, then SVGD, then the posterior over DAGs."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from dagpost._util.clock import Clock
from dagpost._util.numerics import key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import InputError, whole_number
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.dibs.particles import to_posterior
from dagpost.inference.dibs.settings import Settings
from dagpost.inference.dibs.svgd import Callback, State, initial_state, run, snapshot
from dagpost.inference.dibs.target import Target
from dagpost.models import Model, Statistics
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior

STEPS_SHARE = 0.7
"""Share of a time limit for the SVGD steps; the rest is for the moves, or for the parameter steps."""
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
    if settings.estimator.kind == "gumbel" and not model.soft:
        raise InputError(
            f"the model {model.name!r} is defined for hard graphs only: use the estimator 'straight-through' or 'score'"
        )
    stats = model.summarise(data)
    gradient_stats: Any = stats
    if settings.collapsed:
        gradient_stats = model.evidence_table(stats)
        if gradient_stats is None:
            raise InputError(f"the evidence of the model {model.name!r} has no compiled table: set collapsed=False")
        if settings.estimator.kind == "flip" and not gradient_stats.diagonal_prior:
            raise InputError("the flip estimator needs a diagonal scale_matrix: use the estimator 'score'")
    elif settings.batch is not None:
        gradient_stats = model.rows(data)
    on_host = jax.default_backend() == "cpu"
    chunks = chunk_sizes(model, settings, data.nodes, stats, particles)
    return Prepared(Target(model, prior, settings, on_host, *chunks), gradient_stats, stats)


def chunk_sizes(model: Model, settings: Settings, d: int, stats: Statistics, particles: int) -> tuple[int, int]:
    """Return how many particles, and samples of each, one step can process at once within the memory limit."""
    samples = max(settings.estimator.samples, settings.acyclicity_samples if settings.acyclicity == "sampled" else 1)
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
) -> Posterior:
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
        Number of SVGD particles.
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
    Posterior
        One DAG per particle, with equal weights; cyclic particles are dropped or repaired.
    """
    whole_number("particles", particles, least=1)
    target, gradient_stats, stats = prepare(model, prior, settings, data, particles)
    key_start, key_end = jax.random.split(key_from_seed(seed))
    state = initial_state(target, key_start, particles, data.nodes)
    every = every or max(1, settings.steps // 20)
    clock = clock or Clock()
    for_steps = clock.until(STEPS_SHARE if settings.moves or settings.parameter_steps else CLOSING_SHARE)
    with progress_bar(f"{method}, {particles} particles", settings.steps, progress) as advance:
        section = section_of(checkpoint, "dibs")
        state: State = run(target, state, gradient_stats, every, callback, advance, section, for_steps)
    moves = section_of(checkpoint, "moves")
    return to_posterior(target, snapshot(target, state), data, stats, key_end, method, progress, moves, clock)
