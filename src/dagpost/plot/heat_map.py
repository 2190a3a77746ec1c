"""All edge probabilities at a glance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dagpost.plot.canvas import AsItIs, axes, font_size, label, probabilities_of
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
