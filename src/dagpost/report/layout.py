"""Where the nodes of the drawn graph stand: layers, so that likely edges point down, computed once and kept."""

from __future__ import annotations

import unicodedata
from importlib.util import find_spec
from typing import NamedTuple

import networkx as nx
import numpy as np
from jaxtyping import Float

from dagpost.posterior.features import consensus
from dagpost.typing import Graph, Matrix

LAID_OUT = 0.2
"""Edges above this probability take part in the layout, most probable first, as long as they close no cycle."""
LARGEST_FOR_DOT = 40
"""Graphviz keeps a lane free for every long edge, so its drawings of many nodes are too wide to read."""
LONGEST_LABEL = 18
GAP, ROW = 34.0, 92.0
DENSE_GAP, DENSE_ROW = 22.0, 64.0
"""Between neighbours and between rows; the dense ones for graphs that `by_layers` has to fold."""
WIDEST_ROW = 1300.0
SWEEPS = 12
LANDSCAPE, WIDEST = 1.4, 2.5
"""A narrow drawing is spread to this ratio of width to height, by this factor at most."""


class Layout(NamedTuple):
    """Centres of the nodes, their widths, and an order of the nodes in which causes come first."""

    x: Float[np.ndarray, " d"]
    y: Float[np.ndarray, " d"]
    width: Float[np.ndarray, " d"]
    order: list[int]


def label(name: str) -> str:
    """The name, cut to fit."""
    return name if len(name) <= LONGEST_LABEL else name[: LONGEST_LABEL - 1] + "…"


def laid_out(names: tuple[str, ...], probabilities: Matrix) -> Layout:
    """By Graphviz where it is installed and the graph is small, else by the layers of this file; always the same."""
    graph = consensus(probabilities, LAID_OUT)
    width = np.array([_width(label(name)) for name in names])
    joined = np.flatnonzero(graph.any(axis=0) | graph.any(axis=1))
    alone = np.setdiff1d(np.arange(len(names)), joined)
    x, y = np.zeros(len(names)), np.zeros(len(names))
    if len(joined):
        inner = graph[np.ix_(joined, joined)]
        use_dot = len(joined) <= LARGEST_FOR_DOT and find_spec("pygraphviz") is not None
        x[joined], y[joined] = (by_dot if use_dot else by_layers)(inner, width[joined])
        x[joined] *= np.clip(LANDSCAPE * np.ptp(y[joined]) / max(np.ptp(x[joined]), 1.0), 1.0, WIDEST)
    _rows_below(x, y, width, joined, alone)
    order = list(nx.lexicographical_topological_sort(nx.DiGraph(graph), key=lambda j: (y[j], x[j], j)))
    return Layout(x, y, width, [int(j) for j in order])


def _width(text: str) -> float:
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return max(44.0, 7.4 * (len(text) + wide) + 20.0)


def _rows_below(x: np.ndarray, y: np.ndarray, width: np.ndarray, joined: np.ndarray, alone: np.ndarray) -> None:
    """Nodes without a likely edge, in rows under the others."""
    span = max(np.ptp(x[joined]) if len(joined) else 0.0, 700.0)
    centre = (x[joined].min() + x[joined].max()) / 2 if len(joined) else 0.0
    per_row = max(1, int(span // (width[alone].max(initial=0.0) + GAP)))
    top = y[joined].max() + ROW if len(joined) else 0.0
    for k in range(0, len(alone), per_row):
        row = alone[k : k + per_row]
        step = width[row].max() + GAP
        x[row] = centre + step * (np.arange(len(row)) - (len(row) - 1) / 2)
        y[row] = top + ROW * 0.7 * (k // per_row)


# ---- Graphviz


def by_dot(graph: Graph, width: Float[np.ndarray, " d"]) -> tuple[np.ndarray, np.ndarray]:
    """Positions by `dot`; nodes go by number, so names never reach it."""
    import pygraphviz

    drawing = pygraphviz.AGraph(directed=True, strict=True)
    drawing.graph_attr.update(nodesep="0.35", ranksep="0.65")
    for j, w in enumerate(width):
        drawing.add_node(j, shape="box", fixedsize="true", width=f"{w / 72:.3f}", height="0.42", label="")
    drawing.add_edges_from([(int(i), int(j)) for i, j in zip(*np.nonzero(graph))])
    drawing.layout(prog="dot")
    texts: list[str] = [node.attr["pos"] for node in drawing.nodes()]  # type: ignore[attr-defined]
    places = np.array([[float(part) for part in text.split(",")] for text in texts])
    return places[:, 0], places[:, 1].max() - places[:, 1]


# ---- without it


def by_layers(graph: Graph, width: Float[np.ndarray, " d"]) -> tuple[np.ndarray, np.ndarray]:
    """Layers by longest path, ordered by barycentres in sweeps down and up; within a layer nodes stand as close to
    the mean of their neighbours as the others let them (isotonic regression)."""
    many = len(graph) > LARGEST_FOR_DOT
    gap, height = (DENSE_GAP, DENSE_ROW) if many else (GAP, ROW)
    fitting = int(WIDEST_ROW // (np.median(width) + gap))
    rows = _rows(graph, max(4, min(fitting, int(np.ceil(1.3 * np.sqrt(len(graph)))))))
    either = graph | graph.T
    x = np.zeros(len(graph))
    for row in rows:
        x[row] = _spread(np.arange(len(row), dtype=float), width[row], gap)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            wanted = np.array([x[either[j]].mean() for j in row])
            order = np.lexsort((row, wanted))
            row[:] = row[order]
            x[row] = _spread(wanted[order], width[row], gap)
    y = np.zeros(len(graph))
    for depth, row in enumerate(rows):
        y[row] = depth * height
    return x, y


def _rows(graph: Graph, most: int) -> list[np.ndarray]:
    """Topological generations, each node moved down to just above its first child; wide ones are folded."""
    children = nx.DiGraph(graph)
    depth = {j: k for k, layer in enumerate(nx.topological_generations(children)) for j in layer}
    for j in reversed(list(nx.topological_sort(children))):
        below = [depth[k] for k in children.successors(j)]
        if below:
            depth[j] = min(below) - 1
    rows: list[np.ndarray] = []
    for k in sorted(set(depth.values())):
        layer = np.array(sorted(j for j, at in depth.items() if at == k))
        rows += np.array_split(layer, -(-len(layer) // most))
    return rows


def _spread(wanted: Float[np.ndarray, " n"], width: Float[np.ndarray, " n"], gap: float) -> Float[np.ndarray, " n"]:
    """The places nearest to those wanted, in the same order, that leave a gap between neighbours."""
    from scipy.optimize import isotonic_regression

    apart = np.concatenate([[0.0], np.cumsum((width[:-1] + width[1:]) / 2 + gap)])
    return np.asarray(isotonic_regression(wanted - apart).x) + apart
