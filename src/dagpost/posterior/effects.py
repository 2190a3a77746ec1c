"""Average causal effects under the posterior over graphs and parameters.

The effect of x on y is `(E[y | do(x = b)] - E[y | do(x = a)]) / (b - a)`. In a linear model it does not depend on a
and b; in any other model both means are simulated with the same random numbers. In a categorical network it is a
difference of probabilities (`tables.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dagpost._util.numerics import generator, key_from_seed
from dagpost.errors import InputError, nearest, whole_number
from dagpost.graphs import descendants
from dagpost.models import Model
from dagpost.posterior.features import weighted_mean
from dagpost.posterior.interventions import (
    effect_moments,
    families_of,
    nodes_on_paths,
    relevant_groups,
    simulate_under,
    total_effects,
)
from dagpost.posterior.notebook import titled_table
from dagpost.posterior.parameters import can_draw, effects_in_parts, parameters_of, select_draws
from dagpost.posterior.sample import WIDE, GraphSample, chain_of_draws
from dagpost.posterior.tables import (
    LevelContrast,
    LevelTables,
    contrast_of_levels,
    contrast_text,
    level_effects,
    level_tables,
    relevant_families,
    stored_tables,
)
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
        closed forms and the data; otherwise they are those of the draws. In a categorical network the mean is exact.
    meaning
        The difference of probabilities that the effect is, in a categorical network; that columns are latent, in a
        copula.
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
    meaning: str = ""

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

    def _repr_html_(self) -> str:
        """Mean, interval and probabilities as a table, in notebooks."""
        low, high = self.interval
        columns = {
            "mean": self.mean, "sd": self.sd, f"lower {self.level:.0%}": low, f"upper {self.level:.0%}": high,
            "positive": self.positive, "negative": self.negative, "none": self.zero,
        }  # fmt: skip
        title = self.meaning or f"effect of {self.cause} on {self.effect}"
        return titled_table(title, pd.DataFrame([columns]), "positive, negative, none: posterior probabilities.")

    def __repr__(self) -> str:
        low, high = self.interval
        what = self.meaning or f"{self.cause} on {self.effect}"
        return (
            f"Effect({what}: {self.mean:.3g}, {self.level:.0%} in [{low:.3g}, {high:.3g}], "
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
    contrast: Any, rows: int, outcome: str | None = None,
) -> Effect:  # fmt: skip
    """Return the posterior of one effect; see `Posterior.effect`."""
    i, j = pair_of(post, cause, effect)
    check_level(level)
    if outcome is not None and not post.model.categorical:
        raise InputError(f"outcome={outcome!r}: a level of the effect, which has none in the model {post.model.name!r}")
    factor = unit_factors(post, units)[i, j]
    key_choice, key_theta, key_rows = jax.random.split(key_from_seed(seed), 3)
    selected = select_draws(post, whole_number("draws", draws, least=1), key_choice)
    reach = descendants(post.graphs)
    connected = np.flatnonzero(reach[selected.member, i, j])
    values = np.zeros(len(selected.member))
    meaning, mean = "", None
    if post.model.latent:
        meaning = f"{post.names[i]} on {post.names[j]}, in standard deviations of latent columns"
    if post.model.categorical:
        levels = contrast_of_levels(post, i, j, contrast, outcome)
        meaning = contrast_text(post, i, j, levels)
        source = tables_of(post, selected.member, generator(key_theta))
        values = level_effects(source, post.graphs[selected.member], i, j, levels)
        mean = _level_mean(post, i, j, levels) if can_draw(post) else None
    elif len(connected) and post.nodes > WIDE and type(post.model).linear_weights is not Model.linear_weights:
        on_path = nodes_on_paths(reach[selected.member[connected]], i, j)
        values[connected] = factor * effects_in_parts(post, selected.member[connected], on_path, i, j, key_theta)
    elif len(connected):
        graphs, theta = parameters_of(post, selected.member[connected], key_theta)
        ends = contrast_of(post, i, contrast, units)
        values[connected] = factor * effects_of_cause(post.model, graphs, theta, i, ends, key_rows, rows)[:, j]
    closed = has_closed_moments(post)
    if closed:
        moments = _closed_moments(post, reach, i, j, factor)
    else:
        of_graphs = (
            relevant_families(post.graphs, i, j)[0]
            if post.model.categorical
            else relevant_groups(post.graphs, reach, i, j)
        )
        groups = of_graphs[selected.member]
        chain = chain_of_draws(post)
        chain = None if chain is None else chain[selected.member]
        moments = _moments_of_draws(values, selected.weights, groups, reach[selected.member, i, j], chain)
    if mean is not None:
        moments = moments._replace(mean=mean[0], error=mean[1])
    return Effect(
        post.names[i], post.names[j], values, selected.weights, moments.mean, moments.error, moments.within,
        moments.between, moments.variance, level, closed, meaning,
    )  # fmt: skip


def tables_of(post: GraphSample, member: np.ndarray, rng: np.random.Generator | None) -> LevelTables:
    """Return the tables of these graphs: drawn anew, their means without random numbers, or where cells of the data are
    missing those that were drawn with each graph."""
    if can_draw(post):
        assert post.data is not None
        return level_tables(post.model, post.model.summarise(post.data), rng)
    theta = jax.tree.map(lambda leaf: np.asarray(leaf)[member], post.theta)
    return stored_tables(theta, np.array([len(levels) for levels in post.levels]))


def _level_mean(post: GraphSample, i: int, j: int, levels: LevelContrast) -> tuple[float, float]:
    """Return the posterior mean of that effect, exact given the graphs, and its Monte Carlo standard error."""
    given = level_effects(tables_of(post, np.arange(len(post)), None), post.graphs, i, j, levels)
    return weighted_mean(given, post.weights, chain_of_draws(post), post.is_exhaustive)


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
    return can_draw(post) and post.model.has_weight_moments


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
    if post.data is None or post.model.latent:
        return -1.0, 1.0
    column = post.data.values[:, i]
    mean, spread = np.nanmean(column), np.nanstd(column)
    return float(mean - spread), float(mean + spread)


def effects_of_cause(
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
