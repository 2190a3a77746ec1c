"""Completed tables: how a model draws the cells of a table that are not observed.

Chains over graphs with unobserved cells (`inference/mcmc/augmented.py`) alternate moves over graphs, scored on the
completed table, and a draw of the cells given the graph. Everything that they need to know of the cells is a
`Completion`, which a model makes for its data (`Model.completion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np

from dagpost.data import Dataset
from dagpost.data.missing import completed
from dagpost.models.cells import draw_category_cells, draw_gaussian_cells
from dagpost.models.statistics import Statistics
from dagpost.typing import Graph, Rows, Theta

MERGED = 1000
"""Rows above which equal ones of a categorical table are merged in every sweep."""


class Redrawn(NamedTuple):
    """A completed table, and the parameters that its cells were drawn with."""

    values: Rows
    theta: Theta


@runtime_checkable
class Completion(Protocol):
    """How the unobserved cells of one table are drawn."""

    def start(self, rng: np.random.Generator) -> Rows:
        """Return a completed table to start from, different for every generator."""
        ...

    def statistics(self, values: Rows) -> Statistics:
        """Return the statistics of a completed table, as `Model.summarise` does."""
        ...

    def redraw(self, values: Rows, stats: Statistics, graph: Graph, rng: np.random.Generator) -> Redrawn:
        """Return parameters from `p(theta | graph, completed table)`, and a completed table with new cells given them.

        Parameters
        ----------
        values
            The completed table so far, which must not be changed.
        stats
            Its statistics.
        graph
            Adjacency matrix of a DAG.
        rng
            Source of all random numbers.
        """
        ...

    def cells(self, values: Rows) -> np.ndarray:
        """Return the unobserved cells of a completed table, those that imputed tables differ in."""
        ...

    def stack(self, thetas: Sequence[Theta]) -> Theta:
        """Return the parameters of many graphs with a leading axis."""
        ...


class TableCompletion:
    """What completions share: where missing cells are, values to start from, and how parameters are stacked."""

    def __init__(self, data: Dataset, model: Any):
        self.data, self.model = data, model
        _ = data.regimes  # computed once: completed tables share it
        self.rows, self.columns = np.nonzero(data.is_missing)
        self.known = [column[~np.isnan(column)] for column in data.values.T]

    def start(self, rng: np.random.Generator) -> Rows:
        """Return the table with every missing cell drawn from the observed cells of its column."""
        values = self.data.values.copy()
        for j in np.unique(self.columns):
            here = self.columns == j
            values[self.rows[here], j] = rng.choice(self.known[j], int(here.sum()))
        return values

    def statistics(self, values: Rows) -> Statistics:
        return self.model.summarise(completed(self.data, values))

    def cells(self, values: Rows) -> np.ndarray:
        return values[self.rows, self.columns]

    def stack(self, thetas: Sequence[Theta]) -> Theta:
        return jax.tree.map(lambda *leaves: np.stack(leaves), *thetas)


class Equations(NamedTuple):
    """A linear Gaussian network: `x_j = intercept_j + sum_i weights_ij x_i + noise of this variance`."""

    weights: np.ndarray  # (d, d)
    intercept: np.ndarray  # (d,)
    variance: np.ndarray  # (d,)


class GaussianCompletion(TableCompletion):
    """Missing cells of a linear Gaussian model, which has `summarise`, `theta_from` and `equations`; a row's missing
    cells are drawn jointly."""

    def __init__(self, data: Dataset, model: Any):
        super().__init__(data, model)
        self.of_rows, self.first = np.unique(self.rows, return_index=True)
        self.first = np.append(self.first, len(self.rows))
        self.free, self.regime = np.unique(~data.intervened[self.of_rows], axis=0, return_inverse=True)
        self.regime = self.regime.reshape(-1)

    def redraw(self, values: Rows, stats: Statistics, graph: Graph, rng: np.random.Generator) -> Redrawn:
        theta = self.model.theta_from(rng, graph, stats)
        weights, intercept, variance = self.model.equations(theta)
        own = np.eye(len(graph)) - weights * graph  # column j is a_j
        scaled = self.free[:, None, :] * (own / variance)  # (regimes, d, d)
        out = values.copy()
        draw_gaussian_cells(
            out, self.of_rows, self.first, self.columns, self.regime, scaled @ own.T, scaled @ intercept,
            rng.standard_normal(len(self.rows)),
        )  # fmt: skip
        return Redrawn(out, theta)


class CategoricalCompletion(TableCompletion):
    """Missing cells of a categorical network, one after another from their full conditionals."""

    def statistics(self, values: Rows) -> Statistics:
        """Return the statistics; rows of a small table are not merged, since finding equal ones takes longer."""
        table = completed(self.data, values)
        return self.model.statistics_of(table, merge=table.observations > MERGED)

    def redraw(self, values: Rows, stats: Statistics, graph: Graph, rng: np.random.Generator) -> Redrawn:
        theta = self.model.theta_from(rng, graph, stats)
        codes = values.astype(np.int64)
        d = len(graph)
        children, counts = np.zeros((d, d), np.int64), graph.sum(axis=1)
        for i in range(d):
            children[i, : counts[i]] = np.flatnonzero(graph[i])
        draw_category_cells(
            codes, self.rows, self.columns, self.data.intervened, theta.table, theta.strides.astype(np.int64),
            stats.shared.levels, children, counts, rng.random(len(self.rows)),
        )  # fmt: skip
        return Redrawn(codes.astype(np.float64), theta)

    def stack(self, thetas: Sequence[Theta]) -> Theta:
        """Return all tables, padded to the most combinations of the parents' levels."""
        most = max(theta.table.shape[1] for theta in thetas)
        tables = [np.pad(theta.table, ((0, 0), (0, most - theta.table.shape[1]), (0, 0))) for theta in thetas]
        return type(thetas[0])(np.stack(tables), np.stack([theta.strides for theta in thetas]))
