"""Other libraries: a scikit-learn estimator, and conversion of a posterior for pgmpy and for DoWhy."""

from __future__ import annotations

from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from dagpost.data import Dataset, as_dataset
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
        Name of a model or a `Model`; None for "bge", or "bdeu" where every column is categorical.
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
    kinds
        Kinds of columns, as in `dagpost.fit`.
    lags, series
        1 if rows are in the order of time, and the name of the column that says which series a row belongs to. Split
        such rows with `TimeSeriesSplit`, or by series with `GroupKFold`: rows that do not follow each other are joined.
    conditions, targets
        Name of the column that says which experiment a row comes from, and what is known of those, as in `dagpost.fit`.
    options
        Further keyword arguments of `dagpost.fit` for the method.

    Attributes
    ----------
    posterior_ : Posterior
        The posterior.
    edge_probabilities_ : pandas.DataFrame
        Probability of the edge i -> j in row i, column j. With lags there are past columns, such as "x[t-1]".
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
        kinds: Any = None,
        lags: int | None = None,
        series: str | None = None,
        conditions: str | None = None,
        targets: Any = None,
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
        self.kinds = kinds
        self.lags = lags
        self.series = series
        self.conditions = conditions
        self.targets = targets
        self.options = options

    def fit(self, X: Any, y: Any = None, interventions: Any = None) -> StructureLearner:
        """Infer the posterior from a table.

        Parameters
        ----------
        X
            Table with a row for each observation and a column for each node, besides those that name series and
            conditions.
        y
            Ignored; scikit-learn passes it.
        interventions
            Boolean mask with an entry for each row and node: True where a value was set by an intervention, not
            observed. Names of the nodes row by row will do.

        Returns
        -------
        StructureLearner
            The fitted estimator itself.
        """
        data = self._dataset(X, interventions, ensure_min_samples=2, ensure_min_features=2)
        assumptions = assume(
            data, self.model, self.prior, self.method, noise=self.noise, standardise=self.standardise
        )  # fmt: skip
        self.posterior_ = fit(
            assumptions.data,
            assumptions.model,
            assumptions.prior,
            assumptions.method,
            particles=self.particles,
            draws=self.draws,
            steps=self.steps,
            seed=self.seed,
            **{"knowledge": self.knowledge, "targets": self.targets, **(self.options or {})},
        ).with_record(assumptions=dict(assumptions.messages))
        self.edge_probabilities_ = self.posterior_.edge_probabilities
        self.causal_graph_ = consensus_dag(self.posterior_)
        self.adjacency_matrix_ = self.posterior_.labelled(np.zeros((data.nodes, data.nodes), dtype=np.int64))
        for cause, effect in self.causal_graph_.edges:
            self.adjacency_matrix_.loc[cause, effect] = 1
        return self

    def estimate(self, data: Any, interventions: Any = None) -> nx.DiGraph:
        """Infer the posterior and return its consensus graph: `fit` under the name that pgmpy's estimators have.

        Parameters
        ----------
        data
            Table with a row for each observation and a column for each node.
        interventions
            As in `fit`.

        Returns
        -------
        networkx.DiGraph
            `causal_graph_`, a DAG with the probability of each edge; `to_pgmpy` turns the learner into a pgmpy network.
        """
        return self.fit(data, interventions=interventions).causal_graph_

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log density of held-out rows under the posterior predictive distribution.

        It is in the units of `X`, so that models can be compared, by `GridSearchCV` for instance. With lags, rows are
        predicted from the row before them.

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
        data = self._dataset(X, reset=False)
        return log_predictive_density(self.posterior_, data) / data.observations

    def _dataset(self, X: Any, interventions: Any = None, **checks: Any) -> Dataset:
        """Return the table, checked by scikit-learn; one with categories by dagpost alone."""
        table: Any = X
        roles: dict[str, Any] = {"series": self.series, "conditions": self.conditions}
        for role, column in roles.items():
            if column is not None and not (isinstance(X, pd.DataFrame) and isinstance(column, str)):
                what = "give a DataFrame" if isinstance(column, str) else "give the name of a column"
                raise InputError(f"{role}={column!r:.40} names a column of X: {what}")
        named = any(column is not None for column in roles.values())
        if isinstance(X, pd.DataFrame) and (
            named or self.kinds is not None or len(X.select_dtypes(["number", "bool"]).T) < len(X.T)
        ):
            validate_data(self, table, skip_check_array=True, reset=checks.get("reset", True))
            own = tuple(map(str, X.columns))  # to scikit-learn all of them are features
            return as_dataset(X, interventions=interventions, kinds=self.kinds, lags=self.lags, keep=own, **roles)
        names = tuple(map(str, X.columns)) if isinstance(X, pd.DataFrame) else ()
        values = validate_data(self, table, dtype=np.float64, **checks)
        return as_dataset(Dataset(values, names, interventions), kinds=self.kinds, lags=self.lags)


