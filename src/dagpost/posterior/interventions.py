"""Rows simulated under an intervention, for many graphs with their parameters at once."""

from __future__ import annotations

from collections.abc import Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dagpost._util.memory import cached_by_value
from dagpost.graphs import topological_order
from dagpost.models import Model
from dagpost.typing import Graphs, Key, Theta

AT_ONCE = 256
"""Graphs that are simulated side by side; more would only take more memory."""


def simulate_under(
    model: Model, keys: Key, graphs: Graphs, theta: Theta, rows: int, clamped: Mapping[int, float]
) -> Float[np.ndarray, "m n d"]:
    """`rows` rows of every graph under do(clamped), in float64; each graph with its own key, as `Model.sample_rows`."""
    d = graphs.shape[-1]
    orders = np.stack([topological_order(graph) for graph in graphs])
    held = np.array([j in clamped for j in range(d)])
    values = np.array([clamped.get(j, 0.0) for j in range(d)])
    with jax.enable_x64(True):
        leaves = jax.tree.map(jnp.asarray, theta)
        cases = (keys, jnp.asarray(graphs), jnp.asarray(orders), leaves)
        return np.asarray(_simulator(model, rows)(cases, jnp.asarray(held), jnp.asarray(values)))


@cached_by_value
def _simulator(model: Model, rows: int):
    """Compiled once for each model, number of rows and shape."""

    def one(case, held, values):
        key, graph, order, theta = case
        keys = jax.random.split(key, graph.shape[0])
        axes = jax.tree.broadcast(model.theta_axes, theta)

        def step(table, j):
            theta_j = jax.tree.map(lambda leaf, axis: jnp.take(leaf, j, axis=axis), theta, axes)
            inputs = jnp.where(graph[:, j], table, 0.0)
            column = jnp.where(held[j], values[j], model.sample_node(keys[j], inputs, theta_j))
            return table.at[:, j].set(column), None

        return jax.lax.scan(step, jnp.zeros((rows, graph.shape[0])), order)[0]

    @jax.jit
    def run(cases, held, values):
        return jax.lax.map(lambda case: one(case, held, values), cases, batch_size=AT_ONCE)

    return run
