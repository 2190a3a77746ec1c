"""Average causal effects under the posterior over graphs and parameters.

The effect of x on y is `(E[y | do(x = b)] - E[y | do(x = a)]) / (b - a)`. In a linear model it does not depend on a
and b; in any other model both means are simulated with the same random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from dagpost._util.numerics import key_from_seed
from dagpost.errors import InputError, nearest, whole_number
from dagpost.graphs import descendants
from dagpost.models import Model
from dagpost.posterior.features import ancestor_matrix, weighted_mean
from dagpost.posterior.interventions import (
    effect_moments,
    families_of,
    mean_weights,
    nodes_on_paths,
    relevant_groups,
    simulate_under,
    total_effects,
)
from dagpost.posterior.parameters import WIDE, can_draw, effects_in_parts, parameters_of, select_draws
from dagpost.posterior.sample import GraphSample, chain_of_draws
from dagpost.typing import Graphs, Key, Theta

Units = Literal["raw", "fitted"]
"""Units of an effect: those of the table, or those of the fitted (standardised) columns."""
Contrast = tuple[float, float]
"""The two values of the cause that are compared."""


@dataclass(frozen=True, eq=False, repr=False)
class Effect:
    """Posterior of one average causal effect: a mixture of 0 (no path) and the effect along directed paths.

    By the law of total variance `variance = within + between`: the uncertainty that remains when the graph is known,
    and the uncertainty about the graph.

    Attributes
    ----------
    cause
        Name of the cause.
    effect
        Name of the effect.
    draws
        Draws of the effect.
    weights
        Weights of the draws, which add up to 1.
    mean
        Posterior mean.
    error
        Monte Carlo standard error of the mean; draws of a chain count by the effective sample size of this effect,
        others as independent.
    within
        `E_G[Var(effect | G)]`; NaN where it cannot be estimated, because some graph has a single draw of its
        parameters.
    between
        `Var_G(E[effect | G])`; NaN where `within` is.
    variance
        Posterior variance.
    level
        Probability of `interval`.
    exact_given_graphs
        Whether mean and variance are exact for the graphs and weights of the posterior, which needs a model with
        closed forms and the data; otherwise they are those of the draws.
    """

    cause: str
    effect: str
    draws: Float[np.ndarray, " n"]
    weights: Float[np.ndarray, " n"]
    mean: float
    error: float
    within: float
    between: float
    variance: float
    level: float
    exact_given_graphs: bool

    @property
    def sd(self) -> float:
        """Posterior standard deviation."""
        return float(np.sqrt(self.variance))

    def quantile(self, share: float) -> float:
        """Return a quantile of the draws.

        Parameters
        ----------
        share
            Probability, between 0 and 1.

        Returns
        -------
        float
            The smallest draw with at least this share of the weight up to it.
        """
        return float(weighted_quantile(self.draws[:, None], self.weights, share)[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Central interval of probability `level`."""
        tail = (1 - self.level) / 2
        return self.quantile(tail), self.quantile(1 - tail)

    @property
    def positive(self) -> float:
        """Probability that the effect is above 0."""
        return float(self.weights @ (self.draws > 0))

    @property
    def negative(self) -> float:
        """Probability that the effect is below 0."""
        return float(self.weights @ (self.draws < 0))

    @property
    def zero(self) -> float:
        """Probability that there is no effect."""
        return float(self.weights @ (self.draws == 0))

    def __repr__(self) -> str:
        low, high = self.interval
        return (
            f"Effect({self.cause} on {self.effect}: {self.mean:.3g}, {self.level:.0%} in [{low:.3g}, {high:.3g}], "
            f"zero with probability {self.zero:.2f})"
        )


class Moments(NamedTuple):
    """Mean, Monte Carlo error of it, and variance split as in `Effect`."""

    mean: float
    within: float
    between: float
    variance: float
    error: float


