"""Base class of models: a model scores families (a node given its parents).

Inference, metrics and simulation use models only through this class.

The joint density of a graph and its parameters is

    p(D, Theta | G) = prod_j p(x_j | parents, theta_j) p(theta_j | g_j),

where `p(theta_j | g_j)` covers only the parameters of present edges: weights of absent edges have no density (their
entries in a fixed-size array are arbitrary). For a soft graph the log density of an edge's weights is multiplied by the
soft edge, as in the reference implementation. Integrating over the parameters of present edges gives the evidence
`p(D | G)`, so weights from the joint density and weights from the evidence are consistent.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dagpost._util.numerics import unstack_keys
from dagpost.data import Dataset, kind_problems
from dagpost.data.values import raise_problems
from dagpost.errors import InputError
from dagpost.graphs import topological_order
from dagpost.models.completion import Completion
from dagpost.models.conjugate import ConjugateTable, all_families, family_evidence
from dagpost.models.counts import CountTable
from dagpost.models.family_evidence import FamilyEvidence
from dagpost.models.likelihood import likelihoods_of
from dagpost.models.numerical import LaplaceEvidence
from dagpost.models.set_evidence import SetTable
from dagpost.models.statistics import NodeRows, SharedRows, Statistics, WeightMoments
from dagpost.typing import Graph, Graphs, Key, Nodes, RowGroups, Rows, Scalar, SoftColumn, SoftGraph, Theta


class Model(abc.ABC):
    """Base class of models: the local conditional distribution of each node given its parents.

    The constructor takes settings, never data. A user-defined model implements `log_conditional` and, if it has
    parameters, `log_parameter_prior` and `sample_theta`; `sample_node` is needed to simulate data, `node_mean` for the
    functions of edges. All are JAX functions of one node; the base class maps them over nodes.
    """

    name: ClassVar[str]
    """Name of the model, shown in messages and reports."""

    assumption: ClassVar[str] = ""
    """What the model assumes about relations, as a clause for reports."""
    soft: ClassVar[bool] = True
    """Whether the family score is defined for edges between 0 and 1."""
    has_parameters: ClassVar[bool] = True
    """Whether a particle carries parameters; False for a model whose parameters are integrated out."""
    has_evidence: ClassVar[bool] = False
    """Whether `log_evidence` has a closed form."""
    traceable: ClassVar[bool] = True
    """Whether JAX can compile `log_families`, which DiBS needs."""
    linear: ClassVar[bool] = False
    """Whether nodes are linear in their parents with Gaussian noise, which residuals can contradict."""
    categorical: ClassVar[bool] = False
    """Whether nodes are categorical, so that effects are differences of probabilities."""
    latent: ClassVar[bool] = False
    """Whether the model scores latent tables, drawn given the ranks of the data (`completion`), not the data."""
    drops_intervened: bool = True
    """Whether rows in which a node was intervened on say nothing about its parents."""
    theta_axes: Any = 0
    """Node axis of each leaf of theta (a `vmap` specification)."""

    def accept(self, data: Dataset) -> Dataset:
        """Return the data as this model takes them, or raise an error that names columns which it cannot take.

        Parameters
        ----------
        data
            A table with columns of any kind.
        """
        raise_problems(kind_problems(data, self.name, missing=type(self).completion is not Model.completion))
        return data

    def counted(self, data: Dataset) -> Bool[np.ndarray, "n d"]:
        """Return the cells that the evidence is a density of: those that no intervention set."""
        return ~data.intervened

    def check(self, data: Dataset) -> None:  # noqa: B027 (optional for a model)
        """Warn of data that this model cannot describe; called before inference."""

    # ---- the score ---------------------------------------------------------------------------------

    def check_methods(self) -> None:
        """Raise an error that names a method which this class promises by its flags and does not have."""

        def lacks(*names: str) -> bool:
            return all(getattr(type(self), name) is getattr(Model, name) for name in names)

        if self.has_evidence and lacks("log_evidence", "evidence_table"):
            raise InputError(
                f"the model {self.name!r} says has_evidence = True but has no method log_evidence(j, parents, stats), "
                "with parents as indices of columns: write it, or set has_evidence = False"
            )
        if self.has_evidence and self.has_parameters and lacks("draw_theta"):
            raise InputError(
                f"the model {self.name!r} has parameters and evidence but no method draw_theta(key, graph, stats), "
                "which draws them given a graph: write it, or set has_parameters = False"
            )

    def summarise(self, data: Dataset) -> Statistics:
        """Return the statistics of the data that the scores use, computed once; rows in which a node was intervened on
        do not enter that node's family."""
        return self.rows(data)

    def rows(self, data: Dataset) -> Statistics:
        """Return statistics that consist of the rows, from which minibatches are drawn.

        For each node, 1 marks the rows in which it was not intervened on.
        """
        node = NodeRows(np.arange(data.nodes), (~data.intervened.T).astype(float))
        return Statistics(SharedRows(data.values), node)

    def extended(self, stats: Statistics, rows: Rows, groups: RowGroups | None = None) -> Statistics | None:
        """Return statistics with more rows, no node set in them, in these groups or all; None if that is not quick."""
        return None

    def of_rows(self, rows: Statistics) -> Statistics:
        """Return the statistics of a minibatch, in JAX; a model that overrides `summarise` overrides this too.

        Parameters
        ----------
        rows
            Statistics as returned by `rows`, for all or some of the rows.
        """
        return rows

    @abc.abstractmethod
    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """Return `log p(x_j | parents, theta_j)`, summed over the rows in which node j was not intervened on.

        Parameters
        ----------
        g_j
            Edges into node j, of shape (d,), 0/1 or soft.
        theta_j
            Parameters of node j; `()` for a model without parameters.
        stats_j
            Statistics of node j.
        """

    def log_parameter_prior(self, g_j: SoftColumn, theta_j: Theta) -> Scalar:
        """Return `log p(theta_j | g_j)`; 0 by default."""
        return jnp.zeros(())

    def log_family(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """Return the score of one family, `log p(x_j | parents, theta_j) + log p(theta_j | g_j)`."""
        return self.log_conditional(g_j, theta_j, stats_j) + self.log_parameter_prior(g_j, theta_j)

    def log_families(self, graph: SoftGraph, theta: Theta, stats: Statistics) -> Float[Array, " d"]:
        """Return the score of every family of one graph, of shape (d,)."""
        return self.by_node(self.log_family, graph, theta, stats)

    def log_joint(self, graph: SoftGraph, theta: Theta, stats: Statistics) -> Scalar:
        """Return `log p(D, Theta | G)`, or `log p(D | G)` for a model without parameters."""
        return jnp.sum(self.log_families(graph, theta, stats))

    def by_node(self, function, graph, theta, stats):
        """Return `function(g_j, theta_j, stats_j)` for every node."""
        in_axes = (1, self.theta_axes if jax.tree.leaves(theta) else None, Statistics(None, 0))
        stats = jax.tree.map(jnp.asarray, stats)
        return jax.vmap(function, in_axes=in_axes)(jnp.asarray(graph, dtype=float), theta, stats)

    def log_likelihood(self, graph: Graph, theta: Theta, data: Dataset) -> float:
        """Return `log p(data | G, Theta)` without the parameter prior, in float64.

        For a model without parameters it is the marginal likelihood `log p(data | G)`.

        Parameters
        ----------
        graph
            Adjacency matrix of a DAG.
        theta
            Parameters of the graph.
        data
            Data to evaluate, for example held-out rows.
        """
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], theta)
        return float(self.log_likelihoods(np.asarray(graph)[None], one, data)[0])

    def log_likelihoods(self, graphs: Graphs, theta: Theta, data: Dataset) -> Float[np.ndarray, " m"]:
        """Return `log_likelihood` of many graphs; the leaves of theta have a leading axis of that length."""
        stats = self.summarise(data)
        if jax.tree.leaves(theta) == [] and self.has_evidence:
            return self.log_evidence_of(graphs, stats)
        return likelihoods_of(self, graphs, theta, stats)

    # ---- closed-form evidence ----------------------------------------------------------------------

    def evidence_table(self, stats: Statistics) -> ConjugateTable | None:
        """Return the table for the compiled evidence of Gaussian families; None if the model has none."""
        return None

    def count_table(self, stats: Statistics) -> CountTable | None:
        """Return the table for the compiled evidence of categorical families; None if the model has none."""
        return None

    def compiled_tables(self, stats: Statistics) -> tuple[ConjugateTable | None, CountTable | None, SetTable | None]:
        """Return both tables, and that of the sets of conditions that the evidence is a sum over, if it is one."""
        return self.evidence_table(stats), self.count_table(stats), None

    def family_terms(self, data: Dataset) -> int:
        """Return of how many terms the evidence of a family is a sum, and so how much longer it takes."""
        return 1

    @property
    def has_compiled_evidence(self) -> bool:
        """Whether the model implements `evidence_table` or `count_table`; known without data."""
        return self.has_evidence and (self.has_conjugate_table or type(self).count_table is not Model.count_table)

    @property
    def has_conjugate_table(self) -> bool:
        """Whether the model implements `evidence_table`, by which all families on few nodes take a moment."""
        return type(self).evidence_table is not Model.evidence_table

    def log_evidence(self, j: int, parents: Any, stats: Statistics) -> float:
        """Return `log p(x_j | parents)` with the parameters integrated out.

        Parameters
        ----------
        j
            Index of the node.
        parents
            Indices of its parents.
        stats
            Statistics from `summarise`.
        """
        table = self.evidence_table(stats)
        if table is None:
            raise NotImplementedError(f"the model {self.name!r} has no closed-form evidence")
        indices = np.unique(np.asarray(parents, dtype=np.int64))
        return float(family_evidence(table, j, indices, len(indices)))

    def log_evidences(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, " n"]:
        """Return `log_evidence` of many families at once; a model that is slow overrides it to use several threads.

        Parameters
        ----------
        nodes
            Index of the node of each family.
        parents
            Its parents, as an indicator of the columns.
        stats
            Statistics from `summarise`.
        """
        pairs = zip(np.asarray(nodes).tolist(), parents)
        return np.array([self.log_evidence(j, np.flatnonzero(row), stats) for j, row in pairs], dtype=np.float64)

    def log_evidence_of(self, graphs: Graphs, stats: Statistics) -> Float[np.ndarray, " m"]:
        """Return `log p(D | G)` of many graphs, in float64."""
        graphs = np.ascontiguousarray(graphs, dtype=np.bool_)
        table = self.evidence_table(stats)
        if table is not None:
            return all_families(table, graphs).sum(axis=1)
        count, d = graphs.shape[:2]
        # one row for each family: the node, then its parents; each distinct one is scored once
        families = np.concatenate([np.tile(np.arange(d), count)[:, None], graphs.swapaxes(1, 2).reshape(-1, d)], axis=1)
        distinct, where = np.unique(families, axis=0, return_inverse=True)
        scores = self.log_evidences(distinct[:, 0], distinct[:, 1:].astype(np.bool_), stats)
        return scores[where.reshape(count, d)].sum(axis=1)

    def log_predictive_of(self, graphs: Graphs, known: Dataset, new: Dataset) -> Float[np.ndarray, " m"]:
        """Return `log p(new rows | known rows, G)` of many graphs, with parameters integrated out.

        Parameters
        ----------
        graphs
            Adjacency matrices of DAGs.
        known
            Rows that the model was fitted to.
        new
            Rows to evaluate, with the same columns.
        """
        before, after = (self.summarise(part) for part in (known, known.followed_by(new)))
        return self.log_evidence_of(graphs, after) - self.log_evidence_of(graphs, before)

    def numerical_evidence(self, stats: Statistics, seed: int = 0) -> FamilyEvidence:
        """Return the evidence of families by numerical integration, for a model without a closed form.

        Parameters
        ----------
        stats
            Statistics from `summarise`.
        seed
            Seed of the estimates.
        """
        return LaplaceEvidence(self, stats, seed)

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> Theta:
        """Return an exact draw of `theta | G, D`; entries of absent edges are 0."""
        raise NotImplementedError(f"the model {self.name!r} cannot draw its parameters exactly")

    def completion(self, data: Dataset) -> Completion | None:
        """Return how missing cells of the data are drawn given a graph; None if the model cannot."""
        return None

    def draw_thetas(self, keys: Key, graphs: Graphs, stats: Statistics) -> Theta:
        """Return an exact draw for each graph, with one key each, stacked along a leading axis."""
        draws = [self.draw_theta(key, graph, stats) for key, graph in zip(unstack_keys(keys), graphs)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *draws)

    # ---- linear structure ---------------------------------------------------------------------------

    def linear_weights(self, theta: Theta) -> Any:
        """Return the weights in theta, of shape (..., d, d) with [i, j] for i -> j; None for a nonlinear model."""
        return None

    def weight_moments(self, j: int, parents: Nodes, stats: Statistics) -> WeightMoments | None:
        """Return the posterior moments of the linear weights of node j given its parents; None without closed form."""
        return None

    @property
    def has_weight_moments(self) -> bool:
        """Whether the model implements `weight_moments`."""
        return type(self).weight_moments is not Model.weight_moments

    # ---- simulation --------------------------------------------------------------------------------

    def sample_theta(self, key: Key, d: int) -> Theta:
        """Return a draw of the parameters of all possible edges from their prior; `()` without parameters."""
        return ()

    def sample_parameters(self, key: Key, graph: Graph) -> Theta:
        """Return a draw of the parameters of one graph from their prior, for simulation."""
        return self.sample_theta(key, graph.shape[0])

    def simulator(self) -> Model:
        """Return the model that generates data for this one in the paper's experiments."""
        return self

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        """Return the expected value of one node given its parents.

        Parameters
        ----------
        inputs
            Values of the parents, of shape (n, d); 0 in all other columns.
        theta_j
            Parameters of the node.
        """
        raise NotImplementedError(f"the model {self.name!r} has no method node_mean(inputs, theta_j)")

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        """Return simulated values of one node.

        Parameters
        ----------
        key
            Random key.
        inputs
            Values of the parents, of shape (n, d); 0 in all other columns.
        theta_j
            Parameters of the node.
        """
        raise NotImplementedError(f"the model {self.name!r} cannot simulate")

    def sample_rows(
        self, key: Key, graph: Graph, theta: Theta, rows: int, clamped: Mapping[int, float] | None = None
    ) -> Dataset:
        """Return rows drawn by ancestral sampling.

        Parameters
        ----------
        key
            Random key.
        graph
            Adjacency matrix of a DAG.
        theta
            Parameters of the graph.
        rows
            Number of rows.
        clamped
            Value of each node that is intervened on, by index; recorded in `intervened`.
        """
        clamped = clamped or {}
        graph = np.asarray(graph, dtype=np.bool_)
        d = graph.shape[0]
        values = np.zeros((rows, d))
        keys = jax.random.split(key, d)
        axes = jax.tree.broadcast(self.theta_axes, theta)
        with jax.enable_x64(True):
            for j in topological_order(graph):
                theta_j = jax.tree.map(lambda leaf, axis, j=j: np.take(np.asarray(leaf), j, axis=axis), theta, axes)
                inputs = jnp.asarray(np.where(graph[:, j], values, 0.0))
                values[:, j] = clamped[j] if j in clamped else self.sample_node(keys[j], inputs, theta_j)
        mask = np.zeros((rows, d), dtype=np.bool_)
        mask[:, list(clamped)] = True
        return Dataset(values, intervened=mask)
