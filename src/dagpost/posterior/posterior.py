"""The object every method returns: weighted graphs, their parameters, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dagpost.data.names import check_names
from dagpost.errors import InputError, nearest
from dagpost.graphs import essential_graph, is_acyclic
from dagpost.models import Model
from dagpost.numerics import log_normalised, log_sum
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs, Theta


class WeightedGraph(NamedTuple):
    """A graph (or essential graph) and its posterior probability."""

    graph: Graph
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class Posterior:
    """A posterior over DAGs (and parameters) as a weighted set.

    `graphs[m, i, j]` is True for i -> j. `log_weights` are normalised. `log_joint` holds the unnormalised
    log posterior of each graph, `log p(G) + log p(Theta, D | G)`, in float64; for a model that has integrated
    its parameters out it is `log p(G) + log p(D | G)`. `marginals` are edge probabilities sharper than the
    weighted graphs give, where a method has them; they are used in place of the average.
    """

    graphs: Graphs
    log_weights: Float[np.ndarray, " m"]
    names: tuple[str, ...]
    model: Model
    prior: GraphPrior
    theta: Theta = ()
    log_joint: Float[np.ndarray, " m"] | None = None
    multiplicity: Int[np.ndarray, " m"] | None = None
    marginals: Float[np.ndarray, "d d"] | None = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        graphs = np.array(self.graphs, dtype=np.bool_)
        if graphs.ndim != 3 or len(graphs) == 0:
            raise InputError("a posterior needs at least one graph")
        if not is_acyclic(graphs).all():
            raise InputError(f"graph {int(np.argmin(is_acyclic(graphs)))} of the posterior has a cycle")
        weights = np.array(self.log_weights, dtype=np.float64)
        if weights.shape != (len(graphs),) or np.isnan(weights).any() or not np.isfinite(log_sum(weights)):
            raise InputError("log_weights must hold one number for each graph, not all of them -inf")
        weights = log_normalised(weights)
        names = check_names(self.names, graphs.shape[1])
        for array in (graphs, weights):
            array.setflags(write=False)
        object.__setattr__(self, "graphs", graphs)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "log_weights", weights)

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        method = self.info.get("method", "posterior")
        size = f"{len(self)} graphs on {self.nodes} nodes, {self.expected_edges:.1f} edges"
        return f"{type(self).__name__}({method}: {size})"

    @property
    def nodes(self) -> int:
        return self.graphs.shape[1]

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Normalised weights."""
        return np.exp(self.log_weights)

    def with_info(self, **more: Any) -> Self:
        """The same posterior with more to say about itself."""
        return replace(self, info={**self.info, **more})

    # ---- weighting

    def weighted(self, kind: Literal["uniform", "posterior"]) -> Posterior:
        """The same graphs, weighted alike ("uniform", DiBS) or by their posterior ("posterior", DiBS+).

        Posterior weights are proportional to `p(G) p(Theta, D | G)`; identical graphs (with identical
        parameters) are merged first, since their number carries no weight here. "uniform" gives every
        graph the share of draws that it stands for.
        """
        if kind == "uniform":
            return replace(self, log_weights=np.log(self._multiplicity()), marginals=None)
        if kind != "posterior":
            raise InputError(f"unknown weighting {kind!r}: {nearest(str(kind), ['uniform', 'posterior'])}")
        if self.log_joint is None:
            raise InputError("this posterior does not know the log density of its graphs: weigh it uniformly")
        merged = self.merged()
        assert merged.log_joint is not None
        return replace(merged, log_weights=merged.log_joint, marginals=None)

    def merged(self) -> Posterior:
        """Identical graphs (with identical parameters) joined into one, their weights added up."""
        leaves = [np.asarray(leaf).reshape(len(self), -1) for leaf in jax.tree.leaves(self.theta)]
        rows = [
            b"".join(part[m].tobytes() for part in (self.graphs.reshape(len(self), -1), *leaves))
            for m in range(len(self))
        ]
        first: dict[bytes, int] = {}
        member = np.array([first.setdefault(row, len(first)) for row in rows])
        if len(first) == len(self):
            return self
        keep = np.unique(member, return_index=True)[1]
        weights = np.full(len(keep), -np.inf)
        np.logaddexp.at(weights, member, self.log_weights)
        return replace(
            self,
            graphs=self.graphs[keep],
            log_weights=weights,
            theta=jax.tree.map(lambda leaf: leaf[keep], self.theta),
            log_joint=None if self.log_joint is None else self.log_joint[keep],
            multiplicity=np.bincount(member, weights=self._multiplicity()).astype(np.int64),
        )

    def _multiplicity(self) -> np.ndarray:
        return np.ones(len(self), dtype=np.int64) if self.multiplicity is None else self.multiplicity

    # ---- what it says

    @property
    def edge_probabilities(self) -> pd.DataFrame:
        """Probability of every edge; row i, column j for i -> j."""
        return self.labelled(self.edge_marginals)

    @property
    def edge_marginals(self) -> Float[np.ndarray, "d d"]:
        """The same as a bare array."""
        if self.marginals is not None:
            return np.array(self.marginals)
        return np.einsum("m,mij->ij", self.weights, self.graphs, optimize=True)

    @property
    def expected_edges(self) -> float:
        """Posterior mean of the number of edges."""
        return float(self.edge_marginals.sum())

    def probability(self, feature: Callable[[Graph], Any]) -> float:
        """Posterior mean of a feature, e.g. `post.probability(lambda g: g[0, 1] and not g[1, 2])`."""
        return float(sum(w * float(feature(g)) for w, g in zip(self.weights, self.graphs) if w > 0))

    @property
    def median_graph(self) -> Graph:
        """Edges more probable than not. It can have a cycle when no single graph dominates."""
        return self.edge_marginals > 0.5

    @property
    def map_graph(self) -> Graph:
        """The most probable graph, by its total weight."""
        graphs, member = np.unique(self.graphs.reshape(len(self), -1), axis=0, return_inverse=True)
        weight = np.bincount(member.reshape(-1), weights=self.weights)
        return graphs[weight.argmax()].reshape(self.nodes, self.nodes)

    def essential_graphs(self, top: int | None = None) -> list[WeightedGraph]:
        """Markov equivalence classes and their probabilities, most probable first."""
        classes, member = np.unique(essential_graph(self.graphs).reshape(len(self), -1), axis=0, return_inverse=True)
        weight = np.bincount(member.reshape(-1), weights=self.weights)
        order = np.argsort(-weight, kind="stable")[:top]
        return [WeightedGraph(classes[c].reshape(self.nodes, self.nodes), float(weight[c])) for c in order]

    def labelled(self, matrix: np.ndarray) -> pd.DataFrame:
        """A d x d matrix with the names of the columns on both sides."""
        return pd.DataFrame(matrix, index=list(self.names), columns=list(self.names))

    def edge_table(self) -> pd.DataFrame:
        """Edges with their probability, most probable first."""
        marginals = self.edge_marginals
        cause, effect = np.nonzero(~np.eye(self.nodes, dtype=np.bool_))
        names = np.array(self.names, dtype=object)
        table = pd.DataFrame({"cause": names[cause], "effect": names[effect], "probability": marginals[cause, effect]})
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)
