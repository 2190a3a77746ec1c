"""Stein variational gradient descent (SVGD) on particles (z, theta): algorithms 1 and 2 of the paper in one.

The kernel and the update direction in matrix form, the step, and the loop over the steps of any sampler (`chains.py`
has those of the others) with its time limit, checkpoints and snapshots.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dagpost._util.clock import PART_SECONDS, Clock
from dagpost._util.numerics import generator, in_host_memory, jitted
from dagpost._util.progress import Advance
from dagpost.errors import RunError
from dagpost.graphs import is_acyclic
from dagpost.inference.checkpoints import NULL_SECTION, Section, State
from dagpost.inference.checkpoints.checkpoint import tree_from_arrays, tree_to_arrays
from dagpost.inference.dibs.chains import hamiltonian_step, initial_chains, langevin_step
from dagpost.inference.dibs.devices import (
    by_device,
    check_undisturbed,
    collected,
    gathered,
    spread,
)
from dagpost.inference.dibs.latent import edge_probabilities, limiting_graph
from dagpost.inference.dibs.samplers import Hmc, Sgld
from dagpost.inference.dibs.target import Target, gradients
from dagpost.models import Model
from dagpost.typing import Key


def squared_distances(particles: Float[Array, "m p"], others: Float[Array, "n p"]) -> Float[Array, "m n"]:
    """Return `|x_a - x_b|²` of all pairs."""
    inner = particles @ others.T
    return jnp.maximum(jnp.sum(particles**2, axis=1)[:, None] + jnp.sum(others**2, axis=1)[None, :] - 2 * inner, 0.0)


def flatten(tree: Any) -> Float[Array, "m p"]:
    """Return the leaves of each particle concatenated in one row."""
    leaves = jax.tree.leaves(tree)
    return jnp.concatenate([leaf.reshape(leaf.shape[0], -1) for leaf in leaves], axis=1)


def directions(
    z: Array, theta: Any, z_gradient: Array, theta_gradient: Any, bandwidth_z, bandwidth_theta, devices: int = 1
):
    """Return `phi` of every particle for the additive kernel `k = exp(-|z - z'|²/gz) + exp(-|theta - theta'|²/gt)`.

    For each part x of a particle, `phi^x(a) = 1/M sum_b [k(b, a) grad_b + d k(b, a) / d x_b]` (algorithm 2), and
    only the part's own summand of the kernel depends on x_b:

        phi^x = (K grad - 2/g (K_x x - x rowsum(K_x))) / M.

    Without parameters the kernel has its first summand only. One particle gives `phi = k(x, x) grad`, with
    `k(x, x) = 2` for the joint kernel. With several devices a runs over the particles of this one, and b over all.
    """
    count = z.shape[0]
    has_theta = len(jax.tree.leaves(theta)) > 0

    def kernel_of(x, bandwidth):
        return jnp.exp(-squared_distances(x, gathered(x, devices)) / bandwidth)

    kernel_z = kernel_of(flatten(z), bandwidth_z)
    kernel_theta = kernel_of(flatten(theta), bandwidth_theta) if has_theta else jnp.zeros(())
    kernel = kernel_z + kernel_theta

    def phi(part, gradient, own, bandwidth):
        x, g = part.reshape(count, -1), gathered(gradient.reshape(count, -1), devices)
        repulsion = -2.0 / bandwidth * (own @ gathered(x, devices) - x * jnp.sum(own, axis=1, keepdims=True))
        return ((kernel @ g + repulsion) / (count * devices)).reshape(part.shape)

    phi_z = phi(z, z_gradient, kernel_z, bandwidth_z)
    if not has_theta:
        return phi_z, theta
    phi_theta = jax.tree.map(lambda t, g: phi(t, g, kernel_theta, bandwidth_theta), theta, theta_gradient)
    return phi_z, phi_theta


class ParticleState(NamedTuple):
    """State of a run: everything needed to continue it."""

    step: Any  # steps made
    position: Any  # step on the schedules: equals `step`, unless a time limit shortens the run
    key: Any
    z: Any
    theta: Any
    optimiser: Any  # of SVGD; `ChainState` of the other samplers


class Snapshot(NamedTuple):
    """State of the particles as a callback gets it.

    Attributes
    ----------
    step
        Step on the schedules.
    steps
        Planned steps.
    made
        Steps made; fewer than `step` where a time limit shortens the run.
    alpha, beta
        Inverse temperature of the edges and weight of the acyclicity penalty.
    z
        Latent variables of the m particles.
    theta
        Their parameters, or `()` if these are integrated out.
    edge_probabilities
        `p(i -> j | z)` of every particle, (m, d, d).
    graphs
        Graph of every particle at infinite alpha, (m, d, d).
    cyclic
        Number of particles whose graph has a cycle.
    acceptance
        Of HMC: share of accepted trajectories, averaged over recent steps.
    """

    step: int
    steps: int
    made: int
    alpha: float
    beta: float
    z: np.ndarray
    theta: Any
    edge_probabilities: np.ndarray
    graphs: np.ndarray
    cyclic: int
    acceptance: float | None = None


Callback = Callable[[Snapshot], None]


class Diverged(RunError):
    """A particle became NaN or infinite; `state` is the last finite one."""

    def __init__(self, message: str, state: ParticleState):
        super().__init__(message)
        self.state = state


def initial_state(target: Target, key: Key, particles: int, d: int) -> ParticleState:
    """Return the initial state, with particles drawn from their priors."""
    settings = target.settings
    key_z, key_theta, key_run = jax.random.split(key, 3)
    rng = generator(key_z)
    with in_host_memory() if settings.devices > 1 else nullcontext():  # one of several may not hold all
        z = jnp.asarray(np.stack([settings.embedding.sample(rng, d) for _ in range(particles)]), dtype=float)
        theta: Any = ()
        if not settings.collapsed:
            theta = _draw_thetas(target.model, jax.random.split(key_theta, particles), d)
        start = jnp.zeros((), dtype=int), jnp.zeros((), dtype=float)
        if settings.chain is None:
            memory = settings.optimiser().init((z, theta))
        else:
            key_run, key_chains = jax.random.split(key_run)
            memory = initial_chains(key_chains, z, theta)
        state = ParticleState(*start, key_run, z, theta, memory)
    return spread(state, settings.devices, particles)


@partial(jax.jit, static_argnums=(0, 2))
def _draw_thetas(model: Model, keys: Key, d: int) -> Any:
    """Return draws of the parameters from their prior, one for each key."""
    return jax.vmap(lambda key: model.sample_theta(key, d))(keys)


def step(target: Target, state: ParticleState, stats: Any, pace: Any = 1.0) -> ParticleState:
    """Return the state after one step of every particle; the schedules advance by `pace`."""
    settings = target.settings
    key_gradient, key_next = jax.random.split(state.key)
    alpha, beta = settings.alpha(state.position), settings.beta(state.position)
    if settings.chain is not None:
        move: Any = langevin_step if isinstance(settings.chain, Sgld) else hamiltonian_step
        (z, theta), chains = move(target, settings.chain, key_gradient, state.step, state.position,
                                  (state.z, state.theta), state.optimiser, alpha, beta, stats)  # fmt: skip
        return ParticleState(state.step + 1, state.position + pace, key_next, z, theta, chains)
    by_z, by_theta = gradients(target, key_gradient, state.z, state.theta, alpha, beta, stats)
    phi = directions(
        state.z, state.theta, by_z, by_theta, settings.bandwidth_z, settings.bandwidth_theta, settings.devices
    )
    downhill = jax.tree.map(jnp.negative, phi)
    updates, optimiser = settings.optimiser().update(downhill, state.optimiser)
    z, theta = jax.tree.map(jnp.add, (state.z, state.theta), updates)
    return ParticleState(state.step + 1, state.position + pace, key_next, z, theta, optimiser)


@partial(jitted, static_argnums=0)
def _run_steps(target: Target, state: ParticleState, stats: Any, count: Any, pace: Any) -> tuple[ParticleState, Any]:
    """Return the state after `count` steps and whether it is finite; `count` is traced, so it compiles once."""

    def steps(state, stats, count, pace):
        return jax.lax.fori_loop(0, count, lambda _, s: step(target, s, stats, pace), state)

    state = by_device(steps, target.settings.devices, state.z.shape[0])(state, stats, count, pace)
    leaves = jax.tree.leaves((state.z, state.theta))
    return state, jnp.all(jnp.stack([jnp.isfinite(leaf).all() for leaf in leaves]))


def run(
    target: Target, state: ParticleState, stats: Any, every: int | None = None, callback: Callback | None = None,
    advance: Advance = lambda amount: None, section: Section = NULL_SECTION, clock: Clock | None = None,
) -> ParticleState:  # fmt: skip
    """Run all remaining steps; `advance` gets progress, and `callback` a snapshot after every `every` steps (None: a
    twentieth of all steps; without a callback, calls of compiled code then grow longer).

    Exactly `settings.steps` steps are run, whether or not `every` divides them. The result does not depend on how steps
    are grouped into compiled calls, so a run may be split, saved and resumed anywhere. Where the clock leaves no time
    for all steps, fewer steps pass through the whole schedules (`_Pacer`).
    """
    devices = target.settings.devices
    clock = check_undisturbed(devices, section, clock or Clock())
    stats = spread(jax.tree.map(jnp.asarray, stats), devices, None)
    if section.found is not None:
        state = spread(tree_from_arrays(state, section.found.arrays), devices, state.z.shape[0])
    done, steps = float(state.position), target.settings.steps
    pacer = _Pacer(clock)
    advance(done)
    # with several processes calls do not grow: they have to make the same ones, and their clocks differ
    grows = every is None and callback is None and devices == 1
    every = every or max(1, steps // 20)
    ahead = 1  # such intervals per call of compiled code
    while done < steps - 0.5 and pacer.affords_a_step():
        pace, shown, before = pacer.pace(steps - done), done, clock.seconds
        stop = min(every * (int(done + 0.5) // every + ahead), steps)
        for count in section.parts(max(1, math.ceil((stop - done) / pace - 1e-3)), clock):
            started = clock.seconds
            following, finite = _run_steps(target, state, stats, count, pace)
            reached, finite = jax.device_get((following.position, finite))  # waits for the device, once
            if not finite:
                raise Diverged(f"a particle became infinite between steps {done:.0f} and {done + count:.0f}", state)
            advance(float(reached) - done)
            state, done = following, float(reached)
            pacer.record(count, clock.seconds - started)
            section.reached(partial(_to_saved_state, state))
            if not pacer.fits(pace, steps - done):
                break
        if callback is not None and (int(done + 0.5) // every > int(shown + 0.5) // every or done >= steps - 0.5):
            callback(snapshot(target, state))
        elif done == shown:
            break  # out of time
        elif grows and clock.seconds - before < PART_SECONDS / 2:
            ahead *= 2
    return state


class _Pacer:
    """Chooses how fast the schedules advance, so that they end when the clock expires."""

    def __init__(self, clock: Clock):
        self.clock, self.steps, self.seconds = clock, 0, 0.0

    def record(self, steps: int, seconds: float) -> None:
        """Record that `steps` steps took `seconds`."""
        self.steps, self.seconds = self.steps + steps, self.seconds + seconds

    def affords_a_step(self) -> bool:
        """Return whether there is time for about one more step."""
        return self.clock.limit is None or self.seconds / max(self.steps, 1) < 2 * self.clock.left

    def pace(self, left: float) -> float:
        """Return the schedule steps per step: 1, or more if the clock leaves no time for the `left` remaining ones."""
        if self.clock.limit is None or self.steps == 0:
            return 1.0
        affordable = max(self.clock.left * self.steps / max(self.seconds, 1e-9), 1.0)
        return max(1.0, left / affordable)

    def fits(self, pace: float, left: float) -> bool:
        """Return whether `pace` is still close to what the clock requires."""
        return self.clock.limit is None or 0.8 * self.pace(left) <= pace <= max(1.0, 1.5 * self.pace(left))


def _to_saved_state(state: ParticleState) -> State:
    """Return the state as named arrays, for a checkpoint."""
    return State(tree_to_arrays(state), {})


@partial(jax.jit, static_argnums=0)
def _inspect(target: Target, state: ParticleState) -> tuple[Any, ...]:
    """Return alpha, beta, edge probabilities and limiting graphs of the latest step."""
    settings = target.settings
    scores = jax.vmap(settings.embedding.scores)(state.z)
    last = jnp.maximum(state.position - 1, 0)
    alpha = settings.alpha(last)
    probabilities = jax.vmap(lambda s: edge_probabilities(s, alpha, target.known))(scores)
    return alpha, settings.beta(last), probabilities, limiting_graph(scores, target.known)


def snapshot(target: Target, state: ParticleState) -> Snapshot:
    """Return the state as plain arrays, with edge probabilities and graphs."""
    devices = target.settings.devices
    acceptance = None
    if isinstance(target.settings.chain, Hmc):
        acceptance = float(collected(state.optimiser.acceptance, devices))
    if devices > 1:
        z, theta, position, made = collected((state.z, state.theta, state.position, state.step), devices)
        state = state._replace(z=z, theta=theta, position=position, step=made, key=None, optimiser=None)
    alpha, beta, probabilities, graphs = jax.tree.map(np.asarray, _inspect(target, state))
    return Snapshot(
        step=round(float(state.position)),
        steps=target.settings.steps,
        made=int(state.step),
        alpha=float(alpha),
        beta=float(beta),
        z=np.asarray(state.z),
        theta=jax.tree.map(np.asarray, state.theta),
        edge_probabilities=probabilities,
        graphs=graphs,
        cyclic=int((~is_acyclic(graphs)).sum()),
        acceptance=acceptance,
    )
