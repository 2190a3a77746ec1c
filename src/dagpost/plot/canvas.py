"""What all figures share: Axes to draw into, colours, labels, font sizes, and the places of the nodes of a graph.

Nodes of a DAG lie in layers, with causes above effects, or on a circle. Figures and the interactive report share the
layered layout. Its unit of length is a pixel of the report, where a node is 30 high and its label has 13-pixel letters;
y grows downwards. The same graph and labels always give the same positions, up to whether Graphviz is installed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx
import numpy as np
import pandas as pd
from jaxtyping import Float

from dagpost.data.slices import PAST, past_columns, variables_of
from dagpost.errors import InputError
from dagpost.posterior import Posterior
from dagpost.typing import Graph

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008): distinguishable with any kind of colour vision
BLUE, ORANGE, VERMILION, GREEN, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#777777",
)  # fmt: skip
ROUNDING = 1e-9
"""Tolerance by which a sum of weights may leave [0, 1]."""
LONGEST_LABEL = 18
"""Longest label in letters; longer names are cut."""
SMALLEST_FONT, LARGEST_FONT = 4.0, 10.0

PLAIN_TEXT: dict[str, Any] = {"parse_math": False}
"""Text properties for everything that shows a name: a dollar sign must not start a formula."""


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    if not has_matplotlib():
        raise InputError("figures need matplotlib: install it with pip install 'dagpost[report]'")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def label(name: str) -> str:
    """Return the name on one line, unprintable characters replaced, cut to `LONGEST_LABEL`; a past column stays one."""
    shown = "".join(c if c.isprintable() else "�" for c in name)
    if len(shown) > LONGEST_LABEL and shown.endswith(PAST):
        return shown[: LONGEST_LABEL - 1 - len(PAST)] + "…" + PAST
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def edge_label(cause: str, effect: str) -> str:
    """Return the label of an edge, made of those of its nodes."""
    return f"{label(cause)} → {label(effect)}"


def probabilities_of(source: Posterior | pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Return names and edge probabilities of a posterior, or of a labelled table such as `post.edge_probabilities`."""
    if isinstance(source, Posterior):
        return list(source.names), source.edge_marginals
    if not isinstance(source, pd.DataFrame) or list(source.index) != list(source.columns):
        raise InputError("give a posterior, or a table of edge probabilities with the same names as rows and columns")
    values = source.to_numpy(dtype=float)
    if not ((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all():
        raise InputError("edge probabilities must lie between 0 and 1")
    return [str(name) for name in source.columns], np.clip(values, 0.0, 1.0)


def font_size(count: int) -> float:
    """Return the font size in points for this many labels on one axis."""
    return float(np.clip(160 / max(count, 1), SMALLEST_FONT, LARGEST_FONT))


LARGEST_FOR_DOT = 40
"""Graphviz reserves a lane for every long edge, so its drawings of more nodes than this are too wide to read."""
GAP, ROW = 34.0, 92.0
"""Distance between neighbouring nodes in a row, and between rows."""
DENSE_GAP, DENSE_ROW = 22.0, 64.0
"""The same for graphs with more than `LARGEST_FOR_DOT` nodes."""
WIDEST_ROW = 1300.0
"""Width beyond which a layer is split into several rows."""
SWEEPS = 12
"""Passes over the rows to order their nodes."""
LANDSCAPE, WIDEST_STRETCH = 1.4, 2.5
"""A narrow drawing is stretched to this ratio of width to height, at most by this factor."""
ISOLATED_WIDTH = 700.0
"""Least width of the rows of nodes without edges."""
LARGEST_IN_ROWS, DEEPEST_IN_ROWS, DENSEST_IN_ROWS = 30, 6, 1.5
"""Most nodes, longest path and most edges per node of a graph that layers show well."""

ELLIPSE = 1.25
"""Width of an ellipse around a label, as a multiple of that of a box."""


class GraphLayout(NamedTuple):
    """Positions of the nodes of a drawing.

    Attributes
    ----------
    x
        Horizontal centres of the nodes.
    y
        Vertical centres, growing downwards.
    width
        Widths of the nodes, which depend on their labels.
    order
        Node indices with causes before effects, from top to bottom where the graph leaves a choice.
    """

    x: Float[np.ndarray, " d"]
    y: Float[np.ndarray, " d"]
    width: Float[np.ndarray, " d"]
    order: list[int]


def suits_layers(graph: Graph) -> bool:
    """Return whether layers show the graph well: few nodes, few edges and no long path."""
    d, edges = len(graph), int(graph.sum())
    if d > LARGEST_IN_ROWS or edges > DENSEST_IN_ROWS * d:
        return False
    return nx.dag_longest_path_length(nx.DiGraph(graph)) <= DEEPEST_IN_ROWS


def circular(weights: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "d 2"]:
    """Return positions on the unit circle, clockwise from the top; large weights bring nodes close together."""
    d = len(weights)
    net = nx.Graph()
    net.add_nodes_from(range(d))
    ties = np.triu(weights + weights.T, 1)
    net.add_weighted_edges_from((int(i), int(j), float(ties[i, j])) for i, j in zip(*np.nonzero(ties > 0.01)))
    order = nx.spectral_ordering(net, method="tracemin_lu", seed=0) if net.number_of_edges() else range(d)
    angles = np.empty(d)
    angles[list(order)] = np.pi / 2 - 2 * np.pi * np.arange(d) / d
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def layered(graph: Graph, labels: Sequence[str]) -> GraphLayout:
    """Place the nodes of a DAG in layers, every cause above its effects, without overlaps.

    Graphviz places them where it is installed and the graph is small, `by_layers` otherwise. Nodes without edges form
    rows of their own below the others.

    Parameters
    ----------
    graph
        Adjacency matrix of a DAG.
    labels
        Texts shown in the nodes; they determine the widths.

    Returns
    -------
    GraphLayout
        Positions, widths and a causal order of the nodes.
    """
    width = np.array([_node_width(text) for text in labels])
    linked = graph.any(axis=0) | graph.any(axis=1)
    joined, isolated = np.flatnonzero(linked), np.flatnonzero(~linked)
    x, y = np.zeros(len(graph)), np.zeros(len(graph))
    if len(joined):
        use_dot = len(joined) <= LARGEST_FOR_DOT and find_spec("pygraphviz") is not None
        place = by_dot if use_dot else by_layers
        x[joined], y[joined] = place(graph[np.ix_(joined, joined)], width[joined])
        x[joined] *= np.clip(LANDSCAPE * np.ptp(y[joined]) / max(np.ptp(x[joined]), 1.0), 1.0, WIDEST_STRETCH)
    _place_isolated(x, y, width, joined, isolated)
    order = nx.lexicographical_topological_sort(nx.DiGraph(graph), key=lambda j: (y[j], x[j], j))
    return GraphLayout(x, y, width, [int(j) for j in order])


SLICE_GAP, STAGGER = 260.0, 70.0
"""Distance between the columns of two time slices, and the offset of every other node in the present, so that edges
between its neighbours' neighbours pass beside the node between them."""


def has_slices(names: Sequence[str]) -> bool:
    """Return whether the names are those of two time slices, `x` and `x[t-1]`."""
    past = past_columns(names)
    return bool(past.any() and not past.all())


def two_slices(graph: Graph, names: Sequence[str]) -> GraphLayout:
    """Return positions of two time slices: the past in a column on the left, the present in one on the right.

    A variable has the same height in both; causes within the present are above their effects.

    Parameters
    ----------
    graph
        A DAG.
    names
        Names of the nodes.
    """
    past, variable = past_columns(names), variables_of(names)
    order = [int(j) for j in nx.lexicographical_topological_sort(nx.DiGraph(graph), key=lambda j: (not past[j], j))]
    rows = list(dict.fromkeys(variable[j] for j in order if not past[j]))
    rows += [k for k in dict.fromkeys(variable.tolist()) if k not in rows]  # a past without a present
    row = np.array([rows.index(k) for k in variable])
    width = np.array([_node_width(label(name)) for name in names])
    apart = SLICE_GAP + (width[past].max() + width[~past].max()) / 2
    x = np.where(past, 0.0, apart + STAGGER * (row % 2))
    return GraphLayout(x, ROW * 0.8 * row, width, order)


def with_conditions(layout: GraphLayout, labels: Sequence[str], weights: Float[np.ndarray, "k d"]) -> GraphLayout:
    """Return the layout with conditions in rows above it, each near the nodes that it changes; no other node moves.

    Parameters
    ----------
    layout
        Positions of the nodes.
    labels
        Texts shown in the conditions.
    weights
        Weight of each node (column) for the place of each condition (row); those without any stand last.
    """
    count, total = len(labels), weights.sum(axis=1)
    if not count:
        return layout
    width = np.array([ELLIPSE * _node_width(text) for text in labels])
    near = np.where(total > 0, weights @ layout.x / np.where(total > 0, total, 1.0), layout.x.max())
    order = np.lexsort((np.arange(count), near, total == 0))
    span = max(float(np.ptp(layout.x)), ISOLATED_WIDTH)
    rows = np.array_split(order, min(count, int(np.ceil((width + GAP).sum() / span))))
    x, y = np.zeros(count), np.zeros(count)
    for above, row in enumerate(rows[::-1], start=1):
        x[row] = _spread(near[row], width[row], GAP)
        y[row] = layout.y.min() - ROW * above
    return GraphLayout(
        np.concatenate([layout.x, x]),
        np.concatenate([layout.y, y]),
        np.concatenate([layout.width, width]),
        [*(order + len(layout.x)).tolist(), *layout.order],
    )


def _node_width(text: str) -> float:
    """Return the width of a node with this label; East Asian wide letters count twice."""
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    return max(44.0, 7.4 * (len(text) + wide) + 20.0)


def _place_isolated(x: np.ndarray, y: np.ndarray, width: np.ndarray, joined: np.ndarray, isolated: np.ndarray) -> None:
    """Set the positions of the nodes without edges, in rows below the others."""
    span = max(np.ptp(x[joined]) if len(joined) else 0.0, ISOLATED_WIDTH)
    centre = (x[joined].min() + x[joined].max()) / 2 if len(joined) else 0.0
    per_row = max(1, int(span // (width[isolated].max(initial=0.0) + GAP)))
    top = y[joined].max() + ROW if len(joined) else 0.0
    for k in range(0, len(isolated), per_row):
        row = isolated[k : k + per_row]
        step = width[row].max() + GAP
        x[row] = centre + step * (np.arange(len(row)) - (len(row) - 1) / 2)
        y[row] = top + ROW * 0.7 * (k // per_row)


def by_dot(graph: Graph, width: Float[np.ndarray, " d"]) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y as Graphviz's `dot` computes them; nodes are passed by number, so names never reach it."""
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


def by_layers(graph: Graph, width: Float[np.ndarray, " d"]) -> tuple[np.ndarray, np.ndarray]:
    """Return x and y without Graphviz.

    Layers follow the longest paths. Sweeps down and up order each row by the mean position of the neighbours, which
    removes most crossings (Sugiyama, Tagawa and Toda, 1981); within a row nodes stand as close to that mean as the
    others let them (isotonic regression).
    """
    dense = len(graph) > LARGEST_FOR_DOT
    gap, height = (DENSE_GAP, DENSE_ROW) if dense else (GAP, ROW)
    fitting = int(WIDEST_ROW // (np.median(width) + gap))
    rows = _rows(graph, max(4, min(fitting, int(np.ceil(1.3 * np.sqrt(len(graph)))))))
    neighbours = graph | graph.T
    x = np.zeros(len(graph))
    for row in rows:
        x[row] = _spread(np.arange(len(row), dtype=float), width[row], gap)
    for sweep in range(SWEEPS):
        for row in rows if sweep % 2 == 0 else rows[::-1]:
            means = np.array([x[neighbours[j]].mean() for j in row])
            order = np.lexsort((row, means))
            row[:] = row[order]
            x[row] = _spread(means[order], width[row], gap)
    y = np.zeros(len(graph))
    for depth, row in enumerate(rows):
        y[row] = depth * height
    return x, y


def _rows(graph: Graph, longest: int) -> list[np.ndarray]:
    """Return topological generations, each node moved down to just above its first child, wide ones split."""
    net = nx.DiGraph(graph)
    depth = {j: k for k, layer in enumerate(nx.topological_generations(net)) for j in layer}
    for j in reversed(list(nx.topological_sort(net))):
        below = [depth[k] for k in net.successors(j)]
        if below:
            depth[j] = min(below) - 1
    rows: list[np.ndarray] = []
    for k in sorted(set(depth.values())):
        layer = np.array(sorted(j for j, at in depth.items() if at == k))
        rows += np.array_split(layer, -(-len(layer) // longest))
    return rows


def _spread(target: Float[np.ndarray, " n"], width: Float[np.ndarray, " n"], gap: float) -> Float[np.ndarray, " n"]:
    """Return the positions nearest to the target in least squares that keep its order and a gap between neighbours."""
    from scipy.optimize import isotonic_regression

    apart = np.concatenate([[0.0], np.cumsum((width[:-1] + width[1:]) / 2 + gap)])
    return np.asarray(isotonic_regression(target - apart).x) + apart
