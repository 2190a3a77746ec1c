"""`ExactPosterior`: what an exact sum over all DAGs knows."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from dagpost._util.numerics import generator, key_from_seed
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest
from dagpost.inference.exact.families import (
    codes,
    mixture_log_weights,
)
from dagpost.inference.exact.layers import Layers
from dagpost.inference.exact.orders import Orders, draw_orders, graphs_of
from dagpost.inference.exact.sampling import draw_graphs, most_probable_graph
from dagpost.models import Model
from dagpost.posterior import Expectation, ParentSet, Posterior
from dagpost.posterior.features import values_of
from dagpost.posterior.records import ExactDiagnostics, RunRecord, Verdict
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs

SAVED = tuple(Posterior.__dataclass_fields__)


class Listing(NamedTuple):
    """All DAGs and their log probabilities."""

    graphs: Graphs
    log_probability: Float[np.ndarray, " m"]


class Summation(NamedTuple):
    """Family weights of each component of the prior, and the dynamic-programming tables that represent all DAGs."""

    tables: list[Float[np.ndarray, "d s"]]
    log_shares: Float[np.ndarray, " c"]  # posterior of the components
    layers: list[Layers]

    def log_weights(self, graphs: Graphs) -> Float[np.ndarray, " m"]:
        """Return the unnormalised log posterior of each graph."""
        return mixture_log_weights(self.tables, graphs)

    def draw(self, rng: np.random.Generator, draws: int) -> Graphs:
        """Return independent draws."""
        if len(self.tables) == 1:
            return draw_graphs(rng, self.layers[0], draws)
        shares = np.exp(self.log_shares)
        counts = rng.multinomial(draws, shares / shares.sum())
        parts = [draw_graphs(rng, layers, n) for layers, n in zip(self.layers, counts) if n]
        return rng.permutation(np.concatenate(parts))


class OrderSums(NamedTuple):
    """Family weights of each component of the prior, and the sums over orders that represent all DAGs; components that
    are negligible are left out of the latter."""

    tables: list[Float[np.ndarray, "d s"]]
    sums: list[Orders]

    def log_weights(self, graphs: Graphs) -> Float[np.ndarray, " m"]:
        """Return the unnormalised log posterior of each graph."""
        return mixture_log_weights(self.tables, graphs)

    def draw(self, rng: np.random.Generator, draws: int) -> Graphs:
        """Return independent draws."""
        parts, count = [], 0
        for found, _ in draw_orders(self.sums, rng):
            parts.append(graphs_of(self.sums, found, rng))
            count += len(found.nodes)
            if count >= draws:
                break
        return np.concatenate(parts)[:draws]


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosterior(Posterior):
    """The exact posterior. Edge marginals, evidence, MAP graph and parent sets have no Monte Carlo error.

    With up to five nodes `graphs` holds all DAGs (that prior knowledge allows) with their probabilities. With more, it
    holds independent exact draws with equal weights, and `marginals` the exact edge probabilities. By way of orders
    (more than 16 nodes) edge probabilities, evidence and parent sets are means over independent draws.

    Attributes
    ----------
    log_evidence
        `log p(D)`, with the graph prior normalised over the DAGs that it allows.
    log_normaliser
        `log sum_G exp(log_joint(G))`.
    parent_probabilities
        `Pr(parents of j = P | D)` by node j and bit set P, (d, 2^d); None by way of orders.
    best
        The most probable DAG; see `map_graph`. Under a prior that is a mixture it is the best of the most probable
        ones under each component.
    """

    log_evidence: float = float("nan")
    log_normaliser: float = float("nan")
    parent_probabilities: Float[np.ndarray, "d s"] | None = None
    best: Graph | None = None
    _source: Listing | Summation | OrderSums | None = None

    def weighted(self, kind: Literal["uniform", "posterior"]) -> ExactPosterior:
        """Return this posterior: its weights are exact already.

        Parameters
        ----------
        kind
            "uniform" or "posterior", as for `Posterior.weighted`; both give the same.

        Returns
        -------
        ExactPosterior
        """
        if kind not in ("uniform", "posterior"):
            raise InputError(f"unknown weighting {kind!r}: {nearest(str(kind), ['uniform', 'posterior'])}")
        return self

    @property
    def map_graph(self) -> Graph:
        """The most probable DAG (one of them, where equivalent graphs tie)."""
        assert self.best is not None
        return self.best.copy()

    def log_probability(self, graphs: Graphs) -> Float[np.ndarray, " m"]:
        """Return `log p(G | D)` of any DAGs.

        Parameters
        ----------
        graphs
            Adjacency matrices of DAGs, (m, d, d).

        Returns
        -------
        array
            Log probabilities, (m,); -inf for DAGs that the prior rules out.
        """
        graphs = np.asarray(graphs, dtype=np.bool_)
        if isinstance(self._source, Summation | OrderSums):
            return self._source.log_weights(graphs) - self.log_normaliser
        assert self._source is not None
        known = {row.tobytes(): w for row, w in zip(codes(self._source.graphs), self._source.log_probability)}
        return np.array([known.get(row.tobytes(), -np.inf) for row in codes(graphs)])

    def parents(self, node: str | int, top: int | None = 10) -> list[ParentSet]:
        """Return the parent sets of a node with their exact probabilities, most probable first.

        Parameters
        ----------
        node
            Name or index.
        top
            Number of sets; None returns all with positive probability.

        Returns
        -------
        list of ParentSet
        """
        return self._parent_sets(self.index(node))[:top]

    def _parent_sets(self, j: int) -> list[ParentSet]:
        """Return all parent sets with positive probability, most probable first."""
        if self.parent_probabilities is None:
            return super()._parent_sets(j)
        row = self.parent_probabilities[j]
        order = np.argsort(-row, kind="stable")
        named = (tuple(n for i, n in enumerate(self.names) if s >> i & 1) for s in order)
        return [ParentSet(parents, float(row[s])) for s, parents in zip(order, named) if row[s] > 0]

    def expectation(self, feature: Callable[[Graph], Any]) -> Expectation:
        """Return the posterior mean of a function of the graph.

        Parameters
        ----------
        feature
            Function of an adjacency matrix that returns a number, a truth value or an array of these.

        Returns
        -------
        Expectation
            Mean and standard error; the error is 0 if all DAGs are enumerated.
        """
        return Expectation(*self.feature_probability(feature))

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """Save as an ordinary `Posterior`: graphs, weights, exact edge probabilities and evidence, but not the tables
        behind `sample`, `log_probability` and exact parent sets.

        Parameters
        ----------
        path
            File to write.
        overwrite
            Whether an existing file may be replaced.

        Returns
        -------
        Path
            The file written.
        """
        return Posterior(**{name: getattr(self, name) for name in SAVED}).save(path, overwrite)

    def sample(self, draws: int, seed: int) -> Graphs:
        """Return independent exact draws of DAGs.

        Parameters
        ----------
        draws
            Number of draws.
        seed
            Root of the random numbers.

        Returns
        -------
        Graphs
            Adjacency matrices, (draws, d, d).
        """
        rng = generator(key_from_seed(seed))
        if isinstance(self._source, Summation | OrderSums):
            return self._source.draw(rng, draws)
        assert self._source is not None
        probabilities = np.exp(self._source.log_probability)
        chosen = rng.choice(len(probabilities), draws, p=probabilities / probabilities.sum())
        return self._source.graphs[chosen]

    def feature_probability(
        self, feature: Callable[[Graph], Any], draws: int = 10_000, seed: int = 0
    ) -> tuple[Any, Any]:
        """Return the posterior mean of a function of the graph, and its standard error.

        Parameters
        ----------
        feature
            Function of an adjacency matrix that returns a number, a truth value or an array of these.
        draws, seed
            Number and seed of the draws, used if the DAGs are not all enumerated.

        Returns
        -------
        tuple
            Mean and standard error; the error is 0 if all DAGs are enumerated.
        """
        if isinstance(self._source, Listing):
            graphs, log_probability = self._source
            mean = np.tensordot(np.exp(log_probability), values_of(feature, graphs), axes=1)
            error = np.zeros_like(mean)
        else:
            values = values_of(feature, self.sample(draws, seed))
            mean, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(draws)
        return (mean, error) if np.ndim(mean) else (float(mean), float(error))


def posterior_of_sums(
    data: Dataset, model: Model, prior: GraphPrior, source: Summation | OrderSums, graphs: Graphs,
    marginals: Float[np.ndarray, "d d"], diagnostics: ExactDiagnostics, verdict: Verdict,
    parent_probabilities: Float[np.ndarray, "d s"] | None = None,
) -> ExactPosterior:  # fmt: skip
    """Return the posterior of which these graphs are draws; the best graph and the log joints are those of the sums."""
    assert diagnostics.log_evidence is not None and diagnostics.log_normaliser is not None
    candidates = np.stack([most_probable_graph(table)[0] for table in source.tables])
    return ExactPosterior(
        graphs=graphs,
        log_weights=np.zeros(len(graphs)),
        names=data.names,
        model=model,
        prior=prior,
        log_joint=source.log_weights(graphs),
        marginals=marginals,
        record=RunRecord("exact", diagnostics=diagnostics, verdict=verdict),
        log_evidence=diagnostics.log_evidence,
        log_normaliser=diagnostics.log_normaliser,
        parent_probabilities=parent_probabilities,
        best=candidates[source.log_weights(candidates).argmax()],
        _source=source,
    )
