"""`exact`: the exact posterior over DAGs, for models with evidence on few nodes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy.special import log_softmax

from dagpost._util.environment import available_memory
from dagpost._util.numerics import generator, key_from_seed, log_sum_exp
from dagpost._util.progress import progress_bar
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest, whole_number
from dagpost.graphs import all_dags
from dagpost.inference.exact.families import (
    codes,
    evidence_table,
    log_weights,
    members,
    prior_table,
)
from dagpost.inference.exact.layers import Layers, backward_pass, family_probabilities, memory_bytes, work
from dagpost.inference.exact.sampling import draw_graphs, most_probable_graph
from dagpost.inference.method import Method, Problem
from dagpost.models import Model, Statistics
from dagpost.posterior import Expectation, ParentSet, Posterior, log_joint_of, log_prior_of
from dagpost.posterior.records import ExactDiagnostics, RunRecord, Sampling
from dagpost.priors import GraphPrior, InDegreePrior
from dagpost.typing import Graph, Graphs

ENUMERATE_UP_TO = 5
LARGEST = 20
SAVED = tuple(Posterior.__dataclass_fields__)
ALGORITHMS = ("auto", "enumerate", "layers")

_dags = lru_cache(maxsize=4)(all_dags)


class Listing(NamedTuple):
    """All DAGs and their log probabilities."""

    graphs: Graphs
    log_probability: Float[np.ndarray, " m"]


class Summation(NamedTuple):
    """Family weights and dynamic-programming tables that represent all DAGs."""

    table: Float[np.ndarray, "d s"]
    layers: Layers


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosterior(Posterior):
    """The exact posterior. Edge marginals, evidence, MAP graph and parent sets have no Monte Carlo error.

    With up to five nodes `graphs` holds all DAGs (that prior knowledge allows) with their probabilities. With more, it
    holds independent exact draws with equal weights, and `marginals` the exact edge probabilities.

    Attributes
    ----------
    log_evidence
        `log p(D)`, with the graph prior normalised over the DAGs that it allows.
    log_normaliser
        `log sum_G exp(log_joint(G))`.
    parent_probabilities
        `Pr(parents of j = P | D)` by node j and bit set P, (d, 2^d).
    best
        The most probable DAG; see `map_graph`.
    """

    log_evidence: float = float("nan")
    log_normaliser: float = float("nan")
    parent_probabilities: Float[np.ndarray, "d s"] | None = None
    best: Graph | None = None
    _source: Listing | Summation | None = None

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
        if isinstance(self._source, Summation):
            return log_weights(self._source.table, graphs) - self.log_normaliser
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
        assert self.parent_probabilities is not None
        row = self.parent_probabilities[j]
        order = np.argsort(-row, kind="stable")
        named = (tuple(n for i, n in enumerate(self.names) if s >> i & 1) for s in order)
        return [ParentSet(parents, float(row[s])) for s, parents in zip(order, named) if row[s] > 0]

    def expectation(self, feature: Callable[[Graph], Any]) -> Expectation:
        """Return the posterior mean of a function of the graph.

        Parameters
        ----------
        feature
            Function of an adjacency matrix that returns a number or a truth value.

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
        if isinstance(self._source, Summation):
            return draw_graphs(rng, self._source.layers, draws)
        assert self._source is not None
        probabilities = np.exp(self._source.log_probability)
        chosen = rng.choice(len(probabilities), draws, p=probabilities / probabilities.sum())
        return self._source.graphs[chosen]

    def feature_probability(
        self, feature: Callable[[Graph], Any], draws: int = 10_000, seed: int = 0
    ) -> tuple[float, float]:
        """Return the posterior mean of a function of the graph, and its standard error.

        Parameters
        ----------
        feature
            Function of an adjacency matrix that returns a number or a truth value.
        draws, seed
            Number and seed of the draws, used if the DAGs are not all enumerated.

        Returns
        -------
        tuple
            Mean and standard error; the error is 0 if all DAGs are enumerated.
        """
        if isinstance(self._source, Listing):
            graphs, log_probability = self._source
            values = np.array([float(feature(g)) for g in graphs])
            return float(values @ np.exp(log_probability)), 0.0
        values = np.array([float(feature(g)) for g in self.sample(draws, seed)])
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws))


@dataclass(frozen=True)
class Exact(Method):
    """The exact posterior over DAGs: all of them up to five nodes, dynamic programming over layers beyond.

    For models with closed-form evidence, up to about 16 nodes on a machine of today.

    Parameters
    ----------
    draws
        Number of graphs in the result beyond five nodes: independent exact draws.
    parameters
        Whether the graphs are draws for every size, each with exact parameters from `p(theta | G, D)`.
    algorithm
        "enumerate", "layers", or "auto": by the number of nodes.
    memory_limit
        GiB that the tables may take; None means what is free.
    """

    interruptible: ClassVar[bool] = False

    draws: int = 1000
    parameters: bool = False
    algorithm: Literal["auto", "enumerate", "layers"] = "auto"
    memory_limit: float | None = None

    def __post_init__(self):
        whole_number("draws", self.draws, least=1)
        if self.algorithm not in ALGORITHMS:
            raise InputError(f"unknown algorithm {self.algorithm!r}: {nearest(str(self.algorithm), ALGORITHMS)}")

    @property
    def name(self) -> str:
        return "exact"

    def graphs_kept(self, model: Model) -> int:
        return self.draws

    def run(self, problem: Problem) -> ExactPosterior:
        data, model, prior, seed = problem.data, problem.model, problem.prior, problem.seed
        if not model.has_evidence:
            raise InputError(
                f"the model {model.name!r} has no closed-form evidence, which an exact posterior needs: "
                "use dp.fit with method='dibs'"
            )
        algorithm = self.algorithm
        if algorithm == "auto":
            algorithm = "enumerate" if data.nodes <= ENUMERATE_UP_TO else "layers"
        if algorithm == "layers":
            _check_memory(data.nodes, self.memory_limit)
        stats = model.summarise(data)
        if algorithm == "enumerate":
            result = _by_enumeration(data, model, prior, stats)
        else:
            result = _by_layers(data, model, prior, stats, self.draws, seed, problem.progress)
        return _with_parameters(result, stats, self.draws, seed) if self.parameters else result


