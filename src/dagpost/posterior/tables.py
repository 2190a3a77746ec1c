"""Interventions in categorical networks: exact probabilities under do(…) given graph and tables.

The effect of x on y is a difference of probabilities,

    P(y = outcome | do(x = to)) - P(y = outcome | do(x = from)).

Given graph and tables it is a sum of products over the ancestors of y, computed by eliminating one node after the
other. Every product has one entry of the table of each node, and tables of different nodes are independent given graph
and data; so the posterior mean given the graph is the same sum with the posterior means of the tables, exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from dagpost.errors import InputError, nearest, printable
from dagpost.graphs import descendants
from dagpost.models import BdeuTheta, Statistics
from dagpost.posterior.imputed import completed_data
from dagpost.posterior.sample import GraphSample, group_equal
from dagpost.typing import Graph, Graphs, Nodes

MOST_CELLS = 5_000_000
"""Most numbers in an intermediate result; more draws are computed in parts."""
MOST_COMPLETED = 100
"""Completed tables over which a table of probabilities is averaged."""


class LevelContrast(NamedTuple):
    """What is compared: two levels of the cause, and the level of the effect whose probability is asked for."""

    low: int
    high: int
    outcome: int


def level_index(post: GraphSample, node: int, level: Any) -> int:
    """Return the code of a level of a node, given by its name."""
    levels = post.levels[node]
    name = str(level)
    if name not in levels:
        raise InputError(f"'{printable(name)}' is no level of '{printable(post.names[node])}': {nearest(name, levels)}")
    return levels.index(name)


def contrast_of_levels(post: GraphSample, i: int, j: int, contrast: Any, outcome: Any) -> LevelContrast:
    """Return the levels to compare; by default the first and the last of the cause, and the last of the effect."""
    if contrast is None:
        low, high = 0, len(post.levels[i]) - 1
    else:
        if isinstance(contrast, str) or len(contrast) != 2:
            raise InputError(f"contrast={contrast!r}: give two levels of '{printable(post.names[i])}'")
        low, high = (level_index(post, i, level) for level in contrast)
        if low == high:
            raise InputError(f"contrast={contrast!r}: give two different levels")
    return LevelContrast(low, high, len(post.levels[j]) - 1 if outcome is None else level_index(post, j, outcome))


def contrast_text(post: GraphSample, i: int, j: int, levels: LevelContrast) -> str:
    """Return the difference of probabilities in words.

    For a cause "smoke" and an effect "lung": P(lung = yes | do(smoke = yes)) - P(lung = yes | do(smoke = no)).
    """
    cause, effect = (printable(post.names[k]) for k in (i, j))
    what = f"{effect} = {printable(post.levels[j][levels.outcome])}"
    high, low = (f"P({what} | do({cause} = {printable(post.levels[i][k])}))" for k in (levels.high, levels.low))
    return f"{high} - {low}"


def mean_table(post: GraphSample, j: int, graph: Graph) -> pd.DataFrame:
    """Return the posterior mean of a node's table given a graph; see `Posterior.probability_table`."""
    model: Any = post.model
    if not (model.categorical and hasattr(model, "cells")):
        raise InputError(f"the model {model.name!r} has no tables of probabilities: they are those of 'bdeu'")
    if post.data is None:
        raise InputError("tables of probabilities need the data: call with_data(data) on the posterior first")
    parents = np.flatnonzero(np.asarray(graph)[:, j])
    tables = completed_data(post, MOST_COMPLETED) if post.data.is_missing.any() else [post.data]
    every = [model.cells(j, parents, model.summarise(table)) for table in tables]
    mean = np.mean([cells / cells.sum(axis=1, keepdims=True) for cells in every], axis=0)
    rows = pd.RangeIndex(1)
    if len(parents):
        names = [post.names[i] for i in parents]
        rows = pd.MultiIndex.from_product([post.levels[i] for i in parents], names=names)
    return pd.DataFrame(mean, index=rows, columns=list(post.levels[j]))


class LevelTables(NamedTuple):
    """Where the tables of a categorical network come from."""

    sizes: Int[np.ndarray, " d"]  # number of levels of every node
    of: Callable[[int, Nodes, Int[np.ndarray, " n"]], Float[np.ndarray, "n q r"]]
    """Tables of a node given its parents in each of some graphs, by position; or one for all."""
    averaged: bool = False  # whether it is one for all


def level_tables(model: Any, stats: Statistics, rng: np.random.Generator | None) -> LevelTables:
    """Return tables of a categorical model drawn from their posterior, or their means without random numbers."""

    def of(node: int, parents: Nodes, members: np.ndarray) -> np.ndarray:
        if rng is not None:
            return model.draw_tables(rng, node, parents, stats, len(members))
        cells = model.cells(node, parents, stats)
        return (cells / cells.sum(axis=1, keepdims=True))[None]

    return LevelTables(stats.shared.levels, of, rng is None)


def stored_tables(theta: BdeuTheta, sizes: Int[np.ndarray, " d"]) -> LevelTables:
    """Return the tables that were drawn with each graph."""

    def of(node: int, parents: Nodes, members: np.ndarray) -> np.ndarray:
        combinations = int(np.prod(sizes[parents], dtype=np.int64))
        return np.asarray(theta.table)[members, node, :combinations, : sizes[node]]

    return LevelTables(sizes, of)


def relevant_families(graphs: Graphs, i: int, j: int) -> tuple[Int[np.ndarray, " m"], Bool[np.ndarray, " m"], Graphs]:
    """Return groups of graphs with the same effect of i on j given their tables, whether there is a path, and the edges
    that matter: those into ancestors of j, and into j, without those into i."""
    cut = graphs.copy()
    cut[:, :, i] = False
    above = descendants(cut)[:, :, j] | (np.arange(graphs.shape[-1]) == j)
    edges = cut & above[:, None, :]
    return group_equal([edges])[1], above[:, i], edges


