"""The object every method returns: weighted graphs, their parameters, and what they say."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dagpost._util.numerics import log_normalised, log_sum
from dagpost._util.randomness import key_from_seed
from dagpost.data import Dataset, Scaling
from dagpost.data.names import check_names
from dagpost.errors import InputError, WeightingWarning, nearest, printable, whole_number
from dagpost.graphs import essential_graph, is_acyclic
from dagpost.models import Model
from dagpost.posterior import exports, features, files, provenance
from dagpost.posterior.chains import lengths_of_members, with_chains
from dagpost.posterior.consensus import consensus
from dagpost.posterior.effects import Effect, Units, effect_of, effect_table, mean_effects
from dagpost.posterior.features import Expectation, Parents, ParentSet
from dagpost.posterior.intervals import edge_intervals
from dagpost.posterior.parameters import systematic
from dagpost.posterior.prediction import predict
from dagpost.posterior.tree import to_tree
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs, Theta

if TYPE_CHECKING:
    from networkx import DiGraph
    from xarray import DataTree


NORMALISED = 1e-12
"""Log weights whose sum is this close to 0 are left as they are."""


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
    weighted graphs give, where a method has them; they are used in place of the average. `data` are the data it was
    fitted to, where they are at hand; they are not saved.
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
    data: Dataset | None = None

    def __post_init__(self):
        graphs = np.array(self.graphs, dtype=np.bool_)
        if graphs.ndim != 3 or len(graphs) == 0:
            raise InputError("a posterior needs at least one graph")
        if not is_acyclic(graphs).all():
            raise InputError(f"graph {int(np.argmin(is_acyclic(graphs)))} of the posterior has a cycle")
        weights = np.array(self.log_weights, dtype=np.float64)
        if weights.shape != (len(graphs),) or np.isnan(weights).any() or not np.isfinite(log_sum(weights)):
            raise InputError("log_weights must hold one number for each graph, not all of them -inf")
        if abs(log_sum(weights)) > NORMALISED:  # so that weights read from a file keep their last bit
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

    def index(self, node: str | int) -> int:
        """The position of a node, given by name or by position."""
        if isinstance(node, str):
            if node not in self.names:
                raise InputError(f"unknown node '{printable(node)}': {nearest(node, self.names)}")
            return self.names.index(node)
        if isinstance(node, bool) or not hasattr(node, "__index__") or not 0 <= node < self.nodes:
            raise InputError(f"node {node!r}: there are {self.nodes} nodes, counted from 0")
        return int(node)

    @property
    def is_exhaustive(self) -> bool:
        """Whether the graphs are all DAGs with their exact probabilities, so that averages have no sampling error."""
        return bool(self.info.get("exhaustive", False))

    @property
    def is_sample(self) -> bool:
        """Whether the graphs are draws of the posterior itself, so that equal weights are the right ones."""
        return bool(self.info.get("sample", False))

    @property
    def is_collapsed(self) -> bool:
        """Whether graphs were inferred with their parameters integrated out: `log_joint` is `log p(G) p(D | G)`, and
        `theta` holds a draw given each graph."""
        return bool(self.info.get("collapsed", not jax.tree.leaves(self.theta)))

    @property
    def scaling(self) -> Scaling | None:
        """The recorded step from raw units to those of the fit, if the data were standardised."""
        return provenance.scaling_of(self)

    def with_data(self, data: Any, interventions: Any = None) -> Self:
        """The same posterior with its data at hand (a file does not hold them); other data are refused."""
        return provenance.with_data(self, data, interventions)

    # ---- weighting

    def weighted(self, kind: Literal["uniform", "posterior"]) -> Posterior:
        """The same graphs, weighted alike ("uniform", DiBS) or by their posterior ("posterior", DiBS+).

        Posterior weights are proportional to `p(G) p(Theta, D | G)`, or to `p(G) p(D | G)` where the parameters are
        integrated out; equal graphs are merged first (see `merged`), since their number carries no weight here.
        "uniform" gives every graph the share of draws that it stands for.

        Draws of the posterior itself (`is_sample`: MCMC, and DiBS particles that ended with Metropolis moves) are
        already as frequent as they are probable. To weigh them by their posterior would count it twice, so
        "posterior" leaves them as they are and says so in a `WeightingWarning`.

        >>> import dagpost as dp
        >>> data = dp.simulate(nodes=3, observations=50, seed=1).train
        >>> post = dp.fit(data, method="dibs", particles=6, steps=50, moves=0)
        >>> len(post), len(post.weighted("posterior")) <= 6
        (6, True)
        """
        if kind == "uniform":
            return replace(self, log_weights=np.log(self._multiplicity()), marginals=None)
        if kind != "posterior":
            raise InputError(f"unknown weighting {kind!r}: {nearest(str(kind), ['uniform', 'posterior'])}")
        if self.is_sample:
            warnings.warn(
                f"the graphs of method {self.info.get('method')!r} are draws of the posterior and have the right "
                "weights already: weighted('posterior') leaves them as they are",
                WeightingWarning,
                stacklevel=2,
            )
            return self
        if self.log_joint is None:
            raise InputError("this posterior does not know the log density of its graphs: weigh it uniformly")
        merged = self.merged()
        assert merged.log_joint is not None
        info = with_chains(merged.info, None)
        return replace(merged, log_weights=merged.log_joint, marginals=None, info=info)

    def merged(self) -> Posterior:
        """Equal graphs joined into one, their weights added up.

        Parameters must be equal too where they were inferred together with the graph. Where they are integrated out
        (`is_collapsed`) each copy of a graph has a fresh draw of them: copies are equal, and the first draw is kept.
        """
        told_apart = () if self.is_collapsed else jax.tree.leaves(self.theta)
        parts = [np.asarray(leaf).reshape(len(self), -1) for leaf in (self.graphs, *told_apart)]
        rows = [b"".join(part[m].tobytes() for part in parts) for m in range(len(self))]
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
            info=with_chains(self.info, None),
        )

    def resampled(self, draws: int = 1000, seed: int = 0) -> Posterior:
        """Draws of equal weight, for programs that know no weights."""
        key_choice = key_from_seed(seed)
        chosen = systematic(self.weights, whole_number("draws", draws, least=1), key_choice)
        return Posterior(
            self.graphs[chosen],
            np.zeros(draws),
            self.names,
            self.model,
            self.prior,
            theta=jax.tree.map(lambda leaf: np.asarray(leaf)[chosen], self.theta),
            log_joint=None if self.log_joint is None else self.log_joint[chosen],
            marginals=self.marginals,
            info=with_chains({**self.info, "exhaustive": False}, lengths_of_members(self, chosen)),
            data=self.data,
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

    def expectation(self, feature: Callable[[Graph], Any]) -> Expectation:
        """Posterior mean of any function of the graph, and its Monte Carlo standard error.

        Draws of a chain count by the effective sample size of this function, others as independent.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> edges = post.expectation(lambda graph: graph.sum())
        >>> abs(edges.mean - post.expected_edges) < 1e-9, edges.error
        (True, 0.0)
        """
        return features.expectation(self, feature)

    @property
    def ancestor_probabilities(self) -> pd.DataFrame:
        """Probability that a directed path leads from row i to column j."""
        return self.labelled(features.ancestor_matrix(self))

    def ancestor_probability(self, ancestor: str | int, descendant: str | int) -> float:
        """Probability that a directed path of any length leads from the one to the other."""
        return float(features.ancestor_matrix(self)[self.index(ancestor), self.index(descendant)])

    def path_probability(self, *nodes: str | int) -> float:
        """Probability of one path, e.g. `post.path_probability("a", "b", "c")` for a -> b -> c."""
        return features.path_probability(self, nodes)

    def parents_of(self, node: str | int, top: int | None = 10) -> Parents:
        """Probability of each parent of a node, and its most probable parent sets.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> sum(found.probability for found in post.parents_of("x0").sets) > 0.999
        True
        """
        j = self.index(node)
        return Parents(
            self.edge_probabilities.iloc[:, j].drop(self.names[j]).sort_values(ascending=False, kind="stable"),
            self._parent_sets(j)[:top],
        )

    def _parent_sets(self, j: int) -> list[ParentSet]:
        return features.parent_sets(self, j)

    def consensus_graph(self, threshold: float = 0.5) -> Graph:
        """A DAG of probable edges, added from the most probable on as long as they close no cycle.

        At 1/2 it is, where the probable edges form no cycle, the DAG with the fewest wrong entries in expectation.

        >>> import dagpost as dp
        >>> sim = dp.simulate(nodes=3, observations=200, seed=1)
        >>> post = dp.exact(sim.train, model="linear")
        >>> bool((post.consensus_graph() == sim.graph).all())
        True
        """
        return consensus(self.edge_marginals, threshold)

    def edges_of(self, graph: Graph) -> list[str]:
        """The edges of a graph by name, "a -> b", or "a - b" in an essential graph."""
        return features.edges_of(self, graph)

    # ---- causal effects

    def effect(
        self,
        cause: str | int,
        effect: str | int,
        *,
        level: float = 0.9,
        draws: int = 4000,
        seed: int = 0,
        units: Units = "raw",
        contrast: tuple[float, float] | None = None,
        rows: int = 200,
    ) -> Effect:
        """The average causal effect of one node on another, per unit of the cause.

        Parameters are drawn afresh given each graph where the model has closed forms and the data are at hand (then
        `draws` of equal weight); else those of the particles are used, with their weights. Units are those of the
        table before it was standardised with `Dataset.standardised`; `units="fitted"` keeps those of the fit. For a
        model that is not linear the effect is the difference between two values of the cause, `contrast`, by default
        one standard deviation below and above its mean, with `rows` simulated rows for each draw.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=200, seed=1).train)
        >>> post.effect("x0", "x1").level
        0.9
        """
        return effect_of(
            self, cause, effect, level=level, draws=draws, seed=seed, units=units, contrast=contrast, rows=rows
        )

    def effects(self, *, draws: int = 1000, seed: int = 0, units: Units = "raw", rows: int = 200) -> pd.DataFrame:
        """Posterior means of all effects, row i on column j; in closed form where `effect` has one."""
        return self.labelled(mean_effects(self, draws, seed, units, rows))

    def effect_table(
        self, *, level: float = 0.9, draws: int = 1000, seed: int = 0, units: Units = "raw", rows: int = 200
    ) -> pd.DataFrame:
        """Every effect with its interval and the probability that there is a path, the largest first; from draws."""
        return effect_table(self, level, draws, seed, units, rows)

    def predict(
        self, do: Mapping[str | int, float] | None = None, *, samples: int = 1000, seed: int = 0
    ) -> pd.DataFrame:
        """Rows from the posterior predictive distribution under do(…), in raw units: `post.predict({"x": 2.0})`.

        Each row has its own graph, drawn by weight, and parameters as in `effect`.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> post.predict({"x0": 2.0}, samples=5)["x0"].tolist()
        [2.0, 2.0, 2.0, 2.0, 2.0]
        """
        return predict(self, do, samples, seed)

    # ---- files and other programs

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """One netCDF file, which `dagpost.load`, xarray and ArviZ read; written as a whole or not at all."""
        return files.save(self, path, overwrite)

    def export(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """A file for other programs, by its ending: .csv, .graphml, .dot or .dagitty."""
        return exports.export(self, path, overwrite)

    def to_xarray(self) -> DataTree:
        """The posterior as ArviZ lays it out; `dagpost.posterior.tree` says how."""
        return to_tree(self)

    def to_networkx(self, threshold: float = 0.0) -> DiGraph:
        """Edges above the threshold with their `probability`."""
        return exports.to_networkx(self, threshold)

    def to_graphml(self, threshold: float = 0.0) -> str:
        """The same as GraphML."""
        return exports.to_graphml(self, threshold)

    def to_dot(self, threshold: float = 0.05) -> str:
        """The same for Graphviz."""
        return exports.to_dot(self, threshold)

    def to_dagitty(self, graph: Graph | None = None) -> str:
        """A DAG, the consensus graph unless another is given, for dagitty."""
        return exports.to_dagitty(self, graph)

    def to_csv(self) -> str:
        """The edge table; names that a spreadsheet would take for formulas get an apostrophe in front."""
        return exports.to_csv(self)

    def labelled(self, matrix: np.ndarray) -> pd.DataFrame:
        """A d x d matrix with the names of the columns on both sides."""
        return pd.DataFrame(matrix, index=list(self.names), columns=list(self.names))

    def edge_table(self) -> pd.DataFrame:
        """Edges with their probability, most probable first.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> list(post.edge_table().columns)
        ['cause', 'effect', 'probability']
        """
        marginals = self.edge_marginals
        cause, effect = np.nonzero(~np.eye(self.nodes, dtype=np.bool_))
        names = np.array(self.names, dtype=object)
        table = pd.DataFrame({"cause": names[cause], "effect": names[effect], "probability": marginals[cause, effect]})
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def edge_intervals(self, level: float = 0.9) -> pd.DataFrame:
        """The edge table with the Monte Carlo interval of each probability: `lower` and `upper`.

        It says how far the number may be off because it was sampled; `attrs["source"]` names where it comes from:
        "exact" (no sampling error), "chains" (batch means of MCMC) or "graphs" (as many independent draws as the
        weights are worth). See `dagpost.posterior.intervals`.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> post.edge_intervals().attrs["source"]
        'exact'
        """
        found, table = edge_intervals(self, level), self.edge_table()
        cause, effect = ([self.names.index(name) for name in table[column]] for column in ("cause", "effect"))
        table = table.assign(lower=found.lower[cause, effect], upper=found.upper[cause, effect])
        table.attrs["source"] = found.source
        return table