def weighted_quantile(draws: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    """Return for every column the smallest draw with at least this share of the weight up to it."""
    order = np.argsort(draws, axis=0, kind="stable")
    below = np.cumsum(weights[order], axis=0)
    place = np.argmax(below >= share * below[-1] * (1 - 1e-12), axis=0)
    return np.take_along_axis(np.take_along_axis(draws, order, axis=0), place[None], axis=0)[0]


def effect_of(
    post: GraphSample, cause: str | int, effect: str | int, *, level: float, draws: int, seed: int, units: Units,
    contrast: Contrast | None, rows: int,
) -> Effect:  # fmt: skip
    """Return the posterior of one effect; see `Posterior.effect`."""
    i, j = pair_of(post, cause, effect)
    check_level(level)
    factor = unit_factors(post, units)[i, j]
    key_choice, key_theta, key_rows = jax.random.split(key_from_seed(seed), 3)
    selected = select_draws(post, whole_number("draws", draws, least=1), key_choice)
    reach = descendants(post.graphs)
    connected = np.flatnonzero(reach[selected.member, i, j])
    values = np.zeros(len(selected.member))
    if len(connected) and post.nodes > WIDE and type(post.model).linear_weights is not Model.linear_weights:
        on_path = nodes_on_paths(reach[selected.member[connected]], i, j)
        values[connected] = factor * effects_in_parts(post, selected.member[connected], on_path, i, j, key_theta)
    elif len(connected):
        graphs, theta = parameters_of(post, selected.member[connected], key_theta)
        ends = contrast_of(post, i, contrast, units)
        values[connected] = factor * _effects_of_cause(post.model, graphs, theta, i, ends, key_rows, rows)[:, j]
    closed = has_closed_moments(post)
    if closed:
        moments = _closed_moments(post, reach, i, j, factor)
    else:
        groups = relevant_groups(post.graphs, reach, i, j)[selected.member]
        chain = chain_of_draws(post)
        chain = None if chain is None else chain[selected.member]
        moments = _moments_of_draws(values, selected.weights, groups, reach[selected.member, i, j], chain)
    return Effect(
        post.names[i], post.names[j], values, selected.weights, moments.mean, moments.error, moments.within,
        moments.between, moments.variance, level, closed,
    )  # fmt: skip


def pair_of(post: GraphSample, cause: str | int, effect: str | int) -> tuple[int, int]:
    """Return the indices of cause and effect, which must differ."""
    i, j = post.index(cause), post.index(effect)
    if i == j:
        raise InputError(f"cause and effect are both {post.names[i]!r}: give two nodes")
    return i, j


def check_level(level: float) -> None:
    """Raise an error unless the level is a probability between 0 and 1."""
    if isinstance(level, bool) or not 0 < level < 1:
        raise InputError(f"level={level!r}: give a probability between 0 and 1")


def has_closed_moments(post: GraphSample) -> bool:
    """Return whether moments given a graph have a closed form and the data to compute it."""
    return can_draw(post) and type(post.model).weight_moments is not Model.weight_moments


def check_units(units: Units) -> None:
    """Raise an error for unknown units."""
    if units not in ("raw", "fitted"):
        raise InputError(f"unknown units {units!r}: {nearest(str(units), ['raw', 'fitted'])}")


def unit_factors(post: GraphSample, units: Units) -> Float[np.ndarray, "d d"]:
    """Return factors that convert effects from fitted units: `scale_effect / scale_cause`, or 1."""
    check_units(units)
    scaling = post.scaling
    if scaling is None or units == "fitted":
        return np.ones((post.nodes, post.nodes))
    return scaling.scale[None, :] / scaling.scale[:, None]


def contrast_of(post: GraphSample, i: int, contrast: Contrast | None, units: Units) -> Contrast:
    """Return the two values of the cause in fitted units.

    By default they lie one standard deviation below and above the mean of its column, or are -1 and 1 without data.
    """
    scaling = post.scaling
    if contrast is not None:
        low, high = (float(value) for value in contrast)
        if not np.isfinite([low, high]).all() or low == high:
            raise InputError(f"contrast={contrast!r}: give two different numbers")
        if scaling is not None and units == "raw":
            return (low - scaling.mean[i]) / scaling.scale[i], (high - scaling.mean[i]) / scaling.scale[i]
        return low, high
    if post.data is None:
        return -1.0, 1.0
    column = post.data.values[:, i]
    return float(column.mean() - column.std()), float(column.mean() + column.std())


def _effects_of_cause(
    model: Model, graphs: Graphs, theta: Theta, i: int, ends: Contrast, key: Key, rows: int
) -> Float[np.ndarray, "n d"]:
    """Return the effects of node i on all nodes, for every graph with its parameters."""
    weights = model.linear_weights(theta)
    if weights is not None:
        return total_effects(np.asarray(weights, dtype=np.float64) * graphs, i)
    keys = jax.random.split(key, len(graphs))
    low, high = (simulate_under(model, keys, graphs, theta, rows, {i: value}).mean(axis=1) for value in ends)
    return (high - low) / (ends[1] - ends[0])


def _closed_moments(post: GraphSample, reach: np.ndarray, i: int, j: int, factor: float) -> Moments:
    """Return moments averaged over graphs, in closed form given each graph; equal distributions are computed once."""
    assert post.data is not None
    family = families_of(post.model, post.model.summarise(post.data))
    groups = relevant_groups(post.graphs, reach, i, j)
    first = np.unique(groups, return_index=True)[1]
    given = np.array([effect_moments(post.graphs[m], i, j, family) if reach[m, i, j] else (0.0, 0.0) for m in first])
    means, variances = factor * given[groups, 0], factor**2 * given[groups, 1]
    weights = post.weights
    mean, error = weighted_mean(means, weights, chain_of_draws(post), post.is_exhaustive)
    within, between = float(weights @ variances), float(weights @ (means - mean) ** 2)
    return Moments(mean, within, between, within + between, error)


def _moments_of_draws(
    values: np.ndarray, weights: np.ndarray, groups: np.ndarray, connected: np.ndarray,
    chain: Int[np.ndarray, " n"] | None,
) -> Moments:  # fmt: skip
    """Return the moments of the draws; the variance within graphs is `sum_g p_g s_g²` with unbiased `s_g²`."""
    mean, error = weighted_mean(values, weights, chain)
    variance = float(weights @ (values - mean) ** 2)
    within = 0.0
    for g in np.unique(groups[connected]):
        own = weights[groups == g]
        share = own.sum()
        own = own / share
        effective = 1 - own @ own  # 1 - 1/n for n equal weights
        if len(own) < 2 or effective <= 0:
            return Moments(mean, np.nan, np.nan, variance, error)
        x = values[groups == g]
        within += share * (own @ (x - own @ x) ** 2) / effective
    between = max(variance - within, 0.0)
    return Moments(mean, variance - between, between, variance, error)


# ---- all pairs of nodes


class EffectDraws(NamedTuple):
    """Draws of the whole matrix of effects, with the graphs that they come from.

    Attributes
    ----------
    graphs
        Graph of each draw.
    effects
        Average causal effect of i on j in row i, column j; 0 where no path leads there, and on the diagonal.
    direct
        Weight of the edge i -> j in row i, column j, 0 without that edge; None for a nonlinear model.
    weights
        Weights of the draws, which add up to 1.
    """

    graphs: Graphs
    effects: Float[np.ndarray, "n d d"]
    direct: Float[np.ndarray, "n d d"] | None
    weights: Float[np.ndarray, " n"]

    def given(self, there: Bool[np.ndarray, "n d d"], values: Float[np.ndarray, "n d d"]) -> Float[np.ndarray, "d d"]:
        """Return weighted means of the values over the draws where something is `there`; NaN where it never is."""
        share = np.einsum("n,nij->ij", self.weights, there)
        total = np.einsum("n,nij->ij", self.weights, np.where(there, values, 0.0))
        return np.divide(total, share, out=np.full_like(total, np.nan), where=share > 0)

    def mean_given_path(self) -> Float[np.ndarray, "d d"]:
        """Return the mean of each effect over the draws with a directed path; NaN where there is none."""
        return self.given(descendants(self.graphs), self.effects)

    def positive_given_edge(self) -> Float[np.ndarray, "d d"]:
        """Return `Pr(value > 0 | i -> j)` of the edge's weight, or of the effect in a nonlinear model; NaN if unknown.

        Exact zeros count half, so that they favour neither sign.
        """
        values = self.effects if self.direct is None else self.direct
        return self.given(self.graphs, 0.5 + 0.5 * np.sign(values))


def draw_effects(post: GraphSample, draws: int, seed: int, units: Units, rows: int) -> EffectDraws:
    """Return draws of all effects and of the graphs and edge weights behind them."""
    factors = unit_factors(post, units)
    key_choice, key_theta, key_rows = jax.random.split(key_from_seed(seed), 3)
    selected = select_draws(post, whole_number("draws", draws, least=1), key_choice)
    graphs, theta = parameters_of(post, selected.member, key_theta)
    weights = post.model.linear_weights(theta)
    direct = None
    if weights is not None:
        direct = np.asarray(weights, dtype=np.float64) * graphs
        out = np.linalg.inv(np.eye(post.nodes) - direct)
        direct = factors * direct
    else:
        ends = [contrast_of(post, i, None, units) for i in range(post.nodes)]
        causes = [_effects_of_cause(post.model, graphs, theta, i, end, key_rows, rows) for i, end in enumerate(ends)]
        out = np.stack(causes, axis=1)
    return EffectDraws(graphs, np.where(descendants(graphs), factors * out, 0.0), direct, selected.weights)


def mean_effects(post: GraphSample, draws: int, seed: int, units: Units, rows: int) -> Float[np.ndarray, "d d"]:
    """Return the posterior means of all effects: in closed form where possible, else those of draws."""
    if not has_closed_moments(post):
        drawn = draw_effects(post, draws, seed, units, rows)
        return np.einsum("n,nij->ij", drawn.weights, drawn.effects)
    assert post.data is not None
    flat, member = np.unique(post.graphs.reshape(len(post), -1), axis=0, return_inverse=True)
    graphs = flat.reshape(-1, post.nodes, post.nodes)
    weights = np.bincount(member.reshape(-1), weights=post.weights)
    family = families_of(post.model, post.model.summarise(post.data))
    given = np.linalg.inv(np.eye(post.nodes) - mean_weights(graphs, family))
    return unit_factors(post, units) * np.einsum("n,nij->ij", weights, np.where(descendants(graphs), given, 0.0))


def effect_table(post: GraphSample, level: float, draws: int, seed: int, units: Units, rows: int) -> pd.DataFrame:
    """Return all effects with their intervals, the largest first; see `Posterior.effect_table`."""
    check_level(level)
    return table_of_effects(post, draw_effects(post, draws, seed, units, rows), level)


def table_of_effects(post: GraphSample, drawn: EffectDraws, level: float) -> pd.DataFrame:
    """Return the table of these draws; see `Posterior.effect_table`."""
    values, weights = drawn.effects, drawn.weights
    means = np.einsum("n,nij->ij", weights, values)
    sd = np.sqrt(np.einsum("n,nij->ij", weights, (values - means) ** 2))
    i, j = np.nonzero(~np.eye(post.nodes, dtype=np.bool_))
    pairs, tail = values[:, i, j], (1 - level) / 2
    columns: dict[str, Any] = {
        "cause": np.array(post.names, dtype=object)[i],
        "effect": np.array(post.names, dtype=object)[j],
        "mean": means[i, j],
        "sd": sd[i, j],
        "lower": weighted_quantile(pairs, weights, tail),
        "upper": weighted_quantile(pairs, weights, 1 - tail),
        "probability": ancestor_matrix(post)[i, j],
        "mean_given_path": drawn.mean_given_path()[i, j],
    }
    table = pd.DataFrame(columns)
    return table.sort_values("mean", key=np.abs, ascending=False, kind="stable", ignore_index=True)
