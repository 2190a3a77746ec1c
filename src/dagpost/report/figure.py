"""The report as one picture: the figures of `dagpost.plot` side by side, as far as the run has what they need."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dagpost import plot
from dagpost.errors import InputError
from dagpost.plot.canvas import has_matplotlib
from dagpost.plot.effects import chosen_effects
from dagpost.posterior import Effect, Posterior

LARGEST_GRAPH = 30
"""More nodes than this are shown as a heat map alone."""
SHOWN_EFFECTS = 8

__all__ = ["drawn", "edge_matrix", "has_matplotlib"]


def drawn(summary: dict[str, Any], post: Posterior | None = None) -> bytes:
    """The picture as PNG: graph and heat map; with the posterior, intervals and effects; with its course, evolution."""
    from matplotlib.figure import Figure

    panels = list(_panels(summary, post))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(7.0 * columns, 6.5 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, draw in zip(axes, panels):
        draw(ax)
    for ax in axes[len(panels) :]:
        ax.axis("off")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()


def _panels(summary: dict[str, Any], post: Posterior | None) -> list[Callable[[Any], Any]]:
    names = summary["names"]
    table = pd.DataFrame(edge_matrix(summary), index=names, columns=names)
    out: list[Callable[[Any], Any]] = []
    if len(names) <= LARGEST_GRAPH:
        out.append(lambda ax: plot.graph(table, ax))
    out.append(lambda ax: plot.heat_map(table, ax))
    if post is not None:
        out.append(lambda ax: plot.edge_intervals(post, ax))
        effects = largest_effects(post)
        if effects:
            out.append(lambda ax: plot.effects(effects, ax=ax))
    if summary.get("evolution"):
        out.append(lambda ax: plot.evolution(summary["evolution"], ax))
        out.append(lambda ax: plot.evolution(summary["evolution"], ax, show="particles"))
    return out


def largest_effects(post: Posterior) -> list[Effect]:
    """The effects with the largest means; none where the parameters are integrated out and the data not at hand."""
    if post.nodes < 2:
        return []
    try:
        return chosen_effects(post, None, SHOWN_EFFECTS)
    except InputError:
        return []


def edge_matrix(summary: dict[str, Any]) -> np.ndarray:
    """Edge probabilities; row i, column j for i -> j."""
    place = {name: i for i, name in enumerate(summary["names"])}
    out = np.zeros((len(place), len(place)))
    for edge in summary["edges"]:
        out[place[edge["cause"]], place[edge["effect"]]] = edge["probability"]
    return out
