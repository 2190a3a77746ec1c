"""Draws of graphs with parameters: fresh ones given each graph where the model can, else those of the particles."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from dagpost._util.randomness import generator
from dagpost.errors import InputError
from dagpost.models import Model
from dagpost.typing import Graphs, Key, Theta

if TYPE_CHECKING:
    from dagpost.posterior.posterior import Posterior


class Draws(NamedTuple):
    """`member` says which graph of the posterior each draw has; weights add up to 1."""

    member: Int[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]


def systematic(weights: Float[np.ndarray, " m"], count: int, key: Key) -> Int[np.ndarray, " n"]:
    """`count` indices, each as often as its weight says up to rounding, in order."""
    places = (np.arange(count) + generator(key).uniform()) / count
    total = np.cumsum(weights)
    return np.minimum(np.searchsorted(total / total[-1], places, side="right"), len(weights) - 1)


def can_draw(post: Posterior) -> bool:
    """Whether parameters can be drawn from `p(theta | G, D)`: that takes the data and a model with closed forms."""
    return post.data is not None and type(post.model).draw_theta is not Model.draw_theta


def has_theta(post: Posterior) -> bool:
    return len(jax.tree.leaves(post.theta)) > 0


def choose(post: Posterior, count: int, key: Key) -> Draws:
    """Draws of equal weight with fresh parameters to come, or every particle with its weight and its own parameters."""
    if can_draw(post):
        return Draws(systematic(post.weights, count, key), np.full(count, 1 / count))
    if not has_theta(post):
        raise InputError(
            f"the parameters of the model {post.model.name!r} are integrated out, and to draw them takes the data: "
            "call with_data(data) on the posterior first"
        )
    used = np.flatnonzero(post.weights > 0)
    return Draws(used, post.weights[used])


def parameters_of(post: Posterior, member: Int[np.ndarray, " n"], key: Key) -> tuple[Graphs, Theta]:
    """The chosen graphs with their parameters."""
    graphs = post.graphs[member]
    if can_draw(post):
        assert post.data is not None
        stats = post.model.summarise(post.data)
        return graphs, post.model.draw_thetas(jax.random.split(key, len(member)), graphs, stats)
    return graphs, jax.tree.map(lambda leaf: np.asarray(leaf)[member], post.theta)
