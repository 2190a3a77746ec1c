"""A model some of whose mechanisms are changed by experimental conditions, with the targets summed out.

Rows come under conditions. Where the set T of conditions changes the mechanism of node j, its parents being P, the
evidence of the family is a product of evidences of the model itself,

    Z_j(P, T) = Z(j, P | rows of conditions outside T) prod_(k in T) Z(j, P' | rows of condition k),

with P' = P for soft changes (new parameters) and P' = {} for hard ones. Every mechanism has the prior that the model
gives to a family with these parents, whatever the condition: changed parameters are drawn anew from it. The targets of
different nodes are independent given the graph, and so the sum over them is one sum for each family,

    Z_j(P) = sum_T p_j(T) Z_j(P, T),

with the prior of `targets.py`. It is again the evidence of a family: exact inference, chains, diagnostics and verdict
need to know nothing of targets, which never have to be sampled; their probabilities follow from those of the families,
`p(T | D) = sum_P p(P | D) p_j(T) Z_j(P, T) / Z_j(P)`. Parameters and effects are those of the unchanged mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.special import log_softmax, logsumexp

from dagpost._util.numerics import generator
from dagpost.data import Dataset
from dagpost.data.conditions import conditions_of_mask
from dagpost.data.missing import missing_problems
from dagpost.data.slices import past_columns
from dagpost.data.values import raise_problems
from dagpost.errors import InputError
from dagpost.models.additive import Additive, in_one_unit
from dagpost.models.base import Model, Statistics, WeightMoments
from dagpost.models.bdeu import BDeu, NodeIndex
from dagpost.models.bge import BGe
from dagpost.models.conjugate import ConjugateTable, no_table
from dagpost.models.counts import CountTable, no_counts, plain_counts
from dagpost.models.linear_gaussian import LinearGaussian
from dagpost.models.set_evidence import SetTable, plain_table, set_terms
from dagpost.models.targets import Targets, as_targets
from dagpost.typing import Graph, Graphs, Key, Nodes, RowGroups, Rows, Scalar, SoftColumn, Theta

CLOSED_FORMS = (BGe, LinearGaussian, BDeu, Additive)
"""Models whose evidence is compiled, so that it can be summed over many sets of conditions."""
CHUNK = 1 << 22
"""Numbers that are held at a time for families and sets."""
NEGLIGIBLE = 1e-12
"""Probability of a set of conditions that moments leave out."""


class SharedSets(NamedTuple):
    """Statistics of all nodes.

    The statistics of the model have a group of rows for each set of conditions, those outside it, and then one for
    each condition alone.
    """

    of_model: Statistics
    members: Any  # (s, k) conditions of each set
    log_prior: Any  # (s, d) by set and node
    log_unit: Any  # (d,) added to the evidence of a family: density in units of the table
    levels: Any  # (d,) levels of categorical nodes


@dataclass(frozen=True)
class Perturbed(Model):
    """A model with the targets of experimental conditions summed out; `dp.fit` makes it of a model and `dp.Targets`.

    Parameters
    ----------
    base
        Model of the mechanisms: "bge", "linear", "additive" or "bdeu".
    targets
        What conditions may change.
    """

    base: Model
    targets: Targets = Targets()  # noqa: RUF009 (immutable)
    has_evidence: ClassVar[bool] = True
    traceable: ClassVar[bool] = False
    soft: ClassVar[bool] = False

    def __post_init__(self):
        if not isinstance(self.base, CLOSED_FORMS) or self.base.latent:
            names = ", ".join(repr(kind.name) for kind in CLOSED_FORMS)
            raise InputError(
                f"the model {self.base.name!r} takes no conditions: use {names}, or leave `conditions` out"
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.base.name

    @property
    def assumption(self) -> str:  # type: ignore[override]
        return self.base.assumption

    @property
    def has_parameters(self) -> bool:  # type: ignore[override]
        return self.base.has_parameters

    @property
    def linear(self) -> bool:  # type: ignore[override]
        return self.base.linear

    @property
    def categorical(self) -> bool:  # type: ignore[override]
        return self.base.categorical

    @property
    def drops_intervened(self) -> bool:  # type: ignore[override]
        return self.targets.change == "hard"

    @property
    def theta_axes(self) -> Any:
        return self.base.theta_axes

    def accept(self, data: Dataset) -> Dataset:
        raise_problems(missing_problems(data, "a table with conditions"))
        return self.base.accept(data)

    def check(self, data: Dataset) -> None:
        self.base.check(data)

    # ---- the score

    def counted(self, data: Dataset) -> Bool[np.ndarray, "n d"]:
        """Return the cells that the evidence is a density of: all, since a changed mechanism has a density as well."""
        return np.ones(data.values.shape, np.bool_)

    def summarise(self, data: Dataset) -> Statistics:
        """Return the statistics; those of rows without conditions are the model's own, of one set without members."""
        return self._summarise(data)

    def _summarise(self, data: Dataset, known: int | None = None) -> Statistics:
        """Return the statistics, in units of the first `known` rows where the model has units of its own."""
        data = self.base.accept(data)
        node, d = NodeIndex(np.arange(data.nodes)), data.nodes
        levels = np.array([max(len(levels), 1) for levels in data.levels], np.int64)
        if data.conditions is None:
            own = self.base.summarise(data)
            return Statistics(SharedSets(own, np.zeros((1, 0), np.bool_), np.zeros((1, d)), np.zeros(d), levels), node)
        members, log_prior = self.targets.sets(data)
        place = data.conditions.of_row
        inside = np.concatenate([members, np.zeros((len(members), 1), np.bool_)], axis=1)[:, place]  # (s, n)
        alone = np.arange(members.shape[1])[:, None] != place
        grouped = data.with_regimes(np.concatenate([inside, alone]))
        log_unit = np.zeros(d)
        if isinstance(self.base, Additive):
            # all groups in the units of all rows, so that splitting rows does not change the prior
            of_model, scale = self.base.summarise_in_one_unit(grouped, known)
            log_unit = -data.observations * np.log(scale)
        else:
            of_model = self.base.summarise(grouped)
        return Statistics(SharedSets(of_model, members, log_prior, log_unit, levels), node)

    def extended(self, stats: Statistics, rows: Rows, groups: RowGroups | None = None) -> Statistics | None:
        """Return the statistics with further rows in which nothing was done: the groups of rows outside a set of
        conditions get them, and those of a condition alone do not."""
        shared = stats.shared
        sets, conditions = shared.members.shape
        if conditions and groups is None:
            groups = np.arange(sets + conditions) < sets
        of_model = self.base.extended(shared.of_model, rows, groups)
        if of_model is None:
            return None
        if conditions and isinstance(self.base, Additive):
            log_scale = np.log(of_model.shared.scale[0])
            of_model = in_one_unit(of_model)
            shared = shared._replace(log_unit=shared.log_unit - len(rows) * log_scale)
        return stats._replace(shared=shared._replace(of_model=of_model))

    def set_terms(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, "n s"]:
        """Return `log p_j(T) Z_j(P, T)` of families, for every set T of conditions."""
        return set_terms(*self.compiled_tables(stats), nodes, parents)

    def compiled_tables(self, stats: Statistics) -> tuple[ConjugateTable, CountTable, SetTable]:
        """Return the tables of compiled evidence: of the model, by group of rows, and of the sets of conditions."""
        shared, d = stats.shared, len(stats.shared.levels)
        table, counts = self.base.evidence_table(shared.of_model), self.base.count_table(shared.of_model)
        sets = SetTable(shared.members, shared.log_prior, shared.log_unit, self.targets.change == "hard")
        return (
            no_table(d) if table is None else plain_table(table),
            no_counts(d) if counts is None else plain_counts(counts),
            plain_table(sets),
        )

    def family_terms(self, data: Dataset) -> int:
        return len(self.targets.sets(data).members)

    @property
    def has_compiled_evidence(self) -> bool:
        return True

    @property
    def has_weight_moments(self) -> bool:
        return self.base.has_weight_moments

    def log_evidence(self, j: int, parents: Any, stats: Statistics) -> float:
        return float(self.log_evidences(np.array([j]), _indicator(parents, stats), stats)[0])

    def log_evidences(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, " n"]:
        shared = stats.shared
        if not shared.members.shape[1]:
            return self.base.log_evidences(nodes, parents, shared.of_model)
        out, size = np.empty(len(nodes)), max(1, CHUNK // len(shared.members))
        for at in range(0, len(nodes), size):
            some = slice(at, at + size)
            # log sum_T p_j(T) Z_j(P, T)
            out[some] = logsumexp(self.set_terms(nodes[some], parents[some], stats), axis=1)
        return out + np.asarray(shared.log_unit)[nodes]

    def log_predictive_of(self, graphs: Graphs, known: Dataset, new: Dataset) -> Float[np.ndarray, " m"]:
        """Return `log p(new rows | known rows, G)`, with parameters and targets integrated out.

        Cells of past columns that are marked as set do not count, as everywhere; known targets are in the present.
        """
        past = past_columns(new.names) & bool(new.lags)
        given = np.flatnonzero(past & new.intervened.any(axis=0))
        new = new.with_interventions(new.intervened & ~past)
        if new.conditions is None and new.intervened.any():
            new = replace(new, conditions=conditions_of_mask(new.intervened, new.names))
        both = known.followed_by(new)
        before, after = (self._summarise(part, known.observations) for part in (known, both))
        rootless = np.zeros((len(given), new.nodes), np.bool_)
        roots = self.log_evidences(given, rootless, after) - self.log_evidences(given, rootless, before)
        return self.log_evidence_of(graphs, after) - self.log_evidence_of(graphs, before) - roots.sum()

    def target_probabilities(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, "n k"]:
        """Return the probability that each condition changes the mechanism of a node, given its parents and the data.

        Parameters
        ----------
        nodes, parents, stats
            As in `log_evidences`.
        """
        members = np.asarray(stats.shared.members)
        out, size = np.empty((len(nodes), members.shape[1])), max(1, CHUNK // len(members))
        for at in range(0, len(nodes), size):
            some = slice(at, at + size)
            out[some] = np.exp(log_softmax(self.set_terms(nodes[some], parents[some], stats), axis=1)) @ members
        return np.clip(out, 0.0, 1.0)

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        raise NotImplementedError("targets of conditions are summed out by exact inference and by chains over graphs")

    def log_likelihoods(self, graphs: Graphs, theta: Theta, data: Dataset) -> Float[np.ndarray, " m"]:
        """Return `log p(data | G, Theta)` of many graphs, which is of the unchanged mechanisms if theta is given."""
        if not jax.tree.leaves(theta):
            return self.log_evidence_of(graphs, self.summarise(data))
        if data.conditions is not None:
            raise InputError("the parameters are those without a condition: give rows without conditions to evaluate")
        return self.base.log_likelihoods(graphs, theta, data)

    # ---- the unchanged mechanism, given data of all conditions

    def _sets_of(self, j: int, parents: Nodes, stats: Statistics) -> Float[np.ndarray, " s"]:
        """Return the probability of each set of conditions given the family and the data."""
        if not stats.shared.members.shape[1]:
            return np.ones(1)
        return np.exp(log_softmax(self.set_terms(np.array([j]), _indicator(parents, stats), stats)[0]))

    def _in_groups(self, stats: Statistics, group: Any) -> Statistics:
        """Return the statistics of the model with a group of rows for each node: those outside its set."""
        if not stats.shared.members.shape[1]:
            return stats.shared.of_model
        d = len(stats.shared.levels)
        return _regrouped(stats.shared.of_model, np.broadcast_to(np.asarray(group, np.int64), (d,)).copy())

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> Theta:
        return jax.tree.map(lambda leaf: leaf[0], self.draw_thetas(key[None], np.asarray(graph)[None], stats))

    def draw_thetas(self, keys: Key, graphs: Graphs, stats: Statistics) -> Theta:
        """Return an exact draw for each graph: a set of conditions for each node, and parameters given the rows outside
        it."""
        rng, graphs = generator(keys[-1]), np.asarray(graphs, dtype=np.bool_)
        drawn = np.zeros(graphs.shape[:2], np.int64)
        for j in range(graphs.shape[-1]):
            columns, where = np.unique(graphs[:, :, j], axis=0, return_inverse=True)
            for c, column in enumerate(columns):
                of_column = np.flatnonzero(where.reshape(-1) == c)
                shares = self._sets_of(j, np.flatnonzero(column), stats)
                drawn[of_column, j] = rng.choice(len(shares), size=len(of_column), p=shares / shares.sum())
        distinct, where = np.unique(drawn, axis=0, return_inverse=True)
        parts, order = [], []
        for c, group in enumerate(distinct):
            alike = np.flatnonzero(where.reshape(-1) == c)
            parts.append(self.base.draw_thetas(keys[alike], graphs[alike], self._in_groups(stats, group)))
            order.append(alike)
        back = np.argsort(np.concatenate(order), kind="stable")
        return jax.tree.map(lambda *leaves: _stacked(leaves)[back], *parts)

    def linear_weights(self, theta: Theta) -> Any:
        return self.base.linear_weights(theta)

    def weight_moments(self, j: int, parents: Nodes, stats: Statistics) -> WeightMoments | None:
        """Return the moments of a mixture over the sets of conditions: `E[w] = E E[w | T]`, and the covariance is that
        of the means and the mean of the covariances."""
        shares = self._sets_of(j, parents, stats)
        used = np.flatnonzero(shares > NEGLIGIBLE)
        shares = shares[used] / shares[used].sum()
        found = [self.base.weight_moments(j, parents, self._in_groups(stats, group)) for group in used]
        means, covariances = np.array([m.mean for m in found if m]), np.array([m.covariance for m in found if m])
        if not len(means):
            return None
        mean = shares @ means
        spread = means - mean
        within = np.tensordot(shares, covariances, axes=1)
        return WeightMoments(mean, within + np.einsum("t,ti,tk->ik", shares, spread, spread))

    def cells(self, j: int, parents: Nodes, stats: Statistics) -> Float[np.ndarray, "q r"]:
        """Return the posterior mean of a node's table of probabilities, times the expected weight of each of its rows
        (`BDeu.cells`)."""
        assert isinstance(self.base, BDeu)
        shares = self._sets_of(j, parents, stats)
        mean, weight = 0.0, 0.0
        for group in np.flatnonzero(shares > NEGLIGIBLE):
            cells = self.base.cells(j, parents, self._in_groups(stats, group))
            whole = cells.sum(axis=1, keepdims=True)
            mean, weight = mean + shares[group] * cells / whole, weight + shares[group] * whole
        return np.asarray(mean * weight)

    def draw_tables(
        self, rng: np.random.Generator, j: int, parents: Nodes, stats: Statistics, draws: int
    ) -> Float[np.ndarray, "n q r"]:
        """Return draws of a node's table (`BDeu.draw_tables`), each given a set of conditions drawn for it."""
        assert isinstance(self.base, BDeu)
        shares = self._sets_of(j, parents, stats)
        counts = rng.multinomial(draws, shares / shares.sum())
        parts = [
            self.base.draw_tables(rng, j, parents, self._in_groups(stats, group), int(counts[group]))
            for group in np.flatnonzero(counts)
        ]
        return rng.permutation(np.concatenate(parts))

    def node_mean(self, inputs: Any, theta_j: Theta) -> Any:
        return self.base.node_mean(inputs, theta_j)

    def sample_node(self, key: Key, inputs: Any, theta_j: Theta) -> Any:
        return self.base.sample_node(key, inputs, theta_j)

    def sample_theta(self, key: Key, d: int) -> Theta:
        return self.base.sample_theta(key, d)

    def sample_rows(self, key, graph, theta, rows, clamped=None) -> Dataset:
        return self.base.sample_rows(key, graph, theta, rows, clamped)


def perturbed(model: Model, targets: Any, data: Dataset) -> tuple[Model, Dataset]:
    """Return the model with targets summed out, and the data with their conditions; both as they are without targets.

    Parameters
    ----------
    model, data
        Model of the mechanisms, and the table.
    targets
        As in `dagpost.models.targets.as_targets`.
    """
    found = as_targets(targets, data)
    if found is None:
        return model, data
    found[0].prior(found[1])  # names are checked before anything runs
    return Perturbed(model, found[0]), found[1]


def _indicator(parents: Any, stats: Statistics) -> Bool[np.ndarray, "1 d"]:
    """Return the indicator of one set of parents."""
    row = np.zeros((1, len(stats.shared.levels)), np.bool_)
    row[0, np.asarray(parents, dtype=np.int64)] = True
    return row


def _regrouped(tree: Any, group: np.ndarray) -> Any:
    """Return statistics whose named tuples have this group of rows for each node."""
    if not hasattr(tree, "_fields"):
        return tree
    return tree._replace(
        **{name: group if name == "group" else _regrouped(getattr(tree, name), group) for name in tree._fields}
    )


def _stacked(leaves: tuple[np.ndarray, ...]) -> np.ndarray:
    """Return arrays joined along the first axis, padded with zeros to one shape (tables of categories differ)."""
    shape = np.max([np.shape(leaf)[1:] for leaf in leaves], axis=0)
    return np.concatenate(
        [
            np.pad(leaf, [(0, 0), *((0, int(size - own)) for size, own in zip(shape, np.shape(leaf)[1:]))])
            for leaf in map(np.asarray, leaves)
        ]
    )
