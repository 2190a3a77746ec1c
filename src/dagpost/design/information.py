"""What outcomes of an experiment say about the graph, or about one effect, in nats.

About the graph, the expected information gain is the mutual information of graph and outcome,

    EIG = E_{G,y}[ log p(y | G, D, do) - log p(y | D, do) ] = E_y[ sum_G p(G | y, D) log( p(G | y, D) / p(G | D) ) ],

with `p(G | y, D) = w_G p(y | G, D, do) / sum_G' w_G' p(y | G', D, do)` over the distinct graphs of the posterior, whose
weights are w. The second form is averaged over simulated outcomes: given an outcome it sums over graphs exactly, so it
varies less, and no term is negative. It is an unbiased estimate for the weighted graphs as they are. Mutual information
is concave in the weights, so where these are themselves draws, the gain is on average below that of the posterior
that they were drawn from. With drawn parameters the density of a graph is the mean over its own draws; mutual
information is convex in these densities, so the gain is then on average above that with parameters integrated out.

About an effect, its draws are divided into bins b: no path, and intervals of equal probability. With draws
(G_m, theta_m) in bins b_m and outcomes simulated from some of them, the others give

    q(b | y) = sum_{m: b_m = b} w_m p(y | G_m, theta_m, do) / sum_m w_m p(y | G_m, theta_m, do)

without the draw that the outcome comes from, where theta_m are the parameters that the effect depends on (all others
are integrated out if the model has closed forms), and `E[log q(b | y) - log p(b)]` is a lower bound of the mutual
information of bin and outcome (Barber and Agakov, 2003), whatever the error of q.
"""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import softmax, xlogy

from dagpost.design.outcomes import Drawn
from dagpost.graphs import descendants
from dagpost.posterior import Posterior
from dagpost.posterior.effects import contrast_of, effects_of_cause
from dagpost.posterior.interventions import nodes_on_paths
from dagpost.posterior.tables import contrast_of_levels, do_probability, relevant_families
from dagpost.typing import Graphs, Key

BINS, FEWEST_IN_BIN = 8, 20
"""Most intervals that the draws of an effect are divided into, and the fewest draws in one."""
SIMULATED_ROWS = 200
"""Rows simulated for the effect of each draw in a nonlinear model."""


class Question(NamedTuple):
    """What an experiment should answer: which label is true, a graph or a bin of an effect.

    Attributes
    ----------
    label
        Label of each member of the distribution that densities are computed for.
    weights
        Probability of each member.
    leave_out
        Member that each outcome was simulated from, where it may not take part in the answer; else None.
    """

    label: Int[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"]
    leave_out: Int[np.ndarray, " s"] | None = None

    @property
    def prior(self) -> Float[np.ndarray, " l"]:
        """Probability of each label."""
        return np.bincount(self.label, weights=self.weights)

    @property
    def entropy(self) -> float:
        """Uncertainty about the label, which no gain exceeds."""
        return float(-xlogy(self.prior, self.prior).sum())

    def gains(self, log_density: Float[np.ndarray, "s k"]) -> Float[np.ndarray, " s"]:
        """Return the information in every outcome; its mean is the estimate.

        Parameters
        ----------
        log_density
            Log density of every outcome (row) given each member.
        """
        with np.errstate(divide="ignore"):
            log_weight = np.log(self.weights) + log_density
        if self.leave_out is None:
            after = self._shares(softmax(log_weight, axis=1))
            # sum_l p(l | y) log( p(l | y) / p(l) )
            return (xlogy(after, after) - xlogy(after, self.prior)).sum(axis=1)
        outcomes = np.arange(len(log_density))
        log_weight[outcomes, self.leave_out] = -np.inf
        weight = softmax(log_weight, axis=1)
        effective = 1 / (weight**2).sum(axis=1)
        # the prior counts as one more draw, so that no label has probability 0
        after = (effective[:, None] * self._shares(weight) + self.prior) / (effective + 1)[:, None]
        true = self.label[self.leave_out]
        return np.log(after[outcomes, true]) - np.log(self.prior[true])

    def _shares(self, weight: Float[np.ndarray, "s k"]) -> Float[np.ndarray, "s l"]:
        """Return the total weight of the members with each label."""
        order = np.argsort(self.label, kind="stable")
        starts = np.searchsorted(self.label[order], np.arange(self.label.max() + 1))
        return np.add.reduceat(weight[:, order], starts, axis=1)


def effect_bins(values: Float[np.ndarray, " n"], weights: Float[np.ndarray, " n"]) -> Int[np.ndarray, " n"]:
    """Return the bin of each draw of an effect: one for no effect, and intervals of equal probability."""
    some = np.flatnonzero(values != 0)
    out = np.zeros(len(values), dtype=np.int64)
    count = int(np.clip(len(some) // FEWEST_IN_BIN, 1, BINS)) if len(some) else 0
    if count:
        order = some[np.argsort(values[some], kind="stable")]
        middle = np.cumsum(weights[order]) - weights[order] / 2
        out[order] = 1 + np.minimum((count * middle / weights[some].sum()).astype(np.int64), count - 1)
    return np.unique(out, return_inverse=True)[1].reshape(-1)


def effect_values(post: Posterior, drawn: Drawn, i: int, j: int, key: Key) -> Float[np.ndarray, " n"]:
    """Return the effect of node i on node j, as `Posterior.effect` defines it, for every draw; 0 without a path."""
    if post.model.categorical:
        return _level_effects(post, drawn, i, j)
    reach = descendants(drawn.graphs)[:, i, j]
    ends = contrast_of(post, i, None, "raw")
    values = effects_of_cause(post.model, drawn.graphs, drawn.theta, i, ends, key, SIMULATED_ROWS)[:, j]
    return np.where(reach, values, 0.0)


def relevant_nodes(post: Posterior, graphs: Graphs, i: int, j: int) -> Bool[np.ndarray, "m d"]:
    """Return the nodes whose parameters the effect of i on j depends on, in each graph; none without a path.

    In a linear model they are those on paths from i to j, j included; in others all ancestors of j as well.
    """
    reach = descendants(graphs)
    if post.model.linear:
        return nodes_on_paths(reach, i, j)
    above = reach[:, :, j] | (np.arange(post.nodes) == j)
    above[:, i] = False
    return above & reach[:, i, j, None]


def _level_effects(post: Posterior, drawn: Drawn, i: int, j: int) -> Float[np.ndarray, " n"]:
    """Return the effect in a categorical network, exact given the drawn tables."""
    levels, sizes = contrast_of_levels(post, i, j, None, None), [len(one) for one in post.levels]
    groups, connected, edges = relevant_families(drawn.graphs, i, j)
    out = np.zeros(len(groups))
    for group in np.unique(groups[connected]):
        members = np.flatnonzero(groups == group)
        graph = edges[members[0]]
        nodes = [j, *np.flatnonzero(descendants(graph)[:, j]).tolist()]
        families = {k: np.flatnonzero(graph[:, k]).tolist() for k in nodes if k != i}
        tables = {}
        for k, parents in families.items():
            shape = (*(sizes[p] for p in parents), sizes[k])
            cells = drawn.theta.table[members, k, : prod(shape[:-1]), : sizes[k]]
            tables[k] = cells.reshape(len(members), *shape)
        high, low = (do_probability(tables, families, i, value, j) for value in (levels.high, levels.low))
        out[members] = high[:, levels.outcome] - low[:, levels.outcome]
    return out