def _check_mass(log_normaliser: float) -> None:
    """Raise if every DAG has probability zero."""
    if not np.isfinite(log_normaliser):
        raise InputError("no DAG is possible under this prior: its constraints contradict each other")


def _by_enumeration(data: Dataset, model: Model, prior: GraphPrior, stats: Statistics) -> ExactPosterior:
    """Return the posterior from a list of all DAGs."""
    graphs = _dags(data.nodes)
    if prior.constraints is not None:
        graphs = graphs[prior.constraints.honoured_by(graphs)]
    log_prior = log_prior_of(graphs, prior)
    log_joint = log_prior + model.log_evidence_of(graphs, stats)
    log_normaliser = log_sum_exp(log_joint)
    _check_mass(log_normaliser)
    log_probability, log_evidence = log_softmax(log_joint), log_normaliser - log_sum_exp(log_prior)
    families = np.zeros((data.nodes, 1 << data.nodes))
    for j, sets in enumerate(codes(graphs).T):
        families[j] = np.bincount(sets, weights=np.exp(log_probability), minlength=1 << data.nodes)
    return ExactPosterior(
        graphs=graphs,
        log_weights=log_probability,
        names=data.names,
        model=model,
        prior=prior,
        log_joint=log_joint,
        marginals=_edge_marginals(families),
        record=RunRecord(
            "exact", Sampling(exhaustive=True), ExactDiagnostics("enumerate", log_evidence, log_normaliser)
        ),
        log_evidence=log_evidence,
        log_normaliser=log_normaliser,
        parent_probabilities=families,
        best=graphs[log_joint.argmax()],
        _source=Listing(graphs, log_probability),
    )


def _edge_marginals(families: Float[np.ndarray, "d s"]) -> Float[np.ndarray, "d d"]:
    """Return `Pr(i -> j)`, summed over the parent sets of j that contain i."""
    return np.clip((families @ members(families.shape[0])).T, 0.0, 1.0)


def _by_layers(
    data: Dataset,
    model: Model,
    prior: GraphPrior,
    stats: Statistics,
    draws: int,
    seed: int,
    progress: bool | None,
) -> ExactPosterior:
    """Return the posterior from the sums over all DAGs, with exact draws."""
    d = data.nodes
    log_prior = prior_table(prior, d)
    table = evidence_table(model, stats, d) + log_prior
    with progress_bar(f"exact posterior, {d} nodes", 4 * work(d), progress) as advance:
        layers = backward_pass(table, advance)
        _check_mass(layers.log_normaliser)
        families = family_probabilities(layers, advance)
    if isinstance(prior, InDegreePrior):
        log_prior_normaliser = prior.log_normaliser(d)
    else:
        log_prior_normaliser = backward_pass(log_prior).log_normaliser
    graphs = draw_graphs(generator(key_from_seed(seed)), layers, draws)
    log_evidence = layers.log_normaliser - log_prior_normaliser
    return ExactPosterior(
        graphs=graphs,
        log_weights=np.zeros(draws),
        names=data.names,
        model=model,
        prior=prior,
        log_joint=log_weights(table, graphs),
        marginals=_edge_marginals(families),
        record=RunRecord("exact", diagnostics=ExactDiagnostics("layers", log_evidence, layers.log_normaliser)),
        log_evidence=log_evidence,
        log_normaliser=layers.log_normaliser,
        parent_probabilities=families,
        best=most_probable_graph(table)[0],
        _source=Summation(table, layers),
    )


def _check_memory(d: int, limit: float | None) -> None:
    """Raise if the tables for d nodes exceed the memory limit in GiB (None: the available memory)."""
    available = available_memory() if limit is None else limit
    needed = memory_bytes(min(d, 60)) / 2**30
    if d > LARGEST or needed > available:
        within = [size for size in range(2, LARGEST + 1) if memory_bytes(size) / 2**30 <= available]
        raise InputError(
            f"an exact posterior over {d} nodes needs {'over ' if d > 60 else ''}{needed:.3g} GiB of memory "
            f"({available:.3g} GiB available): use at most {max(within, default=5)} columns, or a sampling method"
        )


def _with_parameters(post: ExactPosterior, stats: Statistics, draws: int, seed: int) -> ExactPosterior:
    """Return draws of graphs, each with an exact draw of its parameters."""
    graphs = post.graphs if isinstance(post._source, Summation) else post.sample(draws, seed)
    keys = jax.random.split(jax.random.fold_in(key_from_seed(seed), 1), draws)
    theta = post.model.draw_thetas(keys, graphs, stats)
    return replace(
        post,
        graphs=graphs,
        log_weights=np.zeros(draws),
        theta=theta,
        log_joint=log_joint_of(graphs, theta, post.model, post.prior, stats),
        record=post.record.with_sampling(exhaustive=False),
    )
