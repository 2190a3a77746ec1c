"""`exact`: the posterior itself, for models with closed-form evidence on few nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float

from dagpost.data import Dataset, as_dataset, check_for_inference
from dagpost.errors import InputError, nearest
from dagpost.exact_inference.families import codes, evidence_table, log_weights, members, prior_table
from dagpost.exact_inference.layers import Layers, backward_pass, family_probabilities, memory_bytes, work
from dagpost.exact_inference.optimum import most_probable_graph
from dagpost.exact_inference.sampling import draw_graphs
from dagpost.graphs import all_dags
from dagpost.models import Model, Statistics, as_model
from dagpost.numerics import log_sum
from dagpost.posterior import Posterior, log_prior_of
from dagpost.priors import GraphPrior, InDegreePrior, as_prior
from dagpost.progress import progress_bar
from dagpost.randomness import generator, key_from_seed
from dagpost.typing import Graph, Graphs, Theta

ENUMERATE_UP_TO = 5
LARGEST = 20

_dags = lru_cache(maxsize=4)(all_dags)


@dataclass(frozen=True, eq=False, repr=False)
class ExactPosterior(Posterior):
    """The exact posterior. Edge marginals, evidence, MAP graph and parent sets carry no Monte Carlo error.

    Up to five nodes `graphs` are all DAGs with their probabilities. Beyond, they are independent exact
    draws with equal weights, and `marginals` hold the exact edge probabilities.
    """

    log_evidence: float = float("nan")
    """`log p(D)`, with the graph prior normalised over DAGs."""
    log_normaliser: float = float("nan")
    """`log sum_G exp(log_joint(G))`."""
    parent_probabilities: Float[np.ndarray, "d s"] | None = None
    """`Pr(parents of j = P | D)` by bit set P."""
    best: Graph | None = None
    _table: Float[np.ndarray, "d s"] | None = None
    _layers: Layers | None = None

    @property
    def map_graph(self) -> Graph:
        """The most probable DAG."""
        assert self.best is not None
        return self.best.copy()

    def log_probability(self, graphs: Graphs) -> Float[np.ndarray, " m"]:
        """`log p(G | D)` of any DAGs."""
        graphs = np.asarray(graphs, dtype=np.bool_)
        if self._table is not None:
            return log_weights(self._table, graphs) - self.log_normaliser
        known = {row.tobytes(): w for row, w in zip(codes(self.graphs), self.log_weights)}
        return np.array([known[row.tobytes()] for row in codes(graphs)])

    def parents(self, node: str | int, top: int | None = 10) -> list[tuple[tuple[str, ...], float]]:
        """Parent sets of a node and their exact probabilities, most probable first."""
        j = self.names.index(node) if isinstance(node, str) else node
        assert self.parent_probabilities is not None
        row = self.parent_probabilities[j]
        order = np.argsort(-row, kind="stable")[:top]
        return [(tuple(n for i, n in enumerate(self.names) if s >> i & 1), float(row[s])) for s in order if row[s] > 0]

    def sample(self, draws: int, seed: int) -> Graphs:
        """Independent exact draws of DAGs."""
        rng = generator(key_from_seed(seed))
        if self._layers is not None:
            return draw_graphs(rng, self._layers, draws)
        return self.graphs[rng.choice(len(self), draws, p=self.weights)]

    def feature_probability(
        self, feature: Callable[[Graph], Any], draws: int = 10_000, seed: int = 0
    ) -> tuple[float, float]:
        """Posterior mean of any function of the graph, and its standard error (0 where all DAGs are listed)."""
        if self._layers is None:
            return self.probability(feature), 0.0
        values = np.array([float(feature(g)) for g in self.sample(draws, seed)])
        return float(values.mean()), float(values.std(ddof=1) / np.sqrt(draws))


def exact(
    data: Any,
    model: str | Model = "bge",
    prior: str | GraphPrior = "erdos-renyi",
    *,
    draws: int = 1000,
    seed: int = 0,
    interventions: Any = None,
    parameters: bool = False,
    algorithm: Literal["auto", "enumerate", "layers"] = "auto",
    memory_limit: float | None = None,
    progress: bool | None = None,
) -> ExactPosterior:
    """The exact posterior over DAGs: all of them up to five nodes, dynamic programming over layers beyond.

    `data` is a Dataset, a frame, an array or the path of a table; nothing is standardised here. Beyond five
    nodes `graphs` are `draws` independent exact draws. With `parameters=True` the graphs are draws for
    every size, each with exact parameters from `p(theta | G, D)`.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=50, seed=3)
    >>> dp.exact(sim.train, model="bge", prior="uniform")
    ExactPosterior(exact: 543 graphs on 4 nodes, 3.6 edges)
    """
    table = check_for_inference(as_dataset(data, interventions=interventions))
    scored, graph_prior = as_model(model), as_prior(prior)
    if draws < 1:
        raise InputError(f"draws={draws!r}: give at least 1")
    if not scored.has_evidence:
        raise InputError(
            f"the model {scored.name!r} has no closed-form evidence, so its posterior cannot be computed exactly"
        )
    if algorithm not in ("auto", "enumerate", "layers"):
        raise InputError(f"unknown algorithm {algorithm!r}: {nearest(algorithm, ['auto', 'enumerate', 'layers'])}")
    if algorithm == "auto":
        algorithm = "enumerate" if table.nodes <= ENUMERATE_UP_TO else "layers"
    stats = scored.summarise(table)
    if algorithm == "enumerate":
        result = _by_enumeration(table, scored, graph_prior, stats)
    else:
        result = _by_layers(table, scored, graph_prior, stats, draws, seed, memory_limit, progress)
    return _with_parameters(result, stats, draws, seed) if parameters else result


def _by_enumeration(data: Dataset, model: Model, prior: GraphPrior, stats: Statistics) -> ExactPosterior:
    graphs = _dags(data.nodes)
    log_prior = log_prior_of(graphs, prior)
    log_joint = log_prior + model.log_evidence_of(graphs, stats)
    log_normaliser = log_sum(log_joint)
    probabilities = np.exp(log_joint - log_normaliser)
    families = np.zeros((data.nodes, 1 << data.nodes))
    for j, sets in enumerate(codes(graphs).T):
        families[j] = np.bincount(sets, weights=probabilities, minlength=1 << data.nodes)
    return ExactPosterior(
        graphs=graphs,
        log_weights=log_joint,
        names=data.names,
        model=model,
        prior=prior,
        log_joint=log_joint,
        info={"method": "exact", "algorithm": "enumerate"},
        log_evidence=float(log_normaliser - log_sum(log_prior)),
        log_normaliser=log_normaliser,
        parent_probabilities=families,
        best=graphs[log_joint.argmax()],
    )


def _by_layers(
    data: Dataset,
    model: Model,
    prior: GraphPrior,
    stats: Statistics,
    draws: int,
    seed: int,
    memory_limit: float | None,
    progress: bool | None,
) -> ExactPosterior:
    d = data.nodes
    _check_memory(d, memory_limit)
    log_prior = prior_table(prior, d)
    table = evidence_table(model, stats, d) + log_prior
    with progress_bar(f"exact posterior, {d} nodes", 4 * work(d), progress) as advance:
        layers = backward_pass(table, advance)
        families = family_probabilities(layers, advance)
    if isinstance(prior, InDegreePrior):
        log_prior_normaliser = prior.log_normaliser(d)
    else:
        log_prior_normaliser = backward_pass(log_prior).log_normaliser
    graphs = draw_graphs(generator(key_from_seed(seed)), layers, draws)
    return ExactPosterior(
        graphs=graphs,
        log_weights=np.zeros(draws),
        names=data.names,
        model=model,
        prior=prior,
        log_joint=log_weights(table, graphs),
        marginals=(families @ members(d)).T,
        info={"method": "exact", "algorithm": "layers"},
        log_evidence=layers.log_normaliser - log_prior_normaliser,
        log_normaliser=layers.log_normaliser,
        parent_probabilities=families,
        best=most_probable_graph(table)[0],
        _table=table,
        _layers=layers,
    )


def _check_memory(d: int, limit: float | None) -> None:
    needed = memory_bytes(d) / 2**30
    available = _available_memory() if limit is None else limit
    if d > LARGEST or needed > available:
        raise InputError(
            f"an exact posterior over {d} nodes needs {needed:.3g} GiB of memory ({available:.3g} GiB at hand): "
            f"use at most {_largest_within(available)} columns, or a sampling method"
        )


def _available_memory() -> float:
    """GiB that can be taken without swapping; 4 where the system does not say."""
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        return sizes["MemAvailable"] / 2**20
    except (OSError, KeyError, ValueError, IndexError):
        return 4.0


def _largest_within(available: float) -> int:
    return max(d for d in range(2, LARGEST + 1) if d == 2 or memory_bytes(d) / 2**30 <= available)


def _with_parameters(post: ExactPosterior, stats: Statistics, draws: int, seed: int) -> ExactPosterior:
    """Draws of graphs, each with a draw of its parameters."""
    from dataclasses import replace

    key_graphs, key_theta = jax.random.split(key_from_seed(seed))
    if post._layers is None:
        rng = generator(key_graphs)
        chosen = rng.choice(len(post), draws, p=post.weights)
        assert post.log_joint is not None
        marginals = post.edge_marginals
        post = replace(
            post,
            graphs=post.graphs[chosen],
            log_weights=np.zeros(draws),
            log_joint=post.log_joint[chosen],
            marginals=marginals,
        )
    theta: list[Theta] = [
        post.model.draw_theta(key, graph, stats) for key, graph in zip(jax.random.split(key_theta, draws), post.graphs)
    ]
    return replace(post, theta=jax.tree.map(lambda *leaves: np.stack(leaves), *theta))