def level_effects(
    source: LevelTables, graphs: Graphs, i: int, j: int, levels: LevelContrast
) -> Float[np.ndarray, " m"]:
    """Return the effect of i on j in every graph.

    Parameters
    ----------
    source
        Tables of each graph, or their means.
    graphs
        Adjacency matrices of DAGs, repeated ones as often as they are drawn.
    i, j
        Cause and effect.
    levels
        The levels to compare.
    """
    groups, connected, edges = relevant_families(graphs, i, j)
    out = np.zeros(len(graphs))
    for group in np.unique(groups[connected]):
        members = np.flatnonzero(groups == group)
        graph = edges[members[0]]
        out[members] = _effects(source, graph, i, j, levels, members[:1] if source.averaged else members)
    return out


def _effects(source: LevelTables, graph, i, j, levels: LevelContrast, members) -> Float[np.ndarray, " n"]:
    """Return the effect in one graph, for the tables of these members; `graph` has the edges that matter alone."""
    sizes = source.sizes
    nodes = [j, *np.flatnonzero(descendants(graph)[:, j]).tolist()]
    families = {k: np.flatnonzero(graph[:, k]).tolist() for k in nodes if k != i}
    largest = _largest_factor(families, i, j, sizes)
    if largest > MOST_CELLS:
        raise InputError(
            f"a graph is too dense for exact probabilities ({largest:.2g} combinations at once): simulate with "
            "post.predict, or bound the number of parents (max_parents)"
        )
    out, part = [], max(1, int(MOST_CELLS / largest))
    for start in range(0, len(members), part):
        tables = {}
        for k, parents in families.items():
            shape = (*(int(sizes[p]) for p in parents), int(sizes[k]))
            table = source.of(k, np.array(parents, dtype=np.int64), members[start : start + part])
            tables[k] = table.reshape(len(table), *shape)
        high, low = (do_probability(tables, families, i, value, j) for value in (levels.high, levels.low))
        out.append(high[:, levels.outcome] - low[:, levels.outcome])
    return np.concatenate(out)


Factor = tuple[tuple[int, ...], np.ndarray]
"""Nodes of a table, and the table with draws as its first axis."""


def do_probability(
    tables: Mapping[int, np.ndarray], families: Mapping[int, Sequence[int]], cause: int, value: int, effect: int
) -> Float[np.ndarray, "n r"]:
    """Return the distribution of the effect under do(cause = value), for every draw of the tables.

    Parameters
    ----------
    tables
        Table of each node: draws, levels of its parents, its own levels.
    families
        Parents of each node, in the order of the axes of its table.
    cause, value
        Node that is set, and the code of its level.
    effect
        Node whose distribution is returned.
    """
    factors: list[Factor] = []
    for k, parents in families.items():
        table, nodes = tables[k], [*parents, k]
        if cause in parents:
            table = np.take(table, value, axis=1 + nodes.index(cause))
            nodes.remove(cause)
        factors.append((tuple(nodes), table))
    for node, _ in _elimination_order(factors, effect, {}):
        mine = [factor for factor in factors if node in factor[0]]
        left = tuple(sorted({k for nodes, _ in mine for k in nodes} - {node}))
        factors = [factor for factor in factors if node not in factor[0]] + [(left, _product(mine, left))]
    return _product(factors, (effect,))


def _product(factors: Sequence[Factor], kept: tuple[int, ...]) -> np.ndarray:
    """Return the product of tables, summed over all nodes but those kept."""
    letter = {k: n + 1 for n, k in enumerate(sorted({k for nodes, _ in factors for k in nodes}))}
    operands: list[Any] = []
    for nodes, table in factors:
        operands += [table, [0, *(letter[k] for k in nodes)]]
    return np.einsum(*operands, [0, *(letter[k] for k in kept)], optimize=len(factors) > 2)


def _elimination_order(factors: Sequence[Factor], kept: int, sizes: Mapping[int, int]) -> list[tuple[int, float]]:
    """Return the other nodes, each next one with the smallest table left behind, and the size of the table before the
    node is summed out."""
    if not sizes:
        sizes = {k: size for nodes, table in factors for k, size in zip(nodes, table.shape[1:])}
    scopes = [set(nodes) for nodes, _ in factors]
    out, left = [], set().union(*scopes) - {kept}
    while left:
        joined = {k: set().union(*(scope for scope in scopes if k in scope)) for k in sorted(left)}
        cost = {k: prod(sizes[v] for v in scope) for k, scope in joined.items()}
        best = min(cost, key=lambda k, cost=cost: cost[k])
        scope = joined[best]
        out.append((best, float(cost[best])))
        scopes = [other for other in scopes if best not in other] + [scope - {best}]
        left.remove(best)
    return out


def _largest_factor(families: Mapping[int, Sequence[int]], cause: int, effect: int, sizes: Any) -> float:
    """Return the size of the largest table in the course of elimination, or among the tables themselves."""
    empty = np.zeros(0)
    factors: list[Factor] = [
        (tuple(k for k in (*parents, node) if k != cause), empty) for node, parents in families.items()
    ]
    known = {k: int(sizes[k]) for nodes, _ in factors for k in nodes}
    own = (float(prod(int(sizes[k]) for k in (*parents, node))) for node, parents in families.items())
    return max([*own, *(size for _, size in _elimination_order(factors, effect, known))])
