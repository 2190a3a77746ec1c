"""The report as a picture: the likely edges as a graph, and all edge probabilities as a heat map."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any

import networkx as nx
import numpy as np

from dagpost.posterior.consensus import consensus

LARGEST_GRAPH = 30
"""More nodes than this are shown as a heat map alone."""


def has_matplotlib() -> bool:
    return find_spec("matplotlib") is not None


def drawn(summary: dict[str, Any]) -> bytes:
    """The picture as PNG."""
    from matplotlib.figure import Figure

    names = [_label(name) for name in summary["names"]]
    probabilities = edge_matrix(summary)
    both = len(names) <= LARGEST_GRAPH
    figure = Figure(figsize=(13 if both else 8, 6.5), layout="constrained")
    axes = figure.subplots(1, 2 if both else 1, squeeze=False)[0]
    _heat_map(axes[-1], figure, names, probabilities)
    if both:
        _graph(axes[0], names, probabilities)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=150)
    return out.getvalue()


def edge_matrix(summary: dict[str, Any]) -> np.ndarray:
    """Edge probabilities; row i, column j for i -> j."""
    place = {name: i for i, name in enumerate(summary["names"])}
    out = np.zeros((len(place), len(place)))
    for edge in summary["edges"]:
        out[place[edge["cause"]], place[edge["effect"]]] = edge["probability"]
    return out


def _label(name: str) -> str:
    """The name without mathematics, cut to fit."""
    return (name if len(name) <= 18 else name[:17] + "…").replace("$", r"\$")


def _heat_map(axes: Any, figure: Any, names: list[str], probabilities: np.ndarray) -> None:
    image = axes.imshow(probabilities, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, ax=axes, shrink=0.8, label="probability")
    size = 9 if len(names) <= 30 else 5
    axes.set_xticks(range(len(names)), names, rotation=90, fontsize=size)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_xlabel("effect")
    axes.set_ylabel("cause")
    axes.set_title("Edge probabilities")


def _graph(axes: Any, names: list[str], probabilities: np.ndarray) -> None:
    graph = nx.DiGraph(consensus(probabilities, np.nextafter(0.5, 0)))  # an edge of one half is drawn
    places = {}
    for depth, layer in enumerate(nx.topological_generations(graph)):
        for k, node in enumerate(sorted(layer)):
            # shifted a little by depth, so that edges over several layers do not run through nodes
            places[node] = ((k + 1) / (len(layer) + 1) + 0.03 * (-1) ** depth, -depth)
    for cause, effect in graph.edges:
        p = probabilities[cause, effect]
        arrow = {"arrowstyle": "-|>", "alpha": float(p), "lw": 1.2, "shrinkA": 12, "shrinkB": 12, "color": "tab:blue"}
        axes.annotate("", xy=places[effect], xytext=places[cause], arrowprops=arrow)
    for node, (x, y) in places.items():
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": "0.6"}
        axes.text(x, y, names[node], ha="center", va="center", fontsize=9, bbox=box)
    axes.set_xlim(-0.05, 1.05)
    axes.set_ylim(min(y for _, y in places.values()) - 0.5, 0.5)
    axes.axis("off")
    axes.set_title("Edges more probable than not")
