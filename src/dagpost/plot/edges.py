"""Edge probabilities as a heat map, and with their Monte Carlo intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dagpost.errors import whole_number
from dagpost.plot.canvas import BLUE, PLAIN_TEXT, axes, edge_label, font_size, label, probabilities_of
from dagpost.posterior import Posterior
from dagpost.posterior.features import effective_draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_WITH_NUMBERS = 12
"""Most nodes for which probabilities are written into the cells by default."""
INTERVAL_NOTES = {
    "exact": "exact, no Monte Carlo error",
    "chains": "{level:.0%} Monte Carlo interval, from batch means of the chains",
    "graphs": "{level:.0%} Wilson interval, {draws:.0f} effective draws",
}
"""Title line of `edge_intervals` for each source of the intervals."""


def heat_map(source: Posterior | pd.DataFrame, ax: Axes | None = None, *, written: bool | None = None) -> Axes:
    """Draw edge probabilities as a heat map: row i, column j holds the probability of i -> j.

    `dp.plot.heat_map(post.ancestor_probabilities)` shows ancestors instead of edges.

    Parameters
    ----------
    source
        A posterior, or any table of probabilities with the same names as rows and columns.
    ax
        Axes to draw into; a new figure by default.
    written
        Whether to write the numbers into the cells; by default for up to 12 nodes.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.
    """
    names, probabilities = probabilities_of(source)
    d = len(names)
    side = float(np.clip(0.45 * d + 2, 4, 12))
    ax = axes(ax, side + 1, side)
    image = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1)
    bar = ax.get_figure(root=True).colorbar(image, ax=ax, shrink=0.8, label="probability")  # type: ignore[union-attr]
    bar.outline.set_visible(False)
    shown, size = [label(name) for name in names], font_size(d)
    ax.set_xticks(range(d), shown, rotation=90, fontsize=size, **PLAIN_TEXT)
    ax.set_yticks(range(d), shown, fontsize=size, **PLAIN_TEXT)
    ax.tick_params(length=0)
    ax.set_xlabel("effect")
    ax.set_ylabel("cause")
    ax.set_title("Edge probabilities")
    if d <= LARGEST_WITH_NUMBERS if written is None else written:
        for i, j in zip(*np.nonzero(probabilities >= 0.005)):
            p = probabilities[i, j]
            text = f"{p:.2f}".removeprefix("0")
            ax.text(j, i, text, ha="center", va="center", fontsize=0.8 * size, color="white" if p > 0.6 else "black")
    return ax


def edge_intervals(post: Posterior, ax: Axes | None = None, *, top: int = 25, level: float = 0.9) -> Axes:
    """Draw the most probable edges with the Monte Carlo interval of each probability.

    The interval is the sampling error of the number, and the title says how it was computed: it has no width for an
    exact posterior, follows from batch means for chains, and is Wilson's interval at the effective sample size for a
    weighted set of graphs such as DiBS particles.

    Parameters
    ----------
    post
        The posterior.
    ax
        Axes to draw into; a new figure by default.
    top
        Number of edges.
    level
        Probability of the intervals, between 0 and 1.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.
    """
    table = post.edge_intervals(level).head(whole_number("top", top, least=1))
    count = len(table)
    ax = axes(ax, 6, float(np.clip(0.24 * count + 1.2, 3, 14)))
    p, rows = table.probability.to_numpy(), np.arange(count)
    reach = np.maximum(np.stack([p - table.lower.to_numpy(), table.upper.to_numpy() - p]), 0.0)
    ax.errorbar(p, rows, xerr=reach, fmt="o", color=BLUE, ecolor=BLUE, elinewidth=1.4, capsize=2.5, markersize=4)
    ax.axvline(0.5, color="0.8", linewidth=0.8, zorder=0)
    shown = [edge_label(cause, effect) for cause, effect in zip(table.cause, table.effect)]
    ax.set_yticks(rows, shown, fontsize=font_size(count), **PLAIN_TEXT)
    ax.set_ylim(count - 0.4, -0.6)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("probability")
    source = table.attrs["source"]
    note = INTERVAL_NOTES[source].format(level=level, draws=effective_draws(post))
    ax.set_title(f"Edge probabilities\n{note}", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
