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

without the draw that the outcome comes from, whose weight the others in its bin share, where theta_m are the parameters
that the effect depends on (all others are integrated out if the model has closed forms), and `E[log q(b | y) - log
p(b)]` is a lower bound of the mutual information of bin and outcome (Barber and Agakov, 2003), whatever the error of q.
Outcomes are simulated by bin, half of them by the probability of the bin and half in equal numbers, so that a rare bin
has some:

    gain = sum_b p(b) mean_{s in b} gain_s,    error² = sum_b p(b)² var_{s in b}(gain_s) / n_b + pool²,

with outcomes of the same draw counted as one in the error, and where pool is the jackknife error of the draws that q is
made of, a tenth of which is left out at a time.
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
GROUPS = 10
"""Groups of draws that are left out in turn."""
FEWEST_OUTCOMES, FEW_OUTCOMES = 4, 8
"""Fewest simulated outcomes of a bin, and the number below which a bin is called hardly visited."""
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

    def gains(
        self, log_density: Float[np.ndarray, "s k"], used: Bool[np.ndarray, " k"] | None = None
    ) -> Float[np.ndarray, " s"]:
        """Return the information in every outcome; its mean is the estimate.

        Parameters
        ----------
        log_density
            Log density of every outcome (row) given each member.
        used
            Members that take part in the answer; by default all of them.
        """
        weights = self.weights if used is None else np.where(used, self.weights, 0.0)
        with np.errstate(divide="ignore"):
            log_weight = np.log(weights) + log_density
        if self.leave_out is None:
            after = self._shares(softmax(log_weight, axis=1))
            # sum_l p(l | y) log( p(l | y) / p(l) )
            return (xlogy(after, after) - xlogy(after, self.prior)).sum(axis=1)
        outcomes, true = np.arange(len(log_density)), self.label[self.leave_out]
        log_weight[outcomes, self.leave_out] = -np.inf
        # the members that are left stand for their label with its whole probability
        there = np.tile(np.bincount(self.label, weights=weights), (len(outcomes), 1))
        there[outcomes, true] -= weights[self.leave_out]
        some = there > 1e-9 * self.prior
        log_weight += np.log(np.where(some, self.prior / np.where(some, there, 1.0), 1.0))[:, self.label]
        weight = softmax(log_weight, axis=1)
        effective = 1 / (weight**2).sum(axis=1)
        # the prior counts as one more draw, so that no label has probability 0
        after = (effective[:, None] * self._shares(weight) + self.prior) / (effective + 1)[:, None]
        return np.log(after[outcomes, true]) - np.log(self.prior[true])

    def replicates(self, log_density: Float[np.ndarray, "s k"]) -> Float[np.ndarray, "r s"]:
        """Return the gains in every outcome, then those without each tenth of the draws where some are left out."""
        parts = [self.gains(log_density)]
        if self.leave_out is not None and len(self.weights) > 2 * GROUPS:
            group = np.empty(len(self.label), dtype=np.int64)
            group[np.argsort(self.label, kind="stable")] = np.arange(len(group)) % GROUPS  # some of each label
            parts += [self.gains(log_density, group != one) for one in range(GROUPS)]
        return np.stack(parts)

    def strata(self, outcomes: int) -> Strata:
        """Return the bin of each outcome, where these were simulated bin by bin; else a single one."""
        if self.leave_out is None:
            return Strata(np.zeros(outcomes, dtype=np.int64), np.ones(1), np.arange(outcomes))
        return Strata(self.label[self.leave_out], self.prior, self.leave_out)

    def _shares(self, weight: Float[np.ndarray, "s k"]) -> Float[np.ndarray, "s l"]:
        """Return the total weight of the members with each label."""
        order = np.argsort(self.label, kind="stable")
        starts = np.searchsorted(self.label[order], np.arange(self.label.max() + 1))
        return np.add.reduceat(weight[:, order], starts, axis=1)


class Strata(NamedTuple):
    """Bins that outcomes were simulated from, in numbers that are not those of their probabilities.

    Attributes
    ----------
    label
        Bin of each outcome.
    prior
        Probability of each bin.
    member
        Draw that each outcome was simulated from; those of one draw are not independent.
    """

    label: Int[np.ndarray, " s"]
    prior: Float[np.ndarray, " l"]
    member: Int[np.ndarray, " s"]

    @property
    def fewest(self) -> int:
        """Number of outcomes in the bin with fewest."""
        return int(np.bincount(self.label, minlength=len(self.prior)).min())

    def mean(self, gains: Float[np.ndarray, "*c r s"]) -> Float[np.ndarray, "*c"]:
        """Return the expected gain, from `Question.replicates`."""
        return (gains[..., 0, :] * self._shares).sum(axis=-1)  # the same bits in any order of the candidates

    def error(self, gains: Float[np.ndarray, "*c r s"]) -> Float[np.ndarray, "*c"]:
        """Return the standard error of the expected gain, from `Question.replicates`."""
        variance = np.zeros(gains.shape[:-2])
        for label, weight in enumerate(self.prior):
            inside, member = gains[..., 0, self.label == label], self.member[self.label == label]
            inside = inside - inside.mean(axis=-1, keepdims=True)
            among = np.unique(member)
            if 1 < len(among) < len(member):  # a single one has nothing but its outcomes
                inside = np.stack([inside[..., member == one].sum(axis=-1) for one in among], axis=-1)
            count = inside.shape[-1]
            variance += weight**2 * (inside**2).sum(axis=-1) * count / (count - 1) / len(member) ** 2
        if gains.shape[-2] > 1:
            variance += (gains.shape[-2] - 2) * (gains[..., 1:, :] * self._shares).sum(axis=-1).var(axis=-1)
        return np.sqrt(variance)

    @property
    def _shares(self) -> Float[np.ndarray, " s"]:
        """Weight of each outcome."""
        return (self.prior / np.bincount(self.label))[self.label]


def outcomes_by_bin(prior: Float[np.ndarray, " l"], outcomes: int) -> Int[np.ndarray, " l"]:
    """Return how many outcomes to simulate in each bin: half of them by probability, half in equal numbers."""
    return np.maximum(np.rint(outcomes * (prior + 1 / len(prior)) / 2).astype(np.int64), FEWEST_OUTCOMES)


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
