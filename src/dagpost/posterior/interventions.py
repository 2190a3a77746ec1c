"""Interventions in many graphs with their parameters: simulation for any model, closed forms for linear ones.

`simulate_under` draws rows of every graph under do(x = value). In a linear network with weights W the total effect of
x_i follows from its parents in topological order, `T_i = 1`, `T_j = sum_k T_k W_kj` over the parents k of j, or as a
vector `T = e_iᵀ (I - W)⁻¹`. Given graph and data the columns of W are independent, and `T_k` of a parent does not
depend on column j, so that

    E[T_j] = sum_k E[T_k] E[W_kj],    E[T_l T_j] = sum_k E[T_l T_k] E[W_kj]  for l before j,
    E[T_j²] = sum_kk' E[T_k T_k'] E[W_kj W_k'j],

exactly, with `E[W_kj W_k'j] = mean_k mean_k' + covariance_kk'`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from dagpost._util.environment import cached_by_value
from dagpost.graphs import topological_order
from dagpost.models import Model, Statistics
from dagpost.models.base import WeightMoments
from dagpost.posterior.sample import chunks_of, group_equal
from dagpost.typing import Graph, GraphBatch, Graphs, Key, Theta

BATCH = 256
"""Graphs that are simulated in parallel; more would only take more memory."""

Families = Callable[[int, Graph], WeightMoments]
"""Moments of the weights of a node, given the node and a graph."""


def simulate_under(
    model: Model, keys: Key, graphs: Graphs, theta: Theta, rows: int, clamped: Mapping[int, float], noise: bool = True
) -> Float[np.ndarray, "m n d"]:
    """Return `rows` rows of every graph under do(clamped), in float64; each graph has its own key.

    Without noise each node is its expected value given its parents. In a linear model that is the expectation under
    do(clamped), and one row will do.
    """
    d = graphs.shape[-1]
    orders = np.stack([topological_order(graph) for graph in graphs])
    held = np.array([j in clamped for j in range(d)])
    values = np.array([clamped.get(j, 0.0) for j in range(d)])
    with jax.enable_x64(True):
        leaves = jax.tree.map(jnp.asarray, theta)
        cases = (keys, jnp.asarray(graphs), jnp.asarray(orders), leaves)
        return np.asarray(_simulator(model, rows, noise)(cases, jnp.asarray(held), jnp.asarray(values)))


@cached_by_value
def _simulator(model: Model, rows: int, noise: bool):
    """Return the simulator, compiled once for each model, number of rows and shape, with noise or without."""

    def one(case, held, values):
        key, graph, order, theta = case
        keys = jax.random.split(key, graph.shape[0])
        axes = jax.tree.broadcast(model.theta_axes, theta)

        def step(table, j):
            theta_j = jax.tree.map(lambda leaf, axis: jnp.take(leaf, j, axis=axis), theta, axes)
            inputs = jnp.where(graph[:, j], table, 0.0)
            node = partial(model.sample_node, keys[j]) if noise else model.node_mean
            column = jnp.where(held[j], values[j], node(inputs, theta_j))
            return table.at[:, j].set(column), None

        return jax.lax.scan(step, jnp.zeros((rows, graph.shape[0])), order)[0]

    @jax.jit
    def run(cases, held, values):
        return jax.lax.map(lambda case: one(case, held, values), cases, batch_size=BATCH)

    return run


def total_effects(weights: Float[np.ndarray, "n d d"], cause: int) -> Float[np.ndarray, "n d"]:
    """Return `e_iᵀ (I - W)⁻¹` of every draw: the effects of the cause on all nodes."""
    d = weights.shape[-1]
    unit = np.zeros((len(weights), d, 1))
    unit[:, cause] = 1.0
    return np.linalg.solve(np.eye(d) - np.swapaxes(weights, 1, 2), unit)[..., 0]


def effects_along_paths(
    weights: Float[np.ndarray, "n d d"], on_path: Bool[np.ndarray, "n d"], cause: int, effect: int
) -> Float[np.ndarray, " n"]:
    """Return the effect of the cause on one node in every draw, from the weights between the nodes on paths alone."""
    out = np.zeros(len(weights))
    for n, nodes in enumerate(on_path):
        if nodes[effect]:
            used = np.concatenate([[cause], np.flatnonzero(nodes & (np.arange(len(nodes)) != effect)), [effect]])
            out[n] = total_effects(weights[n][np.ix_(used, used)][None], 0)[0, -1]
    return out


def families_of(model: Model, stats: Statistics) -> Families:
    """Return a function that computes the weight moments of a family, with a cache."""
    cache: dict[tuple[int, bytes], WeightMoments] = {}

    def family(j: int, graph: Graph) -> WeightMoments:
        key = (j, graph[:, j].tobytes())
        if key not in cache:
            moments = model.weight_moments(j, np.flatnonzero(graph[:, j]), stats)
            assert moments is not None
            cache[key] = moments
        return cache[key]

    return family


def relevant_groups(graphs: Graphs, reach: GraphBatch, cause: int, effect: int) -> Int[np.ndarray, " m"]:
    """Return a group number for each graph, equal where the effect has the same distribution given the graph.

    That distribution depends on the families of the nodes on paths from cause to effect, the effect included.
    """
    on_path = nodes_on_paths(reach, cause, effect)
    return group_equal(graphs[some] & on_path[some, None, :] for some in chunks_of(graphs))[1]


def nodes_on_paths(reach: GraphBatch, cause: int, effect: int) -> Bool[np.ndarray, "m d"]:
    """Return the nodes on directed paths from cause to effect, the effect included and the cause left out."""
    return reach[:, cause, :] & (reach[:, :, effect] | (np.arange(reach.shape[-1]) == effect))


def effect_moments(graph: Graph, cause: int, effect: int, family: Families) -> tuple[float, float]:
    """Return mean and variance of the effect given graph and data, by the recursion at the head of this file."""
    d = len(graph)
    mean, second = np.zeros(d), np.zeros((d, d))
    mean[cause] = second[cause, cause] = 1.0
    order = topological_order(graph).tolist()
    for j in order[order.index(cause) + 1 :]:
        parents = np.flatnonzero(graph[:, j])
        if second[parents, parents].any():  # some parent is the cause or depends on it
            weights, covariance = family(j, graph)
            before = second[np.ix_(parents, parents)]
            mean[j] = mean[parents] @ weights
            second[:, j] = second[j, :] = second[:, parents] @ weights
            second[j, j] = weights @ before @ weights + np.sum(before * covariance)
        if j == effect:
            break
    return float(mean[effect]), max(float(second[effect, effect] - mean[effect] ** 2), 0.0)


def mean_weights(graphs: Graphs, family: Families) -> Float[np.ndarray, "m d d"]:
    """Return `E[W | G, D]`; since columns are independent, `E[(I - W)⁻¹] = (I - E[W])⁻¹`."""
    out = np.zeros(graphs.shape)
    for m, graph in enumerate(graphs):
        for j in np.flatnonzero(graph.any(axis=0)):
            out[m, graph[:, j], j] = family(int(j), graph).mean
    return out
