"""The report as one PNG: those figures of `dagpost.plot` that a run has the data for, side by side."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from dagpost import plot
from dagpost.errors import InputError
from dagpost.plot.charts import select_effects
from dagpost.posterior import Effect, Posterior

LARGEST_GRAPH = 100
"""Most nodes for which the graph is drawn beside the heat map."""
SHOWN_EFFECTS = 8
"""Number of effects shown."""


def png_report(summary: dict[str, Any], post: Posterior | None = None) -> bytes:
    """Return the figures of a run as one PNG file.

    Parameters
    ----------
    summary
        Summary of the run, with at least `names` and `edges`; `evolution` adds the course of a DiBS run.
    post
        The posterior; with it, intervals and effects are drawn as well.

    Returns
    -------
    bytes
        The PNG file.
    """
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
    """Return for each panel a function that draws it into given Axes."""
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
    """Return the effects with the largest means; none where drawing the parameters needs data that are missing."""
    if post.nodes < 2:
        return []
    try:
        return select_effects(post, None, SHOWN_EFFECTS)
    except InputError:
        return []


def edge_matrix(summary: dict[str, Any]) -> np.ndarray:
    """Return the edge probabilities of a summary; row i, column j for i -> j."""
    index = {name: i for i, name in enumerate(summary["names"])}
    out = np.zeros((len(index), len(index)))
    for edge in summary["edges"]:
        out[index[edge["cause"]], index[edge["effect"]]] = edge["probability"]
    return out
