"""Simulated outcomes of experiments, and their density under every graph of a posterior.

An experiment sets some nodes, do(x_S = v), and observes all others in a few rows y. Where parameters integrate out in
closed form, the density of the rows given a graph is a ratio of evidences,

    log p(y | G, D, do) = sum_{j not in S} [ log p(x_j of D and y | parents) - log p(x_j of D | parents) ],

without the factors of the nodes that were set. For any other model there are draws of graphs with their parameters,
and the density is `p(y | G, theta, do)`, the likelihood.

Rows of an experiment come without a condition. Where the data have conditions with unknown targets
(`models/perturbed.py`), evidences sum over these with the rows of y in the unchanged mechanism, whatever the targets,

    p(y | G, D, do) = prod_{j not in S} sum_T p(T | P_j, D) p(y_j | P_j, rows of D outside T),

and parameters are drawn given a drawn T, with which p(y | G, theta, do) has nothing more to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dagpost._util.numerics import generator, map_chunked
from dagpost._util.progress import Advance
from dagpost.data import Dataset
from dagpost.graphs import descendants
from dagpost.models import Model, Perturbed, Statistics
from dagpost.models.conjugate import all_families
from dagpost.posterior import Posterior
from dagpost.posterior.interventions import simulate_under
from dagpost.posterior.parameters import Draws, can_draw, parameters_of, select_draws, systematic
from dagpost.posterior.sample import chunks_of, group_equal
from dagpost.typing import Graphs, Key, Theta

Clamped = dict[int, float]
"""Value of each node that an experiment sets, in fitted units or as the code of a level."""
Outcomes = Float[np.ndarray, "s n d"]
"""Rows of an experiment, for each simulated outcome."""


class Result(NamedTuple):
    """An experiment and its simulated outcomes."""

    clamped: Clamped
    rows: Outcomes


class Densities(Protocol):
    """Log densities of outcomes under the members of a discrete distribution: graphs, or graphs with parameters."""

    weights: Float[np.ndarray, " k"]
    """Posterior probability of each member."""

    def of(self, results: Sequence[Result], advance: Advance) -> Float[np.ndarray, "s k"]:
        """Return the joint log density of all results under each member, one row for each outcome."""
        ...


class Truths(NamedTuple):
    """Draws of graphs with parameters that outcomes are simulated from."""

    graphs: Graphs
    theta: Theta
    keys: Key

    def simulate(self, model: Model, clamped: Clamped, rows: int, number: int) -> Result:
        """Return one outcome of an experiment for each draw; `number` tells repeated experiments apart.

        All candidates have the same draws and random numbers, so that differences between them are more precise.
        """
        keys = jax.vmap(lambda key: jax.random.fold_in(key, number))(self.keys)
        return Result(clamped, simulate_under(model, keys, self.graphs, self.theta, rows, clamped))


def distinct_graphs(graphs: Graphs, weights: Float[np.ndarray, " m"]) -> tuple[Graphs, Float[np.ndarray, " k"]]:
    """Return the distinct graphs and their probabilities."""
    member = group_equal([graphs])[1]
    return graphs[np.unique(member, return_index=True)[1]], np.bincount(member, weights=weights)


class ClosedForm:
    """Densities given each distinct graph of a posterior, with parameters integrated out."""

    def __init__(self, post: Posterior):
        used = post.weights > 0
        graphs, self.weights = distinct_graphs(post.graphs[used], post.weights[used])
        self.ratios = EvidenceRatios(post, graphs, np.ones(graphs.shape[:2], dtype=np.bool_))

    def of(self, results: Sequence[Result], advance: Advance) -> Float[np.ndarray, "s k"]:
        return self.ratios.of(results, advance)


class EvidenceRatios:
    """Sums of `log p(x_j of D and y | parents) - log p(x_j of D | parents)` over chosen nodes j of each graph."""

    def __init__(self, post: Posterior, graphs: Graphs, chosen: Bool[np.ndarray, "k d"]):
        assert post.data is not None
        self.model, self.stats = post.model, post.model.summarise(post.data)
        self.chosen, self.families = chosen, Families.of(graphs)
        self.before = self.families.log_evidence(self.model, self.stats)

    def of(self, results: Sequence[Result], advance: Advance) -> Float[np.ndarray, "s k"]:
        """Return the sums for every outcome; nodes that an experiment sets have no factor in it."""
        # nodes that were set in the same experiments have further rows in common
        free = np.array([[j not in result.clamped for result in results] for j in range(self.chosen.shape[1])])
        patterns = [(pattern, (free == pattern).all(axis=1)) for pattern in np.unique(free, axis=0) if pattern.any()]
        outcomes = len(results[0].rows)
        out = np.zeros((outcomes, len(self.chosen)))
        for s in range(outcomes):
            for pattern, nodes in patterns:
                rows = np.concatenate([result.rows[s] for result, use in zip(results, pattern) if use])
                more = self.model.extended(self.stats, rows)
                assert more is not None
                gained = self.families.log_evidence(self.model, more, nodes) - self.before
                for j in np.flatnonzero(nodes):
                    out[s] += np.where(self.chosen[:, j], gained[self.families.place[j], j], 0.0)
            advance(1)
        return out


class Families(NamedTuple):
    """Distinct families of some graphs, evaluated once each.

    Packed into as few "graphs" as the node with most families has: column j of graph f is family f of node j.
    """

    packed: Graphs  # (f, d, d)
    place: Int[np.ndarray, "d m"]  # family of each node in each graph
    counts: Int[np.ndarray, " d"]

    @classmethod
    def of(cls, graphs: Graphs) -> Families:
        """Return the families of these graphs."""
        d = graphs.shape[-1]
        found = [np.unique(graphs[:, :, j], axis=0, return_inverse=True) for j in range(d)]
        counts = np.array([len(columns) for columns, _ in found])
        packed = np.zeros((counts.max(), d, d), dtype=np.bool_)
        for j, (columns, _) in enumerate(found):
            packed[: len(columns), :, j] = columns
        return cls(packed, np.stack([where.reshape(-1) for _, where in found]), counts)

    def log_evidence(
        self, model: Model, stats: Statistics, nodes: Bool[np.ndarray, " d"] | None = None
    ) -> Float[np.ndarray, "f d"]:
        """Return the log evidence of every family of some nodes."""
        table = model.evidence_table(stats)
        packed = self.packed if nodes is None else self.packed & nodes
        if table is not None:
            return all_families(table, packed)
        out = np.zeros(self.packed.shape[:2])
        for j in range(len(self.counts)) if nodes is None else np.flatnonzero(nodes):
            n = self.counts[j]
            out[:n, j] = model.log_evidences(np.full(n, j), self.packed[:n, :, j], stats)
        return out


class Drawn:
    """Draws of graphs with parameters, and densities given them: likelihoods, which are added up over experiments.

    Where only the parameters of some nodes matter, those of the others are integrated out if the model has closed
    forms (`restricted`): draws then differ in what matters alone, and more of them agree with an outcome.
    """

    def __init__(self, post: Posterior, draws: int, key: Key, path: tuple[int, int] | None = None):
        key_choice, key_theta = jax.random.split(key)
        selected = select_draws(post, draws, key_choice) if path is None else _by_path(post, draws, key_choice, *path)
        self.weights, self.levels = selected.weights, post.levels
        # parameters are those without a condition, and so are the rows of an experiment
        self.model = post.model.base if isinstance(post.model, Perturbed) else post.model
        self.graphs, self.theta = parameters_of(post, selected.member, key_theta)
        self.relevant = np.ones(self.graphs.shape[:2], dtype=np.bool_)
        self.ratios: EvidenceRatios | None = None
        self._known: list[tuple[Outcomes, np.ndarray]] = []

    def restrict(self, post: Posterior, relevant: Bool[np.ndarray, "m d"]) -> None:
        """Integrate out the parameters of all nodes but the relevant ones of each draw."""
        self.relevant, self.ratios, self._known = relevant, EvidenceRatios(post, self.graphs, ~relevant), []

    def of(self, results: Sequence[Result], advance: Advance) -> Float[np.ndarray, "s k"]:
        given = np.sum([self._likelihoods(result, advance) for result in results], axis=0)
        return given if self.ratios is None else given + self.ratios.of(results, lambda amount: None)

    def _likelihoods(self, result: Result, advance: Advance) -> np.ndarray:
        """Return the log likelihoods of one experiment, remembered for that of the same rows."""
        for rows, found in self._known:
            if rows is result.rows:
                advance(len(rows))
                return found
        outcomes, n, d = result.rows.shape
        mask = np.zeros((n, d), dtype=np.bool_)
        mask[:, list(result.clamped)] = True
        table = Dataset(result.rows[0], intervened=mask, levels=self.levels)
        out = np.zeros((outcomes, len(self.weights)))
        some = np.flatnonzero(self.relevant.any(axis=1))
        if not len(some):
            advance(outcomes)
            return out
        with jax.enable_x64(True):
            cases = (
                self.graphs[some].astype(np.float64),
                jax.tree.map(lambda leaf: np.asarray(leaf)[some], self.theta),
            )
            cases = jax.tree.map(jnp.asarray, cases)
            for s in range(outcomes):
                stats = self.model.summarise(replace(table, values=result.rows[s]))
                by_node = np.asarray(_log_conditionals(self.model, *cases, stats))
                out[s, some] = np.where(self.relevant[some], by_node, 0.0).sum(axis=1)
                advance(1)
        self._known = [*self._known[-16:], (result.rows, out)]
        return out


def with_path(post: Posterior, i: int, j: int) -> Bool[np.ndarray, " m"]:
    """Return whether i is an ancestor of j in each graph of a posterior."""
    return np.concatenate([descendants(post.graphs[some])[:, i, j] for some in chunks_of(post.graphs)])


def _by_path(post: Posterior, count: int, key: Key, i: int, j: int) -> Draws:
    """Return draws with a path from i to j and without, whose weights are the probabilities in the posterior."""
    path = with_path(post, i, j)
    share = float(post.weights[path].sum())
    if not 0 < share < 1 or not can_draw(post):
        return select_draws(post, count, key)
    some = int(np.clip(round(share * count), max(count // 4, 1), count - max(count // 4, 1)))
    parts = [
        (select_draws(post, number, jax.random.fold_in(key, number), among), probability)
        for number, among, probability in ((some, path, share), (count - some, ~path, 1 - share))
    ]
    weights = [np.full(len(part.member), probability / len(part.member)) for part, probability in parts]
    return Draws(np.concatenate([part.member for part, _ in parts]), np.concatenate(weights))


@partial(jax.jit, static_argnums=0)
def _log_conditionals(model: Model, graphs: Float[Array, "m d d"], theta: Theta, stats: Statistics) -> Any:
    """Return `log p(x_j | parents, theta_j)` of every node of every graph."""

    def one(pair):
        graph, theta = pair
        return model.by_node(model.log_conditional, graph, theta, stats)

    return map_chunked(one, (graphs, theta), 64)


def truths_of(post: Posterior, outcomes: int, key: Key) -> Truths:
    """Return draws from the posterior over graphs and parameters, each for one outcome."""
    key_choice, key_again, key_theta, key_rows = jax.random.split(key, 4)
    selected = select_draws(post, outcomes, key_choice)
    member = selected.member
    if len(member) != outcomes or np.ptp(selected.weights) > 0:
        member = member[systematic(selected.weights, outcomes, key_again)]
    graphs, theta = parameters_of(post, member, key_theta)
    return Truths(graphs, theta, jax.random.split(key_rows, outcomes))


def truths_among(
    drawn: Drawn, outcomes: Int[np.ndarray, " l"], label: Int[np.ndarray, " k"], key: Key
) -> tuple[Truths, Int[np.ndarray, " s"]]:
    """Return truths that are some of the draws, and which of them: so many of each label, by weight within it."""
    key_choice, key_order, key_rows = jax.random.split(key, 3)
    chosen = [
        systematic(np.where(label == one, drawn.weights, 0.0), int(count), jax.random.fold_in(key_choice, one))
        for one, count in enumerate(outcomes)
    ]
    member = generator(key_order).permutation(np.concatenate(chosen))
    theta = jax.tree.map(lambda leaf: np.asarray(leaf)[member], drawn.theta)
    return Truths(drawn.graphs[member], theta, jax.random.split(key_rows, len(member))), member
