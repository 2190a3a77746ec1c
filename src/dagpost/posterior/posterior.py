"""The object every method returns: weighted graphs, their parameters, and what they say."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import jax
import numpy as np
import pandas as pd

from dagpost._util.numerics import key_from_seed
from dagpost.errors import whole_number
from dagpost.models import Model
from dagpost.posterior import exports, features, mechanisms, netcdf, notebook, tables
from dagpost.posterior.effect_tables import effect_table, mean_effects
from dagpost.posterior.effects import Effect, Units, effect_of
from dagpost.posterior.features import (
    Expectation,
    Parents,
    ParentSet,
    consensus,
    lengths_of_members,
)
from dagpost.posterior.imputed import imputed_tables
from dagpost.posterior.mechanisms import Curve
from dagpost.posterior.netcdf import LARGEST_BYTES, read_fields, to_tree
from dagpost.posterior.parameters import predict, systematic
from dagpost.posterior.provenance import with_data
from dagpost.posterior.sample import GraphSample
from dagpost.posterior.targets import target_table
from dagpost.priors import GraphPrior
from dagpost.typing import Graph

if TYPE_CHECKING:
    from networkx import DiGraph
    from xarray import DataTree


class WeightedGraph(NamedTuple):
    """A graph (or essential graph) and its posterior probability."""

    graph: Graph
    probability: float


@dataclass(frozen=True, eq=False, repr=False)
class Posterior(GraphSample):
    """A posterior over DAGs (and parameters) as a weighted set, and the questions it answers.

    The fields are those of `GraphSample`.
    """

    def with_data(self, data: Any, interventions: Any = None, conditions: Any = None) -> Self:
        """The same posterior with its data at hand (a file does not hold them); other data are refused."""
        return with_data(self, data, interventions, conditions)

    # ---- weighting

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
            record=self.record.with_sampling(exhaustive=False, chain_lengths=lengths_of_members(self, chosen)),
            data=self.data,
            cells=self.cells,
        )

    # ---- what it says

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
        return [WeightedGraph(*found) for found in features.equivalence_classes(self, top)]

    def expectation(self, feature: Callable[[Graph], Any]) -> Expectation:
        """Posterior mean of any function of the graph, a number or an array, and its Monte Carlo standard error.

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

    def targets(self) -> pd.DataFrame:
        """Which condition changes the mechanism of which node: columns `condition`, `node`, `probability` and `prior`,
        the most probable first; for data with conditions (`dp.fit(…, conditions=…)`)."""
        return target_table(self)

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
        contrast: tuple[Any, Any] | None = None,
        outcome: str | None = None,
        rows: int = 200,
    ) -> Effect:
        """The average causal effect of one node on another, per unit of the cause.

        Parameters are drawn afresh given each graph where the model has closed forms and the data are at hand (then
        `draws` of equal weight); else those of the particles are used, with their weights. Units are those of the
        table before it was standardised with `Dataset.standardised`; `units="fitted"` keeps those of the fit. For a
        model that is not linear the effect is the difference between two values of the cause, `contrast`, by default
        one standard deviation below and above its mean, with `rows` simulated rows for each draw.

        In a categorical network it is a difference of probabilities,
        `P(effect = outcome | do(cause = to)) - P(effect = outcome | do(cause = from))` with `contrast=(from, to)`: by
        default from the first to the last level of the cause, on the last level of the effect; `meaning` says which.
        Under the model "copula" it is per standard deviation of the latent cause, in those of the latent effect.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=200, seed=1).train)
        >>> post.effect("x0", "x1").level
        0.9
        """
        return effect_of(
            self, cause, effect, level=level, draws=draws, seed=seed, units=units, contrast=contrast, rows=rows,
            outcome=outcome,
        )  # fmt: skip

    def effects(self, *, draws: int = 1000, seed: int = 0, units: Units = "raw", rows: int = 200) -> pd.DataFrame:
        """Posterior means of all effects, row i on column j; in closed form where `effect` has one.

        In a categorical network they are those of `effect` without `contrast` and `outcome`.
        """
        return self.labelled(mean_effects(self, draws, seed, units, rows))

    def effect_table(
        self, *, level: float = 0.9, draws: int = 1000, seed: int = 0, units: Units = "raw", rows: int = 200
    ) -> pd.DataFrame:
        """Every effect with its interval and the probability that there is a path, the largest first; from draws.

        `mean` counts graphs without a path as 0; `mean_given_path` is the mean over the graphs that have one, NaN where
        no draw does.
        """
        return effect_table(self, level, draws, seed, units, rows)

    def mechanism(
        self, cause: str | int, effect: str | int, *, points: int = 61, level: float = 0.9, draws: int = 200,
        seed: int = 0, units: Units = "raw",
    ) -> Curve:  # fmt: skip
        """The function of one direct edge, with its band: how the cause enters the equation of the effect.

        Each curve is that of one graph with the edge: the expected value of the effect with its other parents held at
        their means, less its average over the data, so that curves of different graphs can be compared. What the
        cause does by way of other nodes is not in it; `effect_curve` has the total.

        Parameters
        ----------
        cause, effect
            Names or positions of two nodes.
        points
            Number of values of the cause, from its 1 % to its 99 % quantile; without data two standard deviations on
            each side of the mean.
        level
            Probability of the band at each value.
        draws
            Number of draws of the parameters, where these can be drawn given a graph; else all particles are used.
        seed
            Seed of the draws.
        units
            "raw" for the units of the table before it was standardised, "fitted" for those of the fit.

        >>> import dagpost as dp
        >>> sim = dp.simulate("additive", nodes=3, observations=100, seed=1)
        >>> curve = dp.exact(sim.train, model="additive").mechanism("x0", "x1")
        >>> bool((curve.lower <= curve.upper).all())
        True
        """
        return mechanisms.mechanism(
            self, cause, effect, points=points, level=level, draws=draws, seed=seed, units=units
        )

    def effect_curve(
        self, cause: str | int, effect: str | int, values: Any = None, *, points: int = 21, level: float = 0.9,
        draws: int = 200, seed: int = 0, units: Units = "raw", rows: int = 200,
    ) -> Curve:  # fmt: skip
        """The total effect as a curve, `E[effect | do(cause = v)]`, with its band over graphs and parameters.

        Graphs without a path from cause to effect take part with a constant. In a linear model expectations are exact
        given graph and parameters. In others they are means of `rows` simulated rows, the same noise for all values,
        so that the shape of a curve is sharper than its level, whose error is about one standard deviation of the
        effect divided by the root of `rows`.

        Parameters
        ----------
        values
            Values of the cause, in `units`; by default `points` values as in `mechanism`.
        rows
            Rows simulated for each draw and value.
        """
        return mechanisms.effect_curve(
            self, cause, effect, values, points=points, level=level, draws=draws, seed=seed, units=units, rows=rows
        )

    def probability_table(self, node: str | int, graph: Graph | None = None) -> pd.DataFrame:
        """The table of a node in a categorical network: its posterior mean given a graph, `consensus_graph()` by
        default. A row for each combination of the parents' levels, a column for each level of the node. Where cells of
        the data are missing it is the mean over the completed tables drawn with all graphs, not with this one alone.

        >>> import dagpost as dp
        >>> sim = dp.simulate("bdeu", nodes=3, observations=200, seed=1)
        >>> dp.exact(sim.train, model="bdeu").probability_table("x0").sum(axis=1).round(6).unique().tolist()
        [1.0]
        """
        j = self.index(node)
        return tables.mean_table(self, j, self.consensus_graph() if graph is None else graph)

    def predict(
        self, do: Mapping[str | int, float | str] | None = None, *, samples: int = 1000, seed: int = 0
    ) -> pd.DataFrame:
        """Rows from the posterior predictive distribution under do(…), in raw units: `post.predict({"x": 2.0})`,
        or by name of a level: `post.predict({"smoker": "yes"})`.

        Each row has its own graph, drawn by weight, and parameters as in `effect`.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> post.predict({"x0": 2.0}, samples=5)["x0"].tolist()
        [2.0, 2.0, 2.0, 2.0, 2.0]
        """
        return predict(self, do, samples, seed)

    def imputed(self, n: int = 10) -> list[pd.DataFrame]:
        """Draws of the table with its missing cells filled in: names, units and levels are those of the table.

        Parameters
        ----------
        n
            Number of draws, evenly spaced among those that the run kept; at most as many.
        """
        return imputed_tables(self, n)

    # ---- files and other programs

    def _repr_html_(self) -> str:
        """The most probable pairs as a table, in notebooks."""
        return notebook.posterior_html(self)

    def save(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """One netCDF file, which `dagpost.load`, xarray and ArviZ read; written as a whole or not at all."""
        return netcdf.save(self, path, overwrite)

    def export(self, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
        """A file for other programs, by its ending: .csv, .graphml, .dot or .dagitty."""
        return exports.export(self, path, overwrite)

    def to_xarray(self) -> DataTree:
        """The posterior as ArviZ lays it out; `dagpost.posterior.netcdf` says how."""
        return to_tree(self)

    def to_networkx(self, threshold: float = 0.0) -> DiGraph:
        """Edges above the threshold with their `probability`."""
        return exports.to_networkx(self, threshold)

    def to_graphml(self, threshold: float = 0.0) -> str:
        """The same as GraphML, with conditions and their targets where the data have them."""
        return exports.to_graphml(self, threshold)

    def to_dot(self, threshold: float = 0.05) -> str:
        """The same for Graphviz, with conditions and their targets where the data have them."""
        return exports.to_dot(self, threshold)

    def to_dagitty(self, graph: Graph | None = None) -> str:
        """A DAG, the consensus graph unless another is given, for dagitty."""
        return exports.to_dagitty(self, graph)

    def to_csv(self) -> str:
        """The edge table; names that a spreadsheet would take for formulas get an apostrophe in front."""
        return exports.to_csv(self)

    def edge_intervals(self, level: float = 0.9) -> pd.DataFrame:
        """The edge table with the Monte Carlo interval of each probability: `lower` and `upper`.

        It says how far the number may be off because it was sampled; `attrs["source"]` names where it comes from:
        "exact" (no sampling error), "orders" (independent draws), "chains" (batch means of MCMC) or "graphs" (as many
        independent draws as the weights are worth). See `dagpost.posterior.features`.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> post.edge_intervals().attrs["source"]
        'exact'
        """
        return features.interval_table(self, level)


def load(
    path: str | os.PathLike[str],
    *,
    model: Model | None = None,
    prior: GraphPrior | None = None,
    largest_bytes: int = LARGEST_BYTES,
) -> Posterior:
    """A posterior from the file that `Posterior.save` wrote; every damaged file is refused.

    A model or prior that is not part of dagpost has to be given again, with the settings it was saved with. The data
    are not in the file: `Posterior.with_data` gives them back, where an answer needs them.

    >>> import dagpost as dp, tempfile
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=0).train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = post.save(f"{folder}/posterior.nc")
    ...     same = dp.load(file)
    >>> bool((same.edge_marginals == post.edge_marginals).all())
    True
    """
    return Posterior(**read_fields(path, model, prior, largest_bytes))
