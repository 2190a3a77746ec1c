"""What the page of a wide table leaves out, and its clusters: with 1,000 columns there are half a million pairs.

Above `WIDE` columns the page holds the most probable pairs only, and their paths; the graph draws the `DRAWN` most
probable of them, without variables that none of them joins. Clusters of variables are listed below, closed until they
are opened. posterior.nc and edges.csv hold everything.
"""

from __future__ import annotations

from html import escape
from typing import Any

import networkx as nx
import numpy as np

from dagpost.plot.canvas import GraphLayout, layered
from dagpost.posterior import Posterior
from dagpost.posterior.features import consensus
from dagpost.posterior.pairs import adjacency, ranked_pairs
from dagpost.posterior.sample import WIDE
from dagpost.typing import Graph, Matrix

DRAWN = 200
"""Most pairs that the graph of a wide page draws."""
LISTED, LEAST = 10_000, 0.005
"""Most pairs on a wide page, and their least probability of being adjacent."""
CLUSTERED = 0.5
"""Least probability of an adjacency that joins two variables of a cluster."""
MOST_CLUSTERS, MOST_LINES = 100, 200
"""Most clusters listed, and most pairs of each."""


def is_wide(post: Posterior) -> bool:
    """Return whether the page leaves pairs out."""
    return post.nodes > WIDE


def listed_pairs(p: Matrix) -> Graph:
    """Return the pairs on the page, True at row i, column j and at row j, column i."""
    out = np.zeros(p.shape, dtype=np.bool_)
    pairs = ranked_pairs(p, LEAST)[:LISTED]
    rows, columns = [pair.cause for pair in pairs], [pair.effect for pair in pairs]
    out[rows, columns] = out[columns, rows] = True
    return out


def sparse_integers(p: Matrix, listed: Graph, unit: int) -> dict[str, list[int]]:
    """Return the listed entries in units of 1 / unit: places (row * d + column) and values."""
    at = np.flatnonzero(listed)
    return {"at": at.tolist(), "value": np.rint(p.reshape(-1)[at] * unit).astype(int).tolist()}


def wide_layout(p: Matrix, labels: list[str], threshold: float) -> GraphLayout:
    """Return positions in which the pairs drawn first are close together, and the causal order of all variables."""
    pairs = ranked_pairs(p, LEAST)[:DRAWN]
    first = np.zeros(p.shape)
    for pair in pairs:
        first[pair.cause, pair.effect] = p[pair.cause, pair.effect]
    drawn = layered(consensus(first, 0.0), labels)
    whole = nx.DiGraph()
    whole.add_nodes_from(range(len(p)))
    whole.add_edges_from(zip(*(index.tolist() for index in np.nonzero(consensus(p, threshold)))))
    return drawn._replace(order=[int(j) for j in nx.lexicographical_topological_sort(whole)])


def parent_sets_of_all(post: Posterior, top: int, least: float) -> list[list[Any]]:
    """Return for each node its most probable parent sets, as indices, with their probabilities."""
    packed = np.concatenate([
        np.packbits(np.ascontiguousarray(graph.T)[None], axis=2) for graph in post.graphs
    ])  # (m, node, bits of its parents)  # fmt: skip
    out = []
    for j in range(post.nodes):
        rows = np.ascontiguousarray(packed[:, j])
        keys, member = np.unique(rows.view(f"V{rows.shape[1]}")[:, 0], return_inverse=True)
        weight = np.bincount(member.reshape(-1), weights=post.weights)
        best = [k for k in np.argsort(-weight, kind="stable")[:top] if weight[k] >= least]
        sets = [np.flatnonzero(np.unpackbits(np.frombuffer(keys[k].tobytes(), np.uint8))).tolist() for k in best]
        out.append([[parents, round(float(weight[k]), 4)] for parents, k in zip(sets, best)])
    return out


def clusters_of(p: Matrix) -> list[list[int]]:
    """Return groups of densely joined variables (Louvain), the largest first; single variables are left out."""
    either = np.triu(adjacency(p), 1)
    rows, columns = np.nonzero(either >= CLUSTERED)
    graph = nx.Graph()
    graph.add_weighted_edges_from(zip(rows.tolist(), columns.tolist(), either[rows, columns].tolist()))
    found = [sorted(group) for group in nx.community.louvain_communities(graph, seed=0)]
    return sorted((group for group in found if len(group) > 1), key=lambda group: (-len(group), group))


def clusters_section(post: Posterior) -> str:
    """Return the clusters of a wide page, each closed until it is opened; nothing for other pages."""
    if not is_wide(post):
        return ""
    p = post.edge_marginals
    groups = clusters_of(p)
    items = "".join(_cluster(post.names, p, group) for group in groups[:MOST_CLUSTERS])
    left = len(groups) - MOST_CLUSTERS
    more = f"<p>… and {left} smaller ones.</p>" if left > 0 else ""
    text = (
        f"Groups of variables with many pairs inside them, adjacent with a probability of {CLUSTERED:g} or more "
        "(Louvain's method). Open one for its pairs."
    )
    return (
        '<section id="clusters" aria-labelledby="clusters-title"><h2 id="clusters-title">Clusters</h2>'
        f'<p class="small">{escape(text)}</p>{items or "<p>None.</p>"}{more}</section>'
    )


def _cluster(names: tuple[str, ...], p: Matrix, group: list[int]) -> str:
    """Return one cluster: its variable with most neighbours, its size, and its pairs."""
    inside = p[np.ix_(group, group)]
    pairs = ranked_pairs(inside, CLUSTERED)
    centre = names[group[int(adjacency(inside).sum(axis=1).argmax())]]
    lines = "".join(
        f"<li>{escape(names[group[k.cause]])} {'—' if k.is_open else '→'} {escape(names[group[k.effect]])} "
        f"({k.adjacency:.3f})</li>"
        for k in pairs[:MOST_LINES]
    )
    more = f"<li>… and {len(pairs) - MOST_LINES} more</li>" if len(pairs) > MOST_LINES else ""
    title = f"{len(group)} variables around {centre}, {len(pairs)} pairs"
    return f"<details><summary>{escape(title)}</summary><ul>{lines}{more}</ul></details>"
