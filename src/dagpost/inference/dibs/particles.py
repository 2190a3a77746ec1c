"""From latent particles to a posterior over DAGs.

`to_posterior` reads a DAG off every particle, drops or repairs cyclic ones, and makes the final Metropolis moves or
parameter steps. The parameter steps are needed because DiBS optimises parameters under graphs sampled from the
particle: while edges are undecided they are a compromise between many graphs. The final DAG is a different one: its
edges are decided, and a cycle may have been broken. Parameters left as they are can predict held-out rows a hundred
times worse than those of other particles, so each particle's parameters climb to the nearest mode of `p(theta | G, D)`
for its own DAG (`optimise_parameters`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float

from dagpost._util.clock import Clock, Pace
from dagpost._util.numerics import jitted, map_chunked
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import AllCyclic
from dagpost.graphs import is_acyclic, with_few_parents, without_cycles
from dagpost.inference.checkpoints import NULL_SECTION, Section
from dagpost.inference.dibs.latent import Embedding
from dagpost.inference.dibs.posterior import DibsPosterior, Latent
from dagpost.inference.dibs.svgd import Snapshot
from dagpost.inference.dibs.target import Target, minibatch
from dagpost.inference.mcmc import equilibrate
from dagpost.models import Model, Statistics
from dagpost.models.family_evidence import CAREFUL
from dagpost.models.integrated import Integrated, common_families
from dagpost.posterior import log_joint_of
from dagpost.posterior.records import ParticleDiagnostics, RunRecord, Sampling, Verdict
from dagpost.typing import Graphs, Key, Theta

RATE = 0.02
"""Initial learning rate of Adam; it falls to a hundredth of that along a cosine."""


def optimise_parameters(
    target: Target, graphs: Graphs, theta: Theta, stats: Any, key: Key, clock: Clock | None = None
) -> Theta:
    """Return each particle's parameters after `settings.parameter_steps` Adam steps up `log p(theta, D | G)` for its
    own DAG; fewer steps if the clock expires."""
    total = target.settings.parameter_steps
    state = _initial_state(target, jnp.asarray(graphs, dtype=float), jax.tree.map(jnp.asarray, theta), key)
    stats = jax.tree.map(jnp.asarray, stats)
    for count in Pace().parts(total, clock):
        state = jax.block_until_ready(_parameter_steps(target, state, stats, count, total))
    return state["theta"]


def _optimiser(total: Any) -> optax.GradientTransformation:
    """Return Adam with a cosine schedule over `total` steps."""
    return optax.chain(
        optax.scale_by_adam(),
        optax.scale_by_schedule(lambda step: -RATE * (0.01 + 0.99 * 0.5 * (1 + jnp.cos(jnp.pi * step / total)))),
    )


def _initial_state(target: Target, graphs: Any, theta: Any, key: Key) -> dict[str, Any]:
    """Return the optimisation state before the first step."""
    return {"key": key, "graphs": graphs, "theta": theta, "optimiser": _optimiser(1).init(theta)}


@partial(jitted, static_argnums=0)
def _parameter_steps(target: Target, state: dict[str, Any], stats: Any, count: Any, total: Any) -> dict[str, Any]:
    """Return the state after `count` of `total` steps."""
    model, settings = target.model, target.settings

    def one(pair, rows, scale):
        graph, theta = pair

        def family(g_j, theta_j, stats_j):
            return scale * model.log_conditional(g_j, theta_j, stats_j) + model.log_parameter_prior(g_j, theta_j)

        return jax.grad(lambda theta: -jnp.sum(model.by_node(family, graph, theta, rows)))(theta)

    def step(_, state):
        key, key_rows = jax.random.split(state["key"])
        rows, scale = minibatch(key_rows, model, stats, settings.batch)
        particles = (state["graphs"], state["theta"])
        downhill = map_chunked(lambda pair: one(pair, rows, scale), particles, target.chunk)
        updates, optimiser = _optimiser(total).update(downhill, state["optimiser"])
        return {**state, "key": key, "theta": optax.apply_updates(state["theta"], updates), "optimiser": optimiser}

    return jax.lax.fori_loop(0, count, step, state)


def to_posterior(
    target: Target, last: Snapshot, data: Dataset, stats: Statistics, key: Key, method: str,
    progress: bool | None = None, section: Section = NULL_SECTION, clock: Clock | None = None,
) -> DibsPosterior:  # fmt: skip
    """Return the DAGs of the particles with equal weights; cyclic particles are dropped or repaired, and counted.

    A run cut short by its time limit repairs cyclic particles if all are cyclic, whatever the settings. Where prior
    knowledge bounds the number of parents, the weakest parents in excess are removed; required edges stay.
    """
    key_moves, key_theta = jax.random.split(key)
    settings, model = target.settings, target.model
    scores = np.asarray(_scores(settings.embedding, last.z))
    graphs, theta, known = last.graphs, last.theta, target.known
    if known is not None:
        scores = np.stack([known.strength(s) for s in scores])
        graphs = np.stack([with_few_parents(g, s, known.most_parents) for g, s in zip(graphs, scores)])
    acyclic = is_acyclic(graphs)
    cut_short = clock is not None and clock.limit is not None and last.made < last.steps
    handling = "repair" if cut_short and not acyclic.any() else settings.cyclic
    if handling == "repair":
        graphs = np.stack([g if ok else without_cycles(g, s) for g, ok, s in zip(graphs, acyclic, scores)])
        kept = np.arange(len(graphs))
    else:
        kept = np.flatnonzero(acyclic)
        if len(kept) == 0:
            raise AllCyclic(
                f"all {len(graphs)} particles have a cycle after {last.step} steps: run more steps, raise beta, "
                "or set cyclic='repair'",
                int(last.step),
            )
    graphs = graphs[kept]
    moves = settings.moves if target.prior.components(data.nodes) else 0
    if moves:
        with progress_bar(f"{method}, {moves:,} moves per particle", len(graphs), progress) as done:
            graphs, moves = equilibrate(graphs, moves, model, target.prior, stats, key_moves, done, section, clock)
    theta: Any = jax.tree.map(lambda leaf: np.asarray(leaf)[kept], theta)
    if settings.parameter_steps and jax.tree.leaves(theta) and not cut_short:  # if cut short, no time is left
        rows = stats if settings.batch is None else model.rows(data)
        theta = jax.tree.map(np.asarray, optimise_parameters(target, graphs, theta, rows, key_theta, clock))
    drawn = settings.draw_parameters and model.has_parameters and not settings.collapsed
    scored = _with_evidence(model, graphs, stats, clock or Clock(), progress) if drawn else model
    joint = log_joint_of(graphs, () if drawn else theta, scored, target.prior, stats)
    if drawn or (settings.collapsed and model.has_parameters):
        theta = scored.draw_thetas(jax.random.split(key_theta, len(graphs)), graphs, stats)
    early = cut_short or moves < settings.moves
    return DibsPosterior(
        graphs=graphs,
        log_weights=np.zeros(len(graphs)),
        names=data.names,
        model=model,
        prior=target.prior,
        theta=theta,
        log_joint=joint,
        record=RunRecord(
            method,
            Sampling(sample=moves > 0, collapsed=settings.collapsed or drawn),
            ParticleDiagnostics(
                len(last.z),
                int((~acyclic).sum()),
                last.made,
                handling,
                moves,
                last.acceptance,
                ended_by="limit" if early else "steps",
            ),
            Verdict(_cut_short(last, moves, settings.moves) if early else _approximate(graphs, int((~acyclic).sum()))),
        ),
        latent=latent_particles(target, last),
    )


@partial(jax.jit, static_argnums=0)
def _scores(embedding: Embedding, z: Float[Array, "m ..."]) -> Float[Array, "m d d"]:
    """Return the edge scores of every particle."""
    return jax.vmap(embedding.scores)(z)


def latent_particles(target: Target, last: Snapshot) -> Latent:
    """Return the particles with the log odds of their edges at the last alpha."""
    scores = np.asarray(_scores(target.settings.embedding, last.z), dtype=np.float64)
    known, loops = target.known, np.eye(scores.shape[-1], dtype=np.bool_)
    free = ~loops if known is None else np.asarray(known.free) & ~loops
    certain = -np.inf if known is None else np.where(known.required, np.inf, -np.inf)
    log_odds = np.where(free, last.alpha * scores, certain)
    return Latent(last.z, last.theta, last.alpha, last.beta, log_odds, target.settings.chain is not None)


def _with_evidence(model: Model, graphs: Graphs, stats: Statistics, clock: Clock, progress: bool | None) -> Model:
    """Return the model with evidence; without a closed form, estimated carefully for the families of the graphs as long
    as the clock runs."""
    if model.has_evidence:
        return model
    scored = Integrated(model, stats)
    families = [(family, CAREFUL) for family in common_families(graphs, 0.0)]
    with progress_bar(f"evidence of {len(families)} families", len(families), progress) as advance:
        for _ in scored.improve(families, clock):
            advance(1)
    return scored


def _approximate(graphs: Graphs, cyclic: int) -> str:
    """Return the verdict on a complete run."""
    different = len(np.unique(graphs.reshape(len(graphs), -1), axis=0))
    lost = f", {cyclic} with a cycle" if cyclic else ""
    return (
        f"DiBS is an approximation that cannot measure its own error: {len(graphs)} particles, {different} different "
        f"graphs{lost}; probabilities come in steps of 1/{len(graphs)}. Compare runs with other seeds (--seed, seed=)."
    )


def _cut_short(last: Snapshot, moves: int, planned: int) -> str:
    """Return the verdict on a run that its time limit ended before all steps and moves were made."""
    made = f"{last.made:,} of {last.steps:,} steps"
    if planned:
        made += f" and {moves:,} of {planned:,} moves per particle"
    return f"The time limit cut DiBS short after {made}: treat this as a first look, or raise time_limit."
