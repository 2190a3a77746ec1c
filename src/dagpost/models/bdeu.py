"""Categorical networks: a table of probabilities for every node, with a Dirichlet prior integrated out.

Every node has a distribution over its levels for each combination of its parents' levels; given the graph and the data
these are independent Dirichlet distributions,

    theta_k ~ Dirichlet(alpha_k1 + N_k1, …, alpha_kr + N_kr),

with the counts and priors of `counts.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from dagpost._util.numerics import generator
from dagpost.data import Dataset, kind_problems
from dagpost.data.values import columns_phrase, raise_problems
from dagpost.errors import InputError, nearest, positive, whole_number
from dagpost.models.base import Model, Statistics
from dagpost.models.completion import CategoricalCompletion
from dagpost.models.counts import (
    BDEU,
    BDS,
    K2,
    CountTable,
    count_evidences,
    count_rows,
    evidence_of_columns,
    family_alpha,
    family_counts,
)
from dagpost.models.statistics import chosen_groups
from dagpost.typing import Graph, Graphs, Key, Nodes, RowGroups, Rows, Scalar, SoftColumn, Theta

PRIORS = {"bdeu": BDEU, "k2": K2, "bds": BDS}
MOST_LEVELS = 20
"""Most different whole numbers in a column that is taken as categorical without being asked."""
MOST_CELLS = 20_000_000
"""Most numbers in the drawn tables of a network, or of all networks of a batch."""


class BdeuTheta(NamedTuple):
    """Conditional probability tables drawn for one network; the score itself has no parameters.

    `table[j, k]` is the distribution of node j for combination k of its parents' levels, padded with 0; the combination
    is `k = sum_i strides[i, j] x_i`.
    """

    table: Any  # (d, combinations, levels)
    strides: Any  # (d, d)


class NodeIndex(NamedTuple):
    """Statistics of a node: its index."""

    index: Any


@dataclass(frozen=True)
class BDeu(Model):
    """Categorical network with Dirichlet priors: BDeu, K2 or BDs marginal likelihood.

    Columns must be categorical; whole numbers with few different values are taken as categories. The model has no
    explicit parameters (`theta = ()`); tables are drawn for effects and predictions.

    Parameters
    ----------
    equivalent_sample_size
        Weight of the prior, as a number of rows; without meaning for "k2".
    variant
        Prior of the tables: "bdeu" gives graphs that imply the same independences the same score; "k2" has one
        imagined row in each cell; "bds" divides the weight among combinations of levels that occur.
    simulated_levels
        Levels of every node in simulated data.

    Examples
    --------
    >>> import dagpost as dp
    >>> sim = dp.simulate("bdeu", nodes=3, observations=200, seed=1)
    >>> dp.exact(sim.train, model=dp.BDeu(equivalent_sample_size=5.0)).nodes
    3
    """

    equivalent_sample_size: float = 1.0
    variant: Literal["bdeu", "k2", "bds"] = "bdeu"
    simulated_levels: int = 2
    name: ClassVar[str] = "bdeu"
    assumption: ClassVar[str] = "each combination of the parents' levels has its own distribution of a node's levels"
    soft: ClassVar[bool] = False
    has_evidence: ClassVar[bool] = True
    has_parameters: ClassVar[bool] = False
    categorical: ClassVar[bool] = True
    theta_axes: ClassVar[Any] = BdeuTheta(0, 1)

    def __post_init__(self):
        positive("equivalent_sample_size", self.equivalent_sample_size)
        whole_number("simulated_levels", self.simulated_levels, least=2)
        if self.variant not in PRIORS:
            raise InputError(f"variant={self.variant!r}: {nearest(str(self.variant), PRIORS)}")

    # ---- data

    def accept(self, data: Dataset) -> Dataset:
        """Return the data with whole numbers of few different values as categories; other numbers are refused."""
        problems = kind_problems(data, self.name, categories=True, missing=True)
        converted, refused = [], []
        for name, column, is_category in zip(data.names, data.raw().values.T, data.is_categorical):
            column = column[~np.isnan(column)]
            if not is_category:
                few = (column % 1 == 0).all() and len(np.unique(column)) <= MOST_LEVELS
                (converted if few else refused).append(name)
        if refused:
            what = columns_phrase(refused, "holds numbers", "hold numbers")
            problems.append(
                f"{what}, and the model {self.name!r} takes categories alone: leave out (--drop NAME), cut into "
                "intervals, or call categorical (--kinds NAME=categorical)"
            )
        raise_problems(problems)
        if not converted or data.observations == 0:
            return data
        note = columns_phrase(converted, "of whole numbers taken as categories", "of whole numbers taken as categories")
        out = data.raw().with_kinds(dict.fromkeys(converted, "categorical"))
        return replace(out, notes=(*data.notes, note))

    def summarise(self, data: Dataset) -> Statistics:
        return self.statistics_of(self.accept(data))

    def statistics_of(self, data: Dataset, merge: bool = True) -> Statistics:
        """Return the statistics of categories, equal rows merged or not, which changes no score."""
        table = count_rows(data, self.equivalent_sample_size, PRIORS[self.variant], merge)
        return Statistics(table, NodeIndex(np.arange(data.nodes)))

    def extended(self, stats: Statistics, rows: Rows, groups: RowGroups | None = None) -> Statistics | None:
        if self.variant == "bds":  # its prior changes with the combinations that occur: no ratio is a density
            return None
        table = stats.shared
        gets = chosen_groups(groups, len(table.free))
        more = table._replace(
            codes=np.concatenate([table.codes, rows.T.astype(table.codes.dtype)], axis=1),
            weights=np.append(table.weights, np.ones(len(rows))),
            free=np.concatenate([table.free, np.repeat(gets[:, None], len(rows), axis=1)], axis=1),
        )
        return Statistics(more, stats.node)

    def count_table(self, stats: Statistics) -> CountTable:
        return stats.shared

    # ---- the score

    def log_conditional(self, g_j: SoftColumn, theta_j: Theta, stats_j: Statistics) -> Scalar:
        """Return the evidence; for explicit tables (a `BdeuTheta`) the log probability of the rows."""
        table, (j,) = stats_j
        if jax.tree.leaves(theta_j):
            codes = jnp.asarray(table.codes)
            place = (theta_j.strides @ codes).astype(jnp.int32)
            log_probability = jnp.log(theta_j.table[place, codes[j]])
            free = jnp.asarray(table.free)[jnp.asarray(table.group)[j]]
            return jnp.sum(jnp.where(free, table.weights * log_probability, 0.0))
        shape = jax.ShapeDtypeStruct((), g_j.dtype)
        return jax.pure_callback(_one_family, shape, g_j, j, *table, vmap_method="sequential")

    def log_evidence(self, j: int, parents: Any, stats: Statistics) -> float:
        row = np.zeros((1, len(stats.shared.group)), np.bool_)
        row[0, np.asarray(parents, dtype=np.int64)] = True
        return float(count_evidences(stats.shared, np.array([j]), row)[0])

    def log_evidences(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], stats: Statistics
    ) -> Float[np.ndarray, " n"]:
        return count_evidences(stats.shared, np.asarray(nodes), parents)

    # ---- tables

    def cells(self, j: int, parents: Nodes, stats: Statistics) -> Float[np.ndarray, "q r"]:
        """Return the parameters `alpha + N` of the Dirichlet posterior of a node's table.

        Parameters
        ----------
        j, parents
            Node and its parents; combinations of their levels are rows, that of the last parent changing first.
        stats
            Statistics from `summarise`.
        """
        size = float(np.prod(stats.shared.levels[np.append(parents, j).astype(np.int64)], dtype=float))
        if size > MOST_CELLS:
            raise InputError(f"the table of a node with {len(parents)} parents has {size:.2g} cells: too many to draw")
        counts = family_counts(stats.shared, j, np.asarray(parents, dtype=np.int64))
        return counts + family_alpha(stats.shared, counts)

    def draw_tables(
        self, rng: np.random.Generator, j: int, parents: Nodes, stats: Statistics, draws: int
    ) -> Float[np.ndarray, "n q r"]:
        """Return draws of the table of one node from its Dirichlet posterior.

        A Gamma variable of a tiny shape a is `Gamma(a + 1) U^(1/a)`, in logarithms, since it may be too small for a
        float.
        """
        shape = self.cells(j, parents, stats)
        if draws * shape.size > MOST_CELLS:
            raise InputError(f"{draws} tables of {shape.size} cells are too large: ask for fewer draws")
        logs = np.log(rng.standard_gamma(shape + 1, (draws, *shape.shape)))
        logs += np.log1p(-rng.random((draws, *shape.shape))) / shape
        logs -= logs.max(axis=2, keepdims=True)
        out = np.exp(logs)
        return out / out.sum(axis=2, keepdims=True)

    def draw_theta(self, key: Key, graph: Graph, stats: Statistics) -> BdeuTheta:
        """Return a draw of all tables of one graph."""
        return self.theta_from(generator(key), graph, stats)

    def theta_from(self, rng: np.random.Generator, graph: Graph, stats: Statistics) -> BdeuTheta:
        """Return `draw_theta` with these random numbers."""
        levels, d = stats.shared.levels, len(graph)
        families = [np.flatnonzero(column) for column in np.asarray(graph).T]
        drawn = [self.draw_tables(rng, j, parents, stats, 1)[0] for j, parents in enumerate(families)]
        table, strides = np.zeros((d, max(map(len, drawn)), int(levels.max()))), np.zeros((d, d))
        for j, (parents, own) in enumerate(zip(families, drawn)):
            table[j, : own.shape[0], : own.shape[1]] = own
            strides[parents, j] = strides_of(levels[parents])
        return BdeuTheta(table, strides)

    def completion(self, data: Dataset) -> CategoricalCompletion:
        return CategoricalCompletion(data, self)

    def draw_thetas(self, keys: Key, graphs: Graphs, stats: Statistics) -> BdeuTheta:
        """Return a draw for each graph, equal families drawn together; tables are padded to the largest."""
        rng = generator(keys[0])
        graphs, levels = np.asarray(graphs, dtype=np.bool_), stats.shared.levels
        count, d = graphs.shape[:2]
        # in float: products of many levels may exceed an int64
        combinations = np.prod(np.where(graphs, levels[None, :, None].astype(float), 1.0), axis=1)
        if count * d * combinations.max(initial=1.0) * levels.max() > MOST_CELLS:
            culprit = int(combinations.max(axis=0).argmax())
            raise InputError(
                f"the tables of {count} graphs are too large to draw (node {culprit} has {combinations.max():.2g} "
                "combinations of its parents' levels): ask for fewer draws"
            )
        table = np.zeros((count, d, int(combinations.max(initial=1.0)), int(levels.max())))
        strides = np.zeros((count, d, d))
        for j in range(d):
            columns, where = np.unique(graphs[:, :, j], axis=0, return_inverse=True)
            for c, column in enumerate(columns):
                parents, members = np.flatnonzero(column), np.flatnonzero(where.reshape(-1) == c)
                drawn = self.draw_tables(rng, j, parents, stats, len(members))
                table[members, j, : drawn.shape[1], : drawn.shape[2]] = drawn
                strides[members[:, None], parents, j] = strides_of(levels[parents])
        return BdeuTheta(table, strides)

    # ---- simulation

    def sample_parameters(self, key: Key, graph: Graph) -> BdeuTheta:
        """Return tables from their prior, with `simulated_levels` levels of every node."""
        return self.draw_theta(key, graph, self.summarise(self._empty(graph.shape[0])))

    def simulator(self) -> Model:
        """Return the model with tables drawn uniformly: at a small weight of the prior many columns are constant."""
        return replace(self, variant="k2")

    def _empty(self, d: int) -> Dataset:
        """Return a table without rows of nodes with `simulated_levels` levels."""
        levels = tuple(str(level) for level in range(self.simulated_levels))
        return Dataset(np.zeros((0, d)), levels=(levels,) * d)

    def sample_rows(self, key, graph, theta, rows, clamped=None) -> Dataset:
        """Return rows drawn by ancestral sampling, as categories "0", "1", …"""
        drawn = super().sample_rows(key, graph, theta, rows, clamped)
        return replace(drawn, levels=self._empty(drawn.nodes).levels)

    def node_mean(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        """Return the expected code of one node given its parents; that of two levels is the probability of the last."""
        return self._probabilities(inputs, theta_j) @ jnp.arange(theta_j.table.shape[-1], dtype=inputs.dtype)

    def sample_node(self, key: Key, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, " n"]:
        return jax.random.categorical(key, jnp.log(self._probabilities(inputs, theta_j))).astype(inputs.dtype)

    def _probabilities(self, inputs: Float[Array, "n d"], theta_j: Theta) -> Float[Array, "n r"]:
        """Return the distribution of one node in every row."""
        place = jnp.round(inputs @ jnp.asarray(theta_j.strides)).astype(jnp.int32)
        return jnp.asarray(theta_j.table)[place]


def strides_of(levels: Int[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Return how much the number of a combination grows with each parent's level; the last changes first.

    >>> strides_of(np.array([2, 3])).tolist()
    [3.0, 1.0]
    """
    return np.append(np.cumprod(levels[:0:-1])[::-1], 1.0)[: len(levels)].astype(float)


def _one_family(column: Any, j: Any, *fields: Any) -> np.ndarray:
    """Return the log evidence of node j, on the host."""
    d = np.shape(column)[-1]
    graph = np.zeros((d, d))
    graph[:, int(j)] = np.asarray(column)
    return np.asarray(evidence_of_columns(graph, *fields)[int(j)], dtype=np.asarray(column).dtype)