def consensus_dag(post: Posterior) -> nx.DiGraph:
    """Return the consensus graph with named nodes and the probability of each edge."""
    graph, marginals = nx.DiGraph(), post.edge_marginals
    graph.add_nodes_from(post.names)
    for i, j in zip(*np.nonzero(post.consensus_graph())):
        graph.add_edge(post.names[i], post.names[j], probability=float(marginals[i, j]))
    return graph


class DowhyGraph(NamedTuple):
    """A DAG for DoWhy: `CausalModel(data, treatment, outcome, graph=one.gml)`, or `graph=one.graph`.

    Attributes
    ----------
    gml
        The graph in GML, with nodes named after the columns.
    graph
        The same as a networkx graph.
    """

    gml: str
    graph: nx.DiGraph


def to_dowhy(source: Posterior | StructureLearner, draws: int | None = None, seed: int = 0) -> Any:
    """Return the consensus graph for DoWhy, or graphs drawn from the posterior.

    An estimate repeated for each drawn graph carries the uncertainty about the graph along.

    Parameters
    ----------
    source
        A posterior, or a `StructureLearner` that has been fitted.
    draws
        Number of graphs to draw by weight; None for the consensus graph.
    seed
        Seed of the draws.

    Returns
    -------
    DowhyGraph or list of DowhyGraph
        The consensus graph with the `probability` of each edge, or a list of drawn graphs.

    Examples
    --------
    >>> import dagpost as dp
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
    >>> dp.to_dowhy(post).gml.startswith("graph [")
    True
    >>> len(dp.to_dowhy(post, draws=5))
    5
    """
    post = _posterior_of(source)
    if draws is None:
        return _for_dowhy(consensus_dag(post))
    out = []
    for adjacency in post.resampled(draws, seed).graphs:
        graph = nx.DiGraph()
        graph.add_nodes_from(post.names)
        graph.add_edges_from((post.names[i], post.names[j]) for i, j in zip(*np.nonzero(adjacency)))
        out.append(_for_dowhy(graph))
    return out


def _for_dowhy(graph: nx.DiGraph) -> DowhyGraph:
    """Return the graph with its GML, in one line: DoWhy recognises GML by a pattern that does not cross lines."""
    return DowhyGraph(" ".join(line.strip() for line in nx.generate_gml(graph)), graph)


def _posterior_of(source: Posterior | StructureLearner) -> Posterior:
    """Return the posterior itself, or that of a fitted learner."""
    if isinstance(source, StructureLearner):
        check_is_fitted(source, "posterior_")
        return source.posterior_
    return source


def to_pgmpy(source: Posterior | StructureLearner) -> Any:
    """Return the consensus graph as a pgmpy network, for pgmpy's inference and plots.

    A categorical posterior becomes a network with its tables: their posterior means given the graph, which need the
    data. Any other holds nodes and edges alone, without conditional distributions.

    Parameters
    ----------
    source
        A posterior, or a `StructureLearner` that has been fitted.

    Returns
    -------
    pgmpy.base.DAG or pgmpy.models.DiscreteBayesianNetwork
        Named after the columns of the data; the edges are those of `Posterior.consensus_graph`.

    Raises
    ------
    InputError
        If pgmpy is not installed, or cannot be imported; or a categorical posterior has no data.
    """
    try:
        from pgmpy.base import DAG  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "pgmpy":
            raise InputError("pgmpy is not installed: pip install pgmpy") from None
        raise InputError(f"pgmpy is installed but cannot be imported: {error}") from error
    source = _posterior_of(source)
    graph = consensus_dag(source)
    network: Any = _discrete_network() if source.model.categorical else DAG()
    network.add_nodes_from(graph.nodes)
    network.add_edges_from(graph.edges)
    if source.model.categorical:
        from pgmpy.factors.discrete import TabularCPD  # pyright: ignore[reportMissingImports]

        consensus = source.consensus_graph()
        for j, name in enumerate(source.names):
            table = source.probability_table(name, consensus)
            parents = [source.names[i] for i in np.flatnonzero(consensus[:, j])]
            levels = {node: list(source.levels[source.index(node)]) for node in (name, *parents)}
            sizes = [len(levels[parent]) for parent in parents]
            evidence = {"evidence": parents, "evidence_card": sizes} if parents else {}
            cells = table.to_numpy().T
            network.add_cpds(TabularCPD(name, len(source.levels[j]), cells, **evidence, state_names=levels))
    return network


def _discrete_network() -> Any:
    """Return an empty categorical network of pgmpy, by the name that its version has."""
    from pgmpy import models  # pyright: ignore[reportMissingImports]

    kind = "DiscreteBayesianNetwork" if hasattr(models, "DiscreteBayesianNetwork") else "BayesianNetwork"
    return getattr(models, kind)()
