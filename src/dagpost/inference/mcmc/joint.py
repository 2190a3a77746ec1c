"""Joint MCMC over graphs and parameters, the paper's baselines M-MC³ and G-MC³.

M-MC³ proposes a neighbouring DAG and a random-walk step of the parameters in one Metropolis-Hastings move; G-MC³
alternates between them (Metropolis within Gibbs). The parameters of absent edges are part of the state and follow their
prior, so that the dimension stays the same and integrating them out leaves `p(G, Theta | D)`.

`joint_mc3_batched` runs many data sets of one shape at once: a step is so short that launching it dominates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from dagpost._util.clock import Clock
from dagpost._util.numerics import jitted, key_from_seed
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.data.checks import check_same_shape, member, stack_trees
from dagpost.errors import InputError, positive
from dagpost.inference.checkpoints import State
from dagpost.inference.checkpoints.checkpoint import tree_from_arrays, tree_to_arrays
from dagpost.inference.checkpoints.recorder import Sections, section_of
from dagpost.inference.mcmc.mc3 import SingleChain, Thinning
from dagpost.inference.method import Problem
from dagpost.models import Model
from dagpost.posterior import Posterior, log_joint_of
from dagpost.priors import GraphPrior
from dagpost.typing import Graphs, Theta

TARGET_ACCEPTANCE = 0.2  # acceptance rate of random-walk steps (Sherlock et al., 2010)

# initial scale of the random walk: the authors' configuration, by variant and model, at d = 20 and at d = 50
PUBLISHED_SCALES: dict[tuple[str, str], dict[int, float]] = {
    ("m", "linear"): {20: 0.001, 50: 0.001},
    ("m", "mlp"): {20: 0.0001, 50: 0.0001},
    ("g", "linear"): {20: 0.05, 50: 0.01},
    ("g", "mlp"): {20: 0.005, 50: 0.001},
}


class Chain(NamedTuple):
    """State of a chain."""

    key: Any
    graph: Any  # (d, d) 0/1
    theta: Any
    log_density: Any
    log_scale: Any
    accepted: Any  # parameter steps (M-MC³: joint steps)
    tried: Any


class Kernel(NamedTuple):
    """What a step depends on, apart from the data."""

    model: Model
    prior: GraphPrior
    variant: str
    exact: bool


def valid_edits(graph):
    """Return the edges that can be added, removed and reversed: (3, d, d) masks of the edits that lead to a DAG."""
    d = graph.shape[0]
    reach = graph
    for _ in range(max(1, int(np.ceil(np.log2(max(d, 2)))))):
        reach = jnp.minimum(reach + reach @ reach, 1.0)
    absent = 1.0 - graph - jnp.eye(d)
    detour = jnp.minimum(reach @ graph, 1.0)
    return jnp.stack([absent * (1 - reach.T), graph, graph * (1 - detour)])


def propose(key, graph):
    """Return a uniform draw among the neighbours, and the log of their number."""
    edits = valid_edits(graph).reshape(-1)
    choice = jax.random.categorical(key, jnp.where(edits > 0, 0.0, -jnp.inf))
    d = graph.shape[0]
    kind, i, j = choice // (d * d), choice // d % d, choice % d
    return (
        graph.at[i, j].set(jnp.where(kind == 0, 1.0, 0.0)).at[j, i].add(jnp.where(kind == 2, 1.0, 0.0)),
        jnp.log(jnp.sum(edits)),
    )


def log_density(kernel: Kernel, graph, theta, stats):
    """Return `log p(G) + log p(D | G, Theta) + log p(Theta)`, parameters of absent edges included."""
    model = kernel.model
    likelihood = jnp.sum(model.by_node(model.log_conditional, graph, theta, stats))
    everywhere = jnp.ones_like(graph) - jnp.eye(graph.shape[0])
    of_parameters = jnp.sum(
        model.by_node(lambda g_j, theta_j, _: model.log_parameter_prior(g_j, theta_j), everywhere, theta, stats)
    )
    return kernel.prior.log_density(graph) + likelihood + of_parameters


def step(kernel: Kernel, chain: Chain, stats: Any, adapt_rate, least_log_scale) -> Chain:
    """Return the chain after one step; `adapt_rate` 0 leaves the scale of the random walk as it is."""
    key, key_graph, key_theta, key_1, key_2 = jax.random.split(chain.key, 5)
    leaves, shape = jax.tree.flatten(chain.theta)
    noise = [jax.random.normal(k, leaf.shape) for k, leaf in zip(jax.random.split(key_theta, len(leaves)), leaves)]
    walked = jax.tree.map(lambda leaf, e: leaf + jnp.exp(chain.log_scale) * e, chain.theta, shape.unflatten(noise))
    neighbour, log_size = propose(key_graph, chain.graph)
    correction = log_size - jnp.log(jnp.sum(valid_edits(neighbour))) if kernel.exact else 0.0

    def metropolis(key, graph, theta, density, new_graph, new_theta, correction):
        new = log_density(kernel, new_graph, new_theta, stats)
        yes = jnp.log(jax.random.uniform(key)) < new - density + correction
        pick = partial(jax.tree.map, partial(jnp.where, yes))
        return pick(new_graph, graph), pick(new_theta, theta), jnp.where(yes, new, density), yes

    graph, theta, density = chain.graph, chain.theta, chain.log_density
    if kernel.variant == "m":
        graph, theta, density, yes = metropolis(key_1, graph, theta, density, neighbour, walked, correction)
    else:
        graph, theta, density, _ = metropolis(key_1, graph, theta, density, neighbour, theta, correction)
        graph, theta, density, yes = metropolis(key_2, graph, theta, density, graph, walked, 0.0)
    log_scale = jnp.maximum(chain.log_scale + adapt_rate * (yes - TARGET_ACCEPTANCE), least_log_scale)
    return Chain(key, graph, theta, density, log_scale, chain.accepted + yes, chain.tried + 1)


@partial(jitted, static_argnums=0)
def run_steps(kernel: Kernel, chain: Chain, stats: Any, count: Any, adapt_rate, least_log_scale) -> Chain:
    """Return the chain after `count` steps; `count` is traced, so it compiles once."""
    return lax.fori_loop(0, count, lambda _, c: step(kernel, c, stats, adapt_rate, least_log_scale), chain)


def joint_mc3(
    data: Dataset, model: Model, prior: GraphPrior, *, variant: Literal["m", "g"], particles: int, seed: int,
    thinning: Thinning, scale: float | None = None, progress: bool | None = None,
    checkpoint: Sections | None = None, clock: Clock | None = None,
) -> Posterior:  # fmt: skip
    """Sample `particles` pairs of a graph and its parameters from one chain; fewer if the clock expires, at least one.

    Unless `scale` is given, the scale of the random walk is adapted during burn-in to an acceptance rate of 0.2. It
    never falls below the published one: where graph moves alone are accepted more rarely than that, as in M-MC³, it
    would shrink to zero.
    """
    name, d = f"{variant}-mc3", data.nodes
    clock = clock or Clock()
    first_scale = initial_scale(variant, model, d) if scale is None else positive("scale", scale)
    least = float(np.log(first_scale))
    stats = jax.tree.map(jnp.asarray, model.summarise(data))
    kernel = make_kernel(model, prior, variant, thinning)
    chain = initial_chain(kernel, d, stats, seed, first_scale)
    total = thinning.steps(particles)
    graphs, thetas = [], []
    section, warmed = section_of(checkpoint, "chain"), 0
    if section.found is not None:
        chain, graphs, thetas, warmed = _restore(section.found, chain)

    def run_interruptibly(chain: Chain, count: int, rate: float) -> Chain:
        for part in section.parts(count, clock):
            chain = jax.block_until_ready(run_steps(kernel, chain, stats, part, rate, least))
            section.check()
        return chain

    with progress_bar(f"{name}, {total:,} steps", total, progress) as bar:
        warm_up = thinning.warm_up()
        bar(sum(warm_up[:warmed]) + len(graphs) * thinning.thin)
        for part in range(warmed, len(warm_up)):
            rate = 0.0 if scale is not None else adaptation_rate(part, len(warm_up))
            chain = run_interruptibly(chain, warm_up[part], rate)
            if clock.expired:
                break
            bar(warm_up[part])
            section.reached(partial(_state, chain, graphs, thetas, 0, part + 1))
        if not graphs:
            chain = chain._replace(accepted=jnp.zeros(()), tried=jnp.zeros(()))
        while len(graphs) < particles:
            chain = run_interruptibly(chain, thinning.thin, 0.0)
            if clock.expired and graphs:
                break
            graphs.append(np.asarray(chain.graph) > 0.5)
            thetas.append(jax.tree.map(np.asarray, chain.theta))
            bar(thinning.thin)
            section.reached(partial(_state, chain, graphs, thetas, len(graphs), len(warm_up)))
    thetas = jax.tree.map(lambda *leaves: np.stack(leaves), *thetas)
    return joint_posterior(kernel, data, np.stack(graphs), thetas, thinning, chain, particles)


def make_kernel(model: Model, prior: GraphPrior, variant: str, thinning: Thinning) -> Kernel:
    """Return the kernel of a variant; the model must have parameters."""
    if not model.has_parameters:
        raise InputError(f"{variant}-mc3 samples parameters, which the model {model.name!r} integrates out: use 'mc3'")
    return Kernel(model, prior, variant, thinning.neighbourhood == "exact")


def initial_scale(variant: str, model: Model, d: int) -> float:
    """Return the published scale of the random walk; user-defined models get that of the linear model."""
    published = PUBLISHED_SCALES.get((variant, model.name), PUBLISHED_SCALES[variant, "linear"])
    return published[20 if d <= 35 else 50]


def initial_chain(kernel: Kernel, d: int, stats: Any, seed: int, scale: float) -> Chain:
    """Return a chain that starts at a graph and parameters drawn from the prior."""
    key_graph, key_theta, key_run = jax.random.split(key_from_seed(seed), 3)
    graph = jnp.asarray(kernel.prior.sample(key_graph, d), dtype=float)
    theta = jax.tree.map(jnp.asarray, kernel.model.sample_theta(key_theta, d))
    return Chain(
        key_run, graph, theta, log_density(kernel, graph, theta, stats), jnp.log(jnp.asarray(scale, dtype=float)),
        jnp.zeros(()), jnp.zeros(()),
    )  # fmt: skip


def adaptation_rate(part: int, parts: int) -> float:
    """Return the step size of the log scale in this part of the burn-in; it decreases linearly to zero."""
    return 0.05 * (1 - part / parts)


def joint_posterior(
    kernel: Kernel, data: Dataset, graphs: Graphs, theta: Theta, thinning: Thinning, last: Chain, wanted: int
) -> Posterior:
    """Return the posterior of the kept samples."""
    acceptance, scale = float(last.accepted / max(float(last.tried), 1.0)), float(jnp.exp(last.log_scale))
    return Posterior(
        graphs=graphs,
        log_weights=np.zeros(len(graphs)),
        names=data.names,
        model=kernel.model,
        prior=kernel.prior,
        theta=theta,
        log_joint=log_joint_of(graphs, theta, kernel.model, kernel.prior, kernel.model.summarise(data)),
        record=thinning.record(f"{kernel.variant}-mc3", len(graphs), wanted, acceptance, False, scale),
    )


def _state(chain: Chain, graphs: list[Any], thetas: list[Any], count: int, warmed: int) -> State:
    """Return the checkpoint state: the chain, the first `count` of its samples, and the parts of the burn-in done."""
    kept = {"graphs": np.array(graphs[:count], np.bool_)} if count else {}
    if count:
        kept |= tree_to_arrays(jax.tree.map(lambda *leaves: np.stack(leaves), *thetas[:count]), "theta")
    return State({**tree_to_arrays(chain, "chain"), **kept}, {"count": count, "warmed": warmed})


def _restore(found: State, like: Chain) -> tuple[Chain, list[Any], list[Any], int]:
    """Return the chain, its samples and the parts of the burn-in done, from a checkpoint state."""
    chain, count = tree_from_arrays(like, found.arrays, "chain"), found.facts["count"]
    if not count:
        return chain, [], [], found.facts["warmed"]
    stacked = jax.tree.map(lambda leaf: np.stack([np.asarray(leaf)] * count), chain.theta)
    theta = jax.tree.map(np.asarray, tree_from_arrays(stacked, found.arrays, "theta"))
    thetas = [jax.tree.map(lambda leaf, m=m: leaf[m], theta) for m in range(count)]
    return chain, list(found.arrays["graphs"]), thetas, found.facts["warmed"]


def joint_mc3_batched(
    data: Sequence[Dataset], model: Model, prior: GraphPrior, *, variant: Literal["m", "g"], particles: int,
    seeds: Sequence[int], thinning: Thinning, progress: bool | None = None,
) -> list[Posterior]:  # fmt: skip
    """Return what `joint_mc3` returns for each data set and its seed, up to rounding; all run at once."""
    check_same_shape(data, seeds)
    d = data[0].nodes
    scale = initial_scale(variant, model, d)
    kernel, least = make_kernel(model, prior, variant, thinning), float(np.log(scale))
    each_stats = [jax.tree.map(jnp.asarray, model.summarise(one)) for one in data]
    chains = stack_trees([initial_chain(kernel, d, stats, seed, scale) for stats, seed in zip(each_stats, seeds)])
    stats = stack_trees(each_stats)
    warm_up, total = thinning.warm_up(), thinning.steps(particles)
    graphs, thetas = [], []
    with progress_bar(f"{variant}-mc3, {total:,} steps, {len(data)} data sets", total, progress) as advance:
        for part, count in enumerate(warm_up):
            chains = _run_steps_batched(kernel, chains, stats, count, adaptation_rate(part, len(warm_up)), least)
            jax.block_until_ready(chains)
            advance(count)
        chains = chains._replace(accepted=jnp.zeros(len(data)), tried=jnp.zeros(len(data)))
        for _ in range(particles):
            chains = _run_steps_batched(kernel, chains, stats, thinning.thin, 0.0, least)
            graphs.append(np.asarray(chains.graph) > 0.5)
            thetas.append(jax.tree.map(np.asarray, chains.theta))
            advance(thinning.thin)
    all_graphs = np.stack(graphs, axis=1)
    all_thetas = jax.tree.map(lambda *leaves: np.stack(leaves, axis=1), *thetas)
    last = jax.tree.map(np.asarray, chains._replace(key=()))
    return [
        joint_posterior(kernel, one, all_graphs[k], member(all_thetas, k), thinning, member(last, k), particles)
        for k, one in enumerate(data)
    ]


@partial(jitted, static_argnums=0)
def _run_steps_batched(kernel: Kernel, chains: Chain, stats: Any, count: Any, adapt_rate, least_log_scale) -> Chain:
    """Return the chains of all data sets after `count` steps."""
    several = lambda chain, stats: run_steps(kernel, chain, stats, count, adapt_rate, least_log_scale)  # noqa: E731
    return jax.vmap(several)(chains, stats)


@dataclass(frozen=True)
class JointMc3(SingleChain):
    """MCMC over graphs and parameters as published: Metropolis (M-MC³) or Metropolis within Gibbs (G-MC³).

    For models with parameters. The further fields are those of `SingleChain`.

    Parameters
    ----------
    variant
        "m" proposes graph and parameters together, "g" in turn.
    scale
        Standard deviation of the random walk of the parameters; None starts from the published one and adapts it
        during burn-in.
    """

    variant: Literal["m", "g"] = "m"
    scale: float | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.variant not in ("m", "g"):
            raise InputError(f"variant={self.variant!r}: give 'm' or 'g'")
        if self.scale is not None:
            positive("scale", self.scale)

    @property
    def name(self) -> str:
        return f"{self.variant}-mc3"

    def run(self, problem: Problem) -> Posterior:
        return joint_mc3(
            problem.data, problem.model, problem.prior, variant=self.variant, particles=self.particles,
            seed=problem.seed, thinning=self.thinning(), scale=self.scale, progress=problem.progress,
            checkpoint=problem.checkpoint, clock=problem.clock,
        )  # fmt: skip
