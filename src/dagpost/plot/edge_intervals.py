"""Edge probabilities, and how far each may be off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dagpost.errors import whole_number
from dagpost.plot.canvas import BLUE, AsItIs, axes, edge_label, font_size
from dagpost.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    from dagpost.posterior.intervals import effective_draws

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
