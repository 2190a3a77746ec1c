"""Parameters settle on the graph that a particle ended with.

DiBS moves parameters under graphs sampled from the particle, and under an edge probability that is still open they
serve all of them. The DAG that a particle stands for in the end is another one: edges have been decided, and a cycle
may have been broken up. Left as they are, such parameters can predict held-out rows a hundred times worse than those of
the other particles. So the parameters of each particle climb to the nearest mode of `p(theta | G, D)` for its own DAG.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax

from dagpost._util.clock import Clock, Pace
from dagpost._util.compiling import jitted
from dagpost.inference.dibs.target import Target, minibatch
from dagpost.typing import Graphs, Key, Theta

RATE = 0.02
"""Where Adam begins; it falls to a hundredth of that along a cosine."""


def settled(target: Target, graphs: Graphs, theta: Theta, stats: Any, key: Key, clock: Clock | None = None) -> Theta:
    """The parameters of every particle after `settings.parameter_steps` steps up `log p(theta, D | G)`, each on its own
    DAG; fewer where the clock ends."""
    total = target.settings.parameter_steps
    state = _start(target, jnp.asarray(graphs, dtype=float), jax.tree.map(jnp.asarray, theta), key)
    stats = jax.tree.map(jnp.asarray, stats)
    for count in Pace().parts(total, clock):
        state = jax.block_until_ready(_several(target, state, stats, count, total))
    return state["theta"]


def _optimiser(total: Any) -> optax.GradientTransformation:
    return optax.chain(
        optax.scale_by_adam(),
        optax.scale_by_schedule(lambda step: -RATE * (0.01 + 0.99 * 0.5 * (1 + jnp.cos(jnp.pi * step / total)))),
    )


def _start(target: Target, graphs: Any, theta: Any, key: Key) -> dict[str, Any]:
    return {"key": key, "graphs": graphs, "theta": theta, "optimiser": _optimiser(1).init(theta)}


@partial(jitted, static_argnums=0)
def _several(target: Target, state: dict[str, Any], stats: Any, count: Any, total: Any) -> dict[str, Any]:
    model, settings = target.model, target.settings

    def one(pair, rows, scale):
        graph, theta = pair

        def family(g_j, theta_j, stats_j):
            return scale * model.log_conditional(g_j, theta_j, stats_j) + model.log_parameter_prior(g_j, theta_j)

        return jax.grad(lambda theta: -jnp.sum(model._by_node(family, graph, theta, rows)))(theta)

    def step(_, state):
        key, key_rows = jax.random.split(state["key"])
        rows, scale = minibatch(key_rows, model, stats, settings.batch)
        particles = (state["graphs"], state["theta"])
        chunk = min(target.chunk, state["graphs"].shape[0])
        downhill = jax.lax.map(lambda pair: one(pair, rows, scale), particles, batch_size=chunk)
        updates, optimiser = _optimiser(total).update(downhill, state["optimiser"])
        return {**state, "key": key, "theta": optax.apply_updates(state["theta"], updates), "optimiser": optimiser}

    return jax.lax.fori_loop(0, count, step, state)
