"""Where the nodes of a DAG go: in rows, causes above effects, or on a circle, neighbours close together."""

from __future__ import annotations

import networkx as nx
import numpy as np

from dagpost.typing import Graph

SWEEPS = 12


def suits_rows(graph: Graph) -> bool:
    """Whether rows show it well: few edges, and not a ladder of single nodes."""
    d, edges = len(graph), int(graph.sum())
    return d <= 30 and edges <= 1.5 * d and nx.dag_longest_path_length(nx.DiGraph(graph)) <= 6


def circular(graph: Graph, weights: np.ndarray) -> np.ndarray:
    """Places on the unit circle, clockwise from the top, (d, 2); nodes tied by large weights come close together."""
    d = len(graph)
    net = nx.Graph()
    net.add_nodes_from(range(d))
    ties = np.triu(weights + weights.T, 1)
    net.add_weighted_edges_from((int(i), int(j), float(ties[i, j])) for i, j in zip(*np.nonzero(ties > 0.01)))
    order = nx.spectral_ordering(net, method="tracemin_lu", seed=0) if net.number_of_edges() else range(d)
    angles = np.empty(d)
    angles[list(order)] = np.pi / 2 - 2 * np.pi * np.arange(d) / d
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def layered(graph: Graph) -> np.ndarray:
    """A place (x, y) for every node: y is the depth below the roots, x follows the neighbours' mean, (d, 2).

    Layers are those of a topological sort; each is ordered by the mean place of its neighbours, over and over, which
    removes most crossings (Sugiyama, Tagawa and Toda, 1981). Nodes without edges share a row of their own at the end.
    """
    d = len(graph)
    linked = graph.any(axis=0) | graph.any(axis=1)
    net = nx.DiGraph(graph)
    net.remove_nodes_from(np.flatnonzero(~linked).tolist())
    layers = [sorted(layer) for layer in nx.topological_generations(net)]
    layers = _pulled_down(layers, graph)
    places = np.zeros((d, 2))
    for depth, layer in enumerate(layers):
        _spread(places, layer, depth)
    both = graph | graph.T
    for sweep in range(SWEEPS):
        for depth in range(len(layers)) if sweep % 2 else reversed(range(len(layers))):
            layer = layers[depth]
            wish = [places[both[node], 0].mean() if both[node].any() else 0.5 for node in layer]
            layers[depth] = [layer[k] for k in np.argsort(wish, kind="stable")]
            _spread(places, layers[depth], depth)
    alone = np.flatnonzero(~linked).tolist()
    _spread(places, alone, len(layers))
    return places


def _pulled_down(layers: list[list[int]], graph: Graph) -> list[list[int]]:
    """Roots sit just above their first child, not all in the first row."""
    depth = {node: k for k, layer in enumerate(layers) for node in layer}
    for layer in layers:
        for node in layer:
            children = np.flatnonzero(graph[node]).tolist()
            if children and not graph[:, node].any():
                depth[node] = min(depth[child] for child in children) - 1
    rows: list[list[int]] = [[] for _ in layers]
    for node in sorted(depth):
        rows[depth[node]].append(node)
    return [row for row in rows if row]


def _spread(places: np.ndarray, layer: list[int], depth: int) -> None:
    """Evenly over the width; every other row is shifted a little, so that no edge runs straight through a node."""
    for k, node in enumerate(layer):
        places[node] = (k + 0.5) / len(layer) + 0.06 * (-1) ** depth / max(len(layer), 2), -depth
