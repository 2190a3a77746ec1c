"""Functions of edges and total effects as curves: means and bands over the posterior of graphs and parameters.

Two curves answer two questions about a cause x and an effect y:

    direct    v -> E[y | x = v, other parents of y at their means] + constant, in the graphs with the edge x -> y;
    total     v -> E[y | do(x = v)], in all graphs: a constant where no directed path leads from x to y.

The direct curve is the function in y's own equation; what x does by way of other nodes enters the total curve only. In
a linear model both are straight lines, with the weight of the edge and the average causal effect as slopes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dagpost._util.environment import cached_by_value
from dagpost._util.numerics import key_from_seed
from dagpost.data import Dataset
from dagpost.errors import InputError, whole_number
from dagpost.graphs import descendants
from dagpost.models import Model
from dagpost.posterior.effects import Units, check_level, check_units, pair_of, weighted_quantile
from dagpost.posterior.features import ancestor_matrix
from dagpost.posterior.interventions import simulate_under
from dagpost.posterior.parameters import parameters_of, select_draws
from dagpost.posterior.sample import GraphSample
from dagpost.typing import Theta

Kind = Literal["direct", "total"]
"""What a curve shows: the function of one edge, or the expectation under interventions on the cause."""
TAIL = 0.01
"""Share of the cause's values below the grid, and above it."""
SPREADS = 2.0
"""Reach of the grid without data, in standard deviations on each side of the mean."""
CENTRES = 200
"""Most values of the cause that the average of a direct curve is taken over."""
BATCH = 16
"""Draws whose curves are computed in parallel; more would only take more memory."""


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Posterior of a function of one node: the mean and a pointwise band on a grid of values of the cause.

    Attributes
    ----------
    cause
        Name of the cause.
    effect
        Name of the effect.
    kind
        "direct" for the function of the edge (`Posterior.mechanism`), "total" for the expectation under interventions
        on the cause (`Posterior.effect_curve`).
    values
        Values of the cause.
    mean
        Posterior mean at each value.
    lower, upper
        Central interval of probability `level` at each value.
    level
        Probability of the band at each value.
    probability
        Posterior probability of the edge, or for a total effect of a directed path.
    draws
        One curve per row, each of one graph with its parameters.
    weights
        Weights of the draws, which add up to 1.
    observed
        Values of the cause in the data; empty where these are not at hand.
    """

    cause: str
    effect: str
    kind: Kind
    values: Float[np.ndarray, " p"]
    mean: Float[np.ndarray, " p"]
    lower: Float[np.ndarray, " p"]
    upper: Float[np.ndarray, " p"]
    level: float
    probability: float
    draws: Float[np.ndarray, "n p"]
    weights: Float[np.ndarray, " n"]
    observed: Float[np.ndarray, " m"]

    def marks(self, most: int) -> Float[np.ndarray, " k"]:
        """Return observed values of the cause between the ends of the curve, evenly chosen by rank from many.

        Parameters
        ----------
        most
            Largest number of values.

        Returns
        -------
        ndarray
            The values in increasing order.
        """
        inside = np.sort(self.observed[(self.observed >= self.values.min()) & (self.observed <= self.values.max())])
        return inside[np.linspace(0, len(inside) - 1, min(most, len(inside))).astype(int)]

    def __repr__(self) -> str:
        what = f"{self.cause} -> {self.effect}" if self.kind == "direct" else f"{self.effect} given do({self.cause})"
        size = f"{len(self.values)} values from {self.values.min():.3g} to {self.values.max():.3g}"
        return f"Curve({what}: {size}, {len(self.draws)} draws, probability {self.probability:.2f})"


def _checked_pair(
    post: GraphSample, cause: str | int, effect: str | int, level: float, units: Units
) -> tuple[int, int]:
    """Return the nodes of a curve; raise an error if there can be none."""
    i, j = pair_of(post, cause, effect)
    check_level(level)
    check_units(units)
    if post.model.categorical:
        raise InputError(f"a curve needs numbers, and {post.names[i]!r} has levels: use post.effect with a contrast")
    if post.model.latent:
        raise InputError(
            f"the model {post.model.name!r} is linear between latent columns: use post.effect or post.predict"
        )
    return i, j


def mechanism(
    post: GraphSample, cause: str | int, effect: str | int, *, points: int, level: float, draws: int, seed: int,
    units: Units,
) -> Curve:  # fmt: skip
    """Return the posterior of the function of one edge; see `Posterior.mechanism`."""
    i, j = _checked_pair(post, cause, effect, level, units)
    if type(post.model).node_mean is Model.node_mean:
        raise InputError(
            f"the model {post.model.name!r} has no method node_mean(inputs, theta_j), which the function of an edge "
            "is computed with: write it"
        )
    there = post.graphs[:, i, j] & (post.weights > 0)
    if not there.any():
        raise InputError(
            f"the edge {post.names[i]} -> {post.names[j]} is in none of the {len(post):,} graphs; its probability is "
            f"{post.edge_marginals[i, j]:.2g}"
        )
    key_choice, key_theta = jax.random.split(key_from_seed(seed))
    selected = select_draws(post, whole_number("draws", draws, least=1), key_choice, there)
    graphs, theta = parameters_of(post, selected.member, key_theta, node=j)
    grid = _grid(post, i, whole_number("points", points, least=2))
    centres = _centres(post, i, grid)
    others = np.zeros(post.nodes) if post.data is None else np.nanmean(post.data.values, axis=0)
    rows = _node_means(post.model, theta, j, graphs[:, :, j] * others, i, np.append(grid, centres))
    curves = rows[:, :points] - rows[:, points:].mean(axis=1, keepdims=True)
    curves = _scale(post, j, units) * curves
    return _curve(post, (i, j), "direct", grid, curves, selected.weights, level, post.edge_marginals[i, j], units)


def effect_curve(
    post: GraphSample, cause: str | int, effect: str | int, values: Any, *, points: int, level: float, draws: int,
    seed: int, units: Units, rows: int,
) -> Curve:  # fmt: skip
    """Return the posterior of a total effect as a curve; see `Posterior.effect_curve`."""
    i, j = _checked_pair(post, cause, effect, level, units)
    grid = (
        _grid(post, i, whole_number("points", points, least=2)) if values is None else _fitted(post, i, values, units)
    )
    key_choice, key_theta, key_rows = jax.random.split(key_from_seed(seed), 3)
    selected = select_draws(post, whole_number("draws", draws, least=1), key_choice)
    graphs, theta = parameters_of(post, selected.member, key_theta)
    keys = jax.random.split(key_rows, len(graphs))
    exact = post.model.linear and type(post.model).node_mean is not Model.node_mean
    rows = 1 if exact else whole_number("rows", rows, least=1)

    def expected(draw: np.ndarray, value: float) -> np.ndarray:
        """Return the mean of the effect under do(cause = value) in these draws, with the same noise for all values."""
        own = jax.tree.map(lambda leaf: np.asarray(leaf)[draw], theta)
        table = simulate_under(post.model, keys[draw], graphs[draw], own, rows, {i: value}, noise=not exact)
        return table[:, :, j].mean(axis=1)

    curves = np.zeros((len(graphs), len(grid)))
    connected = descendants(graphs)[:, i, j]
    if connected.any():
        curves[connected] = np.stack([expected(np.flatnonzero(connected), value) for value in grid], axis=1)
    if not connected.all():
        curves[~connected] = expected(np.flatnonzero(~connected), float(grid[0]))[:, None]
    curves = _in_units(post, j, curves, units)
    return _curve(post, (i, j), "total", grid, curves, selected.weights, level, ancestor_matrix(post)[i, j], units)


def _curve(post, pair, kind: Kind, grid, curves, weights, level: float, probability: float, units: Units) -> Curve:
    """Return the record of these curves, whose grid is in fitted units."""
    i, j = pair
    tail = (1 - level) / 2
    observed = np.zeros(0) if post.data is None else _observed(post.data, i)
    return Curve(
        post.names[i], post.names[j], kind, _in_units(post, i, grid, units), weights @ curves,
        weighted_quantile(curves, weights, tail), weighted_quantile(curves, weights, 1 - tail), level,
        float(probability), curves, weights, _in_units(post, i, observed, units),
    )  # fmt: skip


# ---- values of the cause, and their units


def _grid(post: GraphSample, i: int, points: int) -> Float[np.ndarray, " p"]:
    """Return values of a node between quantiles of its column, or two standard deviations around 0, in fitted units."""
    if post.data is None:
        return np.linspace(-SPREADS, SPREADS, points)
    column = _observed(post.data, i)
    low, high = np.quantile(column, [TAIL, 1 - TAIL])
    if low == high:  # hardly any row has another value
        low, high = column.min(), column.max()
    return np.linspace(low, high, points)


def _centres(post: GraphSample, i: int, grid: Float[np.ndarray, " p"]) -> Float[np.ndarray, " c"]:
    """Return the values over which a curve has mean 0: those of the data, or evenly spaced quantiles of many."""
    if post.data is None:
        return np.array([(grid[0] + grid[-1]) / 2])
    column = _observed(post.data, i)
    if len(column) <= CENTRES:
        return column
    return np.quantile(column, (np.arange(CENTRES) + 0.5) / CENTRES)


def _observed(data: Dataset, i: int) -> Float[np.ndarray, " n"]:
    """Return the observed cells of a column."""
    return data.values[~data.is_missing[:, i], i]


def _scale(post: GraphSample, j: int, units: Units) -> float:
    """Return the size of a fitted unit of a node in these units."""
    return 1.0 if post.scaling is None or units == "fitted" else float(post.scaling.scale[j])


def _in_units(post: GraphSample, j: int, values: np.ndarray, units: Units) -> np.ndarray:
    """Return fitted values of a node in these units."""
    mean = 0.0 if post.scaling is None or units == "fitted" else post.scaling.mean[j]
    return mean + _scale(post, j, units) * values


def _fitted(post: GraphSample, i: int, values: Any, units: Units) -> Float[np.ndarray, " p"]:
    """Return values that a user gave, in fitted units."""
    try:
        given = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        given = np.zeros(0)
    if given.ndim != 1 or not len(given) or not np.isfinite(given).all():
        raise InputError(f"values={values!r:.60}: give finite numbers, the values of {post.names[i]!r}")
    mean = _in_units(post, i, np.zeros(1), units)
    return (given - mean) / _scale(post, i, units)


# ---- the function of a node


def _node_means(model: Model, theta: Theta, j: int, others, i: int, values) -> Float[np.ndarray, "n p"]:
    """Return the expected value of node j in every draw at each value of node i, with fixed values of the others."""
    axes = jax.tree.broadcast(model.theta_axes, theta)
    theta_j = jax.tree.map(lambda leaf, axis: np.take(np.asarray(leaf), j, axis=axis + 1), theta, axes)
    # pad to a power of two by repeating the last draw, so that few shapes are compiled
    count = len(others)
    places = np.minimum(np.arange(1 << (count - 1).bit_length()), count - 1)
    filled = jax.tree.map(lambda leaf: leaf[places], (theta_j, np.asarray(others, dtype=np.float64)))
    with jax.enable_x64(True):
        return np.asarray(_evaluator(model)(filled, i, jnp.asarray(values)))[:count]


@cached_by_value
def _evaluator(model: Model):
    """Return the function that evaluates many draws, compiled once for each model and shape."""

    @jax.jit
    def run(cases, i, values):
        def one(case):
            theta_j, others = case
            inputs = jnp.tile(others, (len(values), 1)).at[:, i].set(values)
            return model.node_mean(inputs, theta_j)

        return jax.lax.map(one, cases, batch_size=BATCH)

    return run
