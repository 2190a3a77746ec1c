"""`StructureLearner`: the same inference behind scikit-learn's interface."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.inference.fit import fit
from dagpost.interfaces.defaults import assume
from dagpost.posterior import Posterior


class StructureLearner(BaseEstimator):
    """A posterior over causal graphs of the columns of `X`.

    Columns are standardised and the noise of every node is learnt unless told otherwise, so that units do not matter.
    Arguments are those of `dagpost.fit`; `noise` is a known noise variance, `options` holds further options of the
    method.

    After `fit`: `posterior_`; `edge_probabilities_`, a frame with row i, column j for i -> j; `causal_graph_`, a
    networkx DAG of the edges more probable than not, most probable first, without closing a cycle;
    `adjacency_matrix_`, the same as a 0/1 frame; `n_features_in_`; and `feature_names_in_` where `X` has names.

    >>> import dagpost as dp
    >>> sim = dp.simulate(nodes=4, observations=200, seed=3)
    >>> learner = StructureLearner(method="exact").fit(sim.train.frame())
    >>> sorted(learner.causal_graph_.nodes)
    ['x0', 'x1', 'x2', 'x3']
    """

    def __init__(
        self,
        model: Any = None,
        prior: Any = None,
        method: str = "auto",
        *,
        noise: float | None = None,
        standardise: bool = True,
        particles: int = 30,
        draws: int = 1000,
        steps: int | None = None,
        seed: int = 0,
        knowledge: Any = None,
        options: dict[str, Any] | None = None,
    ):
        self.model = model
        self.prior = prior
        self.method = method
        self.noise = noise
        self.standardise = standardise
        self.particles = particles
        self.draws = draws
        self.steps = steps
        self.seed = seed
        self.knowledge = knowledge
        self.options = options

    def fit(self, X: Any, y: Any = None, interventions: Any = None) -> StructureLearner:
        """Learn from a table; `y` is ignored. `interventions` is a mask of the values that were set, not observed."""
        names = tuple(map(str, X.columns)) if isinstance(X, pd.DataFrame) else ()
        table: Any = X
        values = validate_data(self, table, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        data = Dataset(values, names, interventions)
        assumed = assume(
            data, self.model, self.prior, self.method, noise=self.noise, standardise=self.standardise
        )  # fmt: skip
        more = {} if self.knowledge is None else {"knowledge": self.knowledge}
        self.posterior_ = fit(
            assumed.data,
            assumed.model,
            assumed.prior,
            assumed.method,
            particles=self.particles,
            draws=self.draws,
            steps=self.steps,
            seed=self.seed,
            **more,
            **(self.options or {}),
        )
        self.edge_probabilities_ = self.posterior_.edge_probabilities
        self.causal_graph_ = likely_dag(self.posterior_)
        self.adjacency_matrix_ = self.posterior_.labelled(np.zeros((data.nodes, data.nodes), dtype=np.int64))
        for cause, effect in self.causal_graph_.edges:
            self.adjacency_matrix_.loc[cause, effect] = 1
        return self


def likely_dag(post: Posterior) -> nx.DiGraph:
    """The consensus graph by name, with the probability of each edge."""
    graph, marginals = nx.DiGraph(), post.edge_marginals
    graph.add_nodes_from(post.names)
    for i, j in zip(*np.nonzero(post.consensus_graph())):
        graph.add_edge(post.names[i], post.names[j], probability=float(marginals[i, j]))
    return graph


def to_pgmpy(source: Posterior | StructureLearner) -> Any:
    """The likely graph as a pgmpy network, for its inference and its plots; pgmpy must be installed."""
    try:
        from pgmpy.base import DAG  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise InputError("pgmpy is not installed: pip install pgmpy") from None
    if isinstance(source, StructureLearner):
        check_is_fitted(source, "posterior_")
        source = source.posterior_
    graph = likely_dag(source)
    network = DAG()
    network.add_nodes_from(graph.nodes)
    network.add_edges_from(graph.edges)
    return network
