"""Other libraries: a scikit-learn estimator, and conversion of a posterior to a pgmpy network."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.inference.defaults import assume
from dagpost.inference.fit import fit
from dagpost.metrics import log_predictive_density
from dagpost.posterior import Posterior


class StructureLearner(BaseEstimator):
    """scikit-learn estimator of a posterior over causal graphs of the columns of `X`.

    By default columns are standardised and the noise variance of every node is learnt, so that the result does not
    depend on units.

    Parameters
    ----------
    model
        Name of a model or a `Model`; None for "bge".
    prior
        Name of a graph prior or a `GraphPrior`; None for "unknown-density".
    method
        Inference method, as in `dagpost.fit`.
    noise
        Known noise variance of every node; None to learn it.
    standardise
        Whether to scale columns to mean 0 and standard deviation 1.
    particles
        DiBS particles, MCMC samples or bootstrap resamples.
    draws
        Graphs in the posterior of "auto" and "exact".
    steps
        DiBS steps; None to choose them from size and model.
    seed
        Fixes every random number.
    knowledge
        Prior knowledge of the graph, as in `dagpost.fit`.
    options
        Further keyword arguments of `dagpost.fit` for the method.

    Attributes
    ----------
    posterior_ : Posterior
        The posterior.
    edge_probabilities_ : pandas.DataFrame
        Probability of the edge i -> j in row i, column j.
    causal_graph_ : networkx.DiGraph
        DAG of the edges more probable than not, added from the most probable down unless one closes a cycle. Edges
        carry a `probability`.
    adjacency_matrix_ : pandas.DataFrame
        The same graph as 0 and 1.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : numpy.ndarray
        Names of the columns, where `X` has names.

    Examples
    --------
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
        """Infer the posterior from a table.

        Parameters
        ----------
        X
            Table with a row for each observation and a column for each node.
        y
            Ignored; scikit-learn passes it.
        interventions
            Boolean mask of the shape of `X`: True where a value was set by an intervention, not observed.

        Returns
        -------
        StructureLearner
            The fitted estimator itself.
        """
        names = tuple(map(str, X.columns)) if isinstance(X, pd.DataFrame) else ()
        table: Any = X
        values = validate_data(self, table, dtype=np.float64, ensure_min_samples=2, ensure_min_features=2)
        data = Dataset(values, names, interventions)
        assumptions = assume(
            data, self.model, self.prior, self.method, noise=self.noise, standardise=self.standardise
        )  # fmt: skip
        knowledge = {} if self.knowledge is None else {"knowledge": self.knowledge}
        self.posterior_ = fit(
            assumptions.data,
            assumptions.model,
            assumptions.prior,
            assumptions.method,
            particles=self.particles,
            draws=self.draws,
            steps=self.steps,
            seed=self.seed,
            **knowledge,
            **(self.options or {}),
        ).with_record(assumptions=dict(assumptions.messages))
        self.edge_probabilities_ = self.posterior_.edge_probabilities
        self.causal_graph_ = consensus_dag(self.posterior_)
        self.adjacency_matrix_ = self.posterior_.labelled(np.zeros((data.nodes, data.nodes), dtype=np.int64))
        for cause, effect in self.causal_graph_.edges:
            self.adjacency_matrix_.loc[cause, effect] = 1
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of held-out rows under the posterior predictive distribution.

        It is in the units of `X`, so that models can be compared, by `GridSearchCV` for instance.

        Parameters
        ----------
        X
            Held-out table with the columns of the training table.
        y
            Ignored; scikit-learn passes it.

        Returns
        -------
        float
            Larger is better.
        """
        check_is_fitted(self, "posterior_")
        table: Any = X
        values = validate_data(self, table, dtype=np.float64, reset=False)
        return log_predictive_density(self.posterior_, values) / len(values)


def consensus_dag(post: Posterior) -> nx.DiGraph:
    """Return the consensus graph with named nodes and the probability of each edge."""
    graph, marginals = nx.DiGraph(), post.edge_marginals
    graph.add_nodes_from(post.names)
    for i, j in zip(*np.nonzero(post.consensus_graph())):
        graph.add_edge(post.names[i], post.names[j], probability=float(marginals[i, j]))
    return graph


def to_pgmpy(source: Posterior | StructureLearner) -> Any:
    """Return the consensus graph as a pgmpy network, for pgmpy's inference and plots.

    The network holds nodes and edges alone, without conditional distributions.

    Parameters
    ----------
    source
        A posterior, or a `StructureLearner` that has been fitted.

    Returns
    -------
    pgmpy.base.DAG
        Named after the columns of the data; the edges are those of `Posterior.consensus_graph`.

    Raises
    ------
    InputError
        If pgmpy is not installed, or cannot be imported.
    """
    try:
        from pgmpy.base import DAG  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "pgmpy":
            raise InputError("pgmpy is not installed: pip install pgmpy") from None
        raise InputError(f"pgmpy is installed but cannot be imported: {error}") from error
    if isinstance(source, StructureLearner):
        check_is_fitted(source, "posterior_")
        source = source.posterior_
    graph = consensus_dag(source)
    network = DAG()
    network.add_nodes_from(graph.nodes)
    network.add_edges_from(graph.edges)
    return network
