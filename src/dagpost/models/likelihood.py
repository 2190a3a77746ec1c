"""Likelihoods of many graphs with explicit parameters, compiled for few different numbers of graphs."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dagpost._util.numerics import map_chunked
from dagpost.models.statistics import Statistics
from dagpost.typing import Graphs, Theta


def likelihoods_of(model: Any, graphs: Graphs, theta: Theta, stats: Statistics) -> Float[np.ndarray, " m"]:
    """Return `log p(data | G, Theta)` of many graphs, in float64.

    Parameters
    ----------
    model
        A `Model`.
    graphs
        Adjacency matrices of DAGs.
    theta
        Their parameters; leaves have a leading axis of that length.
    stats
        Statistics of the data from `Model.summarise`.
    """
    # pad to a power of two by repeating the last graph, so that few shapes are compiled
    fill = (1 << (len(graphs) - 1).bit_length()) - len(graphs)
    filled = jax.tree.map(
        lambda leaf: np.concatenate([leaf, np.repeat(np.asarray(leaf)[-1:], fill, axis=0)]),
        (np.asarray(graphs, dtype=float), theta),
    )
    with jax.enable_x64(True):
        return np.asarray(_log_likelihoods(model, *filled, stats))[: len(graphs)]


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(model: Any, graphs: Float[Array, "m d d"], theta: Theta, stats: Statistics) -> Any:
    """Return the log likelihood of each graph."""

    def one(pair):
        graph, theta = pair
        return jnp.sum(model.by_node(model.log_conditional, graph, theta, stats))

    # in chunks, because a model whose statistics are the rows needs memory for them once per graph
    return map_chunked(one, (graphs, theta), 64)
