"""Edge probabilities as a heat map, and as intervals that show how far each may be off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dagpost.errors import whole_number
from dagpost.plot.canvas import BLUE, AsItIs, axes, edge_label, font_size, label, probabilities_of
from dagpost.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WRITTEN_UP_TO = 12
"""Nodes up to which probabilities are written into the cells."""


def heat_map(source: Posterior | pd.DataFrame, ax: Axes | None = None, *, written: bool | None = None) -> Axes:
    """Row i, column j: the probability of i -> j, or any other labelled table of probabilities.

    `written` puts the numbers into the cells; by default up to twelve nodes. Ancestors instead of edges:
    `dp.plot.heat_map(post.ancestor_probabilities)`.
    """
    names, probabilities = probabilities_of(source)
    d = len(names)
    side = float(np.clip(0.45 * d + 2, 4, 12))
    ax = axes(ax, side + 1, side)
    image = ax.imshow(probabilities, cmap="Blues", vmin=0, vmax=1)
    bar = ax.get_figure(root=True).colorbar(image, ax=ax, shrink=0.8, label="probability")  # type: ignore[union-attr]
    bar.outline.set_visible(False)
    shown, size = [label(name) for name in names], font_size(d)
    ax.set_xticks(range(d), shown, rotation=90, fontsize=size, **AsItIs)
    ax.set_yticks(range(d), shown, fontsize=size, **AsItIs)
    ax.tick_params(length=0)
    ax.set_xlabel("effect")
    ax.set_ylabel("cause")
    ax.set_title("Edge probabilities")
    if d <= WRITTEN_UP_TO if written is None else written:
        for i, j in zip(*np.nonzero(probabilities >= 0.005)):
            p = probabilities[i, j]
            text = f"{p:.2f}".removeprefix("0")
            ax.text(j, i, text, ha="center", va="center", fontsize=0.8 * size, color="white" if p > 0.6 else "black")
    return ax


SAID = {
    "exact": "exact, no Monte Carlo error",
    "chains": "{level:.0%} Monte Carlo interval, from batch means of the chains",
    "graphs": "{level:.0%} Wilson interval, {draws:.0f} effective draws",
}


def edge_intervals(post: Posterior, ax: Axes | None = None, *, top: int = 25, level: float = 0.9) -> Axes:
    """The `top` most probable edges with the Monte Carlo interval of each probability.

    The interval says how far the number may be off because it was sampled; the title says where it comes from:
    nothing where the posterior is exact, the standard error that batch means of the chains give, or, for a weighted
    set of graphs such as DiBS particles, Wilson's interval for as many draws as the weights are worth.
    """
    from dagpost.posterior.features import effective_draws

    table = post.edge_intervals(level).head(whole_number("top", top, least=1))
    count = len(table)
    ax = axes(ax, 6, float(np.clip(0.24 * count + 1.2, 3, 14)))
    p, rows = table.probability.to_numpy(), np.arange(count)
    reach = np.maximum(np.stack([p - table.lower.to_numpy(), table.upper.to_numpy() - p]), 0.0)
    ax.errorbar(p, rows, xerr=reach, fmt="o", color=BLUE, ecolor=BLUE, elinewidth=1.4, capsize=2.5, markersize=4)
    ax.axvline(0.5, color="0.8", linewidth=0.8, zorder=0)
    shown = [edge_label(cause, effect) for cause, effect in zip(table.cause, table.effect)]
    ax.set_yticks(rows, shown, fontsize=font_size(count), **AsItIs)
    ax.set_ylim(count - 0.4, -0.6)
    ax.set_xlim(-0.02, 1.02)
    ax.set_xlabel("probability")
    source = table.attrs["source"]
    ax.set_title("Edge probabilities\n" + SAID[source].format(level=level, draws=effective_draws(post)), fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    return ax
