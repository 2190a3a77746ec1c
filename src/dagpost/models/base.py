"""The central contract: a model scores families.

A model is a set of local conditional distributions, one for each node given its parents. Inference,
metrics and simulation talk to this class and to nothing else of a model.

The joint density of a graph and its parameters is

    p(D, Theta | G) = prod_j p(x_j | parents, theta_j) p(theta_j | g_j),

where `p(theta_j | g_j)` covers the parameters that exist: weights of absent edges are no part of the
sample and have no density (in a fixed-size array their entries are free). For a soft graph the log
density of an edge's weights is multiplied by the soft edge, as in the reference implementation.
Integrated over the parameters of present edges it gives the evidence `p(D | G)`, so graphs weighted by
either density are consistent with it.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from dagpost._util.numerics import each
from dagpost.data import Dataset
from dagpost.graphs import topological_order
from dagpost.models.conjugate import ConjugateTable, all_families, family_evidence
from dagpost.typing import Graph, Graphs, Key, Nodes, Scalar, SoftColumn, SoftGraph, Theta


class Statistics(NamedTuple):
    """What `log_family` needs of the data: a part that all nodes share, and a part with a leading node axis.

    The statistics of one node, `stats_j`, are the same tuple with `node` indexed by j.
    """

    shared: Any
    node: Any


class WeightMoments(NamedTuple):
    """Posterior mean and covariance of the weights of one node."""

    mean: Float[np.ndarray, " p"]
    covariance: Float[np.ndarray, "p p"]


class RowShare(NamedTuple):
    """Default shared statistics: the rows themselves."""

    values: Any  # (n, d)


class RowNode(NamedTuple):
    """Default statistics of a node: its index, and 1 for rows in which it was not intervened on."""

    index: Any  # (d,)
    observed: Any  # (d, n)


class Model(abc.ABC):
    """Local conditional distributions. Settings go into the constructor, data never do.

    A model of your own needs `log_conditional` and, if it has parameters, `log_parameter_prior` and
    `sample_theta`; `sample_node` makes it simulate as well. All are written for one node, in JAX.
    """

    name: ClassVar[str]
    soft: ClassVar[bool] = True
    """Whether the family score is defined for edges between 0 and 1."""

    has_parameters: ClassVar[bool] = True
    """Whether a particle carries parameters; False for a model that has integrated them out."""

    has_evidence: ClassVar[bool] = False
    """Whether `log_evidence` has a closed form."""

    theta_axes: Any = 0
    """Where the node axis of each leaf of theta is (a `vmap` specification)."""

    def check(self, data: Dataset) -> None:  # noqa: B027 (a model may have nothing to say)
        """Warn of data that this model cannot describe; called before inference."""

    # ---- the score ---------------------------------------------------------------------------------

    def summarise(self, data: Dataset) -> Statistics:
        """One-off work on the data. Rows in which a node was intervened on leave that node's family."""
        return self.rows(data)

    def rows(self, data: Dataset) -> Statistics:
        """The rows themselves, from which minibatches are drawn; 1 for those that count for a node."""
        node = RowNode(np.arange(data.nodes), (~data.intervened.T).astype(float))
        return Statistics(RowShare(data.values), node)

    def of_rows(self, rows: Statistics) -> Statistics:
        """Statistics of rows (as `rows` gives them, or some of those), in JAX. A model that summarises its data
        otherwise than by their rows says how."""
        return rows

    @abc.abstractmethod
    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """`log p(x_j | parents, theta_j)` over the rows that count for node j."""

    def log_parameter_prior(self, g_j: SoftColumn, theta_j: Theta) -> Scalar:
        """`log p(theta_j | g_j)`."""
        return jnp.zeros(())

    def log_family(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """`log p(x_j | parents, theta_j) + log p(theta_j | g_j)`."""
        return self.log_conditional(g_j, theta_j, stats_j) + self.log_parameter_prior(g_j, theta_j)

    def log_families(self, graph: SoftGraph, theta: Theta, stats: Statistics) -> Float[Array, " d"]:
        """The score of every family of one graph."""
        return self._by_node(self.log_family, graph, theta, stats)

    def log_joint(self, graph: SoftGraph, theta: Theta, stats: Statistics) -> Scalar:
        """`log p(D, Theta | G)`, or `log p(D | G)` for a model without parameters."""
        return jnp.sum(self.log_families(graph, theta, stats))

    def _by_node(self, function, graph, theta, stats):
        in_axes = (1, self.theta_axes if jax.tree.leaves(theta) else None, Statistics(None, 0))
        stats = jax.tree.map(jnp.asarray, stats)
        return jax.vmap(function, in_axes=in_axes)(jnp.asarray(graph, dtype=float), theta, stats)

    def log_likelihood(self, graph: Graph, theta: Theta, data: Dataset) -> float:
        """`log p(data | G, Theta)` without the parameter prior, in float64.

        For a model without parameters it is the marginal likelihood `log p(data | G)`.
        """
        one = jax.tree.map(lambda leaf: np.asarray(leaf)[None], theta)
        return float(self.log_likelihoods(np.asarray(graph)[None], one, data)[0])

    def log_likelihoods(self, graphs: Graphs, theta: Theta, data: Dataset) -> Float[np.ndarray, " m"]:
        """The same for many graphs; the leaves of theta have a leading axis of that length."""
        stats = self.summarise(data)
        if jax.tree.leaves(theta) == [] and self.has_evidence:
            return self.log_evidence_of(graphs, stats)

        # a power of two of them, the last one repeated: few shapes are compiled
        fill = (1 << (len(graphs) - 1).bit_length()) - len(graphs)
        filled = jax.tree.map(
            lambda leaf: np.concatenate([leaf, np.repeat(np.asarray(leaf)[-1:], fill, axis=0)]),
            (np.asarray(graphs, dtype=float), theta),
        )
        with jax.enable_x64(True):
            return np.asarray(_log_likelihoods(self, *filled, stats))[: len(graphs)]

    # ---- closed-form evidence ----------------------------------------------------------------------

    def evidence_table(self, stats: Statistics) -> ConjugateTable | None:
        """Compiled form of the evidence, for Gaussian families; None where there is none."""
        return None

    @property
    def has_compiled_evidence(self) -> bool:
        """Whether the model gives an `evidence_table`: known before there are data."""
        return self.has_evidence and type(self).evidence_table is not Model.evidence_table

    def log_evidence(self, j: int, parents: Any, stats: Statistics) -> float:
        """`log p(x_j | parents)` with the parameters integrated out; `parents` are indices."""
        table = self.evidence_table(stats)
        if table is None:
            raise NotImplementedError(f"the model {self.name!r} has no closed-form evidence")
        indices = np.unique(np.asarray(parents, dtype=np.int64))
        return float(family_evidence(table, j, indices, len(indices)))

    def log_evidence_of(self, graphs: Graphs, stats: Statistics) -> Float[np.ndarray, " m"]:
        """`log p(D | G)` of many graphs, in float64."""
        graphs = np.ascontiguousarray(graphs, dtype=np.bool_)
        table = self.evidence_table(stats)
        if table is not None:
            return all_families(table, graphs).sum(axis=1)
        known: dict[tuple[int, bytes], float] = {}
        out = np.zeros(len(graphs))
        for m, graph in enumerate(graphs):
            for j in range(graph.shape[0]):
                family = (j, graph[:, j].tobytes())
                if family not in known:
                    known[family] = self.log_evidence(j, np.flatnonzero(graph[:, j]), stats)
                out[m] += known[family]
        return out

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> Theta:
        """An exact draw of `theta | G, D`; entries of absent edges are 0."""
        raise NotImplementedError(f"the model {self.name!r} cannot draw its parameters exactly")

    def draw_thetas(self, keys: Key, graphs: Graphs, stats: Statistics) -> Theta:
        """An exact draw for each graph, each with its own key, stacked along a leading axis."""
        draws = [self.draw_theta(key, graph, stats) for key, graph in zip(each(keys), graphs)]
        return jax.tree.map(lambda *leaves: np.stack(leaves), *draws)

    # ---- linear structure ---------------------------------------------------------------------------

    def linear_weights(self, theta: Theta) -> Any:
        """The weights (..., d, d) in theta, [i, j] for i -> j; None for a model that is not linear."""
        return None

    def weight_moments(self, j: int, parents: Nodes, stats: Statistics) -> WeightMoments | None:
        """Of the linear weights of node j given its parents and the data; None where there is no closed form."""
        return None

    # ---- simulation --------------------------------------------------------------------------------

    def sample_theta(self, key: Key, d: int) -> Theta:
        """Parameters from their prior, for all edges; `()` for a model without parameters."""
        return ()

    def sample_parameters(self, key: Key, graph: Graph) -> Theta:
        """Parameters of one graph from their prior, to simulate with."""
        return self.sample_theta(key, graph.shape[0])

    def simulator(self) -> Model:
        """The model that generates data for this one in the paper's experiments."""
        return self

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        """Values of one node; `inputs` holds its parents' values and 0 elsewhere."""
        raise NotImplementedError(f"the model {self.name!r} cannot simulate")

    def sample_rows(
        self, key: Key, graph: Graph, theta: Theta, rows: int, clamped: Mapping[int, float] | None = None
    ) -> Dataset:
        """Ancestral sampling; clamped nodes are set to their value and recorded as intervened on."""
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


@partial(jax.jit, static_argnums=0)
def _log_likelihoods(model: Model, graphs: Float[Array, "m d d"], theta: Theta, stats: Statistics) -> Any:
    def one(pair):
        graph, theta = pair
        return jnp.sum(model._by_node(model.log_conditional, graph, theta, stats))

    # in chunks, since a model that keeps the rows holds them once for each graph
    return jax.lax.map(one, (graphs, theta), batch_size=64)
