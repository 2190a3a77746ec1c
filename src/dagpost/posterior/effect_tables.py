"""Average causal effects of all pairs of nodes: draws of the whole matrix, its means, and a table with intervals."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from dagpost._util.numerics import generator, key_from_seed
from dagpost.errors import whole_number
from dagpost.graphs import descendants
from dagpost.models import BDeu, Perturbed
from dagpost.posterior.effects import (
    Units,
    check_level,
    contrast_of,
    effects_of_cause,
    has_closed_moments,
    unit_factors,
    weighted_quantile,
)
from dagpost.posterior.features import ancestor_matrix
from dagpost.posterior.interventions import families_of, mean_weights
from dagpost.posterior.parameters import can_draw, parameters_of, select_draws
from dagpost.posterior.sample import GraphSample
from dagpost.posterior.tables import contrast_of_levels, level_effects
from dagpost.typing import Graphs


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
    if post.model.categorical:
        graphs = post.graphs[selected.member]
        return EffectDraws(graphs, _all_level_effects(post, graphs, generator(key_theta)), None, selected.weights)
    graphs, theta = parameters_of(post, selected.member, key_theta)
    weights = post.model.linear_weights(theta)
    direct = None
    if weights is not None:
        direct = np.asarray(weights, dtype=np.float64) * graphs
        out = np.linalg.inv(np.eye(post.nodes) - direct)
        direct = factors * direct
    else:
        ends = [contrast_of(post, i, None, units) for i in range(post.nodes)]
        causes = [effects_of_cause(post.model, graphs, theta, i, end, key_rows, rows) for i, end in enumerate(ends)]
        out = np.stack(causes, axis=1)
    return EffectDraws(graphs, np.where(descendants(graphs), factors * out, 0.0), direct, selected.weights)


def mean_effects(post: GraphSample, draws: int, seed: int, units: Units, rows: int) -> Float[np.ndarray, "d d"]:
    """Return the posterior means of all effects: in closed form where possible, else those of draws."""
    if post.model.categorical and can_draw(post):
        graphs, weights = _distinct_graphs(post)
        return np.einsum("n,nij->ij", weights, _all_level_effects(post, graphs, None))
    if not has_closed_moments(post):
        drawn = draw_effects(post, draws, seed, units, rows)
        return np.einsum("n,nij->ij", drawn.weights, drawn.effects)
    assert post.data is not None
    graphs, weights = _distinct_graphs(post)
    family = families_of(post.model, post.model.summarise(post.data))
    given = np.linalg.inv(np.eye(post.nodes) - mean_weights(graphs, family))
    return unit_factors(post, units) * np.einsum("n,nij->ij", weights, np.where(descendants(graphs), given, 0.0))


def _distinct_graphs(post: GraphSample) -> tuple[Graphs, Float[np.ndarray, " m"]]:
    """Return the distinct graphs and their weights."""
    flat, member = np.unique(post.graphs.reshape(len(post), -1), axis=0, return_inverse=True)
    return flat.reshape(-1, post.nodes, post.nodes), np.bincount(member.reshape(-1), weights=post.weights)


def _all_level_effects(
    post: GraphSample, graphs: Graphs, rng: np.random.Generator | None
) -> Float[np.ndarray, "n d d"]:
    """Return all effects in a categorical network, between the first and the last level of each cause on the last level
    of each effect: with tables drawn for each graph, or their means given the graph."""
    assert isinstance(post.model, BDeu | Perturbed) and post.data is not None
    stats = post.model.summarise(post.data)
    out = np.zeros(graphs.shape)
    for i, j in zip(*np.nonzero(descendants(graphs).any(axis=0))):
        levels = contrast_of_levels(post, int(i), int(j), None, None)
        out[:, i, j] = level_effects(post.model, stats, graphs, int(i), int(j), levels, rng)
    return out


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
    if post.model.categorical:
        pairs_of = [contrast_of_levels(post, int(a), int(b), None, None) for a, b in zip(i, j)]
        columns["from"] = [post.levels[a][pair.low] for a, pair in zip(i, pairs_of)]
        columns["to"] = [post.levels[a][pair.high] for a, pair in zip(i, pairs_of)]
        columns["outcome"] = [post.levels[b][pair.outcome] for b, pair in zip(j, pairs_of)]
    table = pd.DataFrame(columns)
    return table.sort_values("mean", key=np.abs, ascending=False, kind="stable", ignore_index=True)
