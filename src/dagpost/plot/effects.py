"""Posteriors of average causal effects as densities with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dagpost.errors import InputError, whole_number
from dagpost.plot.canvas import BLUE, PLAIN_TEXT, SKY, VERMILION, axes, edge_label, font_size
from dagpost.posterior import Effect, Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 40
"""Bins of each density."""


def effects(
    source: Posterior | Sequence[Effect], pairs: Sequence[tuple[str | int, str | int]] | None = None,
    ax: Axes | None = None, *, top: int = 8, level: float = 0.9, seed: int = 0,
) -> Axes:  # fmt: skip
    """Draw the posterior of average causal effects, with the probability that there is no effect.

    The density is that of the draws that are not zero, each to its own scale and lower where an effect is less
    probable. Dot and bar are mean and central interval of the whole posterior, zero included.

    Parameters
    ----------
    source
        A posterior, or effects that were computed before, such as `[post.effect("a", "b")]`.
    pairs
        Pairs (cause, effect) by name or index; by default the effects with the largest means, in standard deviations
        of the columns where those are known.
    ax
        Axes to draw into; a new figure by default.
    top
        Number of effects where no pairs are given.
    level
        Probability of the intervals, between 0 and 1.
    seed
        Seed of the draws.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.
    """
    if isinstance(source, Posterior):
        shown = select_effects(source, pairs, top, level, seed)
    else:
        shown = list(source)
        if not shown or not all(isinstance(e, Effect) for e in shown):
            raise InputError("give a posterior, or a list of effects such as [post.effect('a', 'b')]")
    ax = axes(ax, 7, float(np.clip(0.6 * len(shown) + 1.2, 2.5, 14)))
    for row, effect in enumerate(shown):
        nonzero = effect.draws != 0
        if nonzero.any():
            density, edges = np.histogram(effect.draws[nonzero], BINS, weights=effect.weights[nonzero])
            height = 0.75 * density / density.max() * np.sqrt(1 - effect.zero)
            ax.stairs(row - height, edges, baseline=row, fill=True, color=SKY, alpha=0.6)
        ax.plot(effect.interval, [row, row], color=BLUE, linewidth=2, solid_capstyle="round")
        ax.plot([effect.mean], [row], "o", color=BLUE, markersize=4)
        if effect.zero >= 0.005:
            note = f"none: {effect.zero:.2f}"
            ax.text(1.0, row - 0.12, note, transform=ax.get_yaxis_transform(), color=VERMILION, fontsize=8, ha="right")
    ax.axvline(0, color="0.6", linewidth=0.8, zorder=0)
    names = [edge_label(e.cause, e.effect) for e in shown]
    ax.set_yticks(range(len(shown)), names, fontsize=font_size(2 * len(shown)), **PLAIN_TEXT)
    ax.set_ylim(len(shown) - 0.6, -1)
    ax.set_xlabel("average causal effect, per unit of the cause")
    ax.set_title(f"Causal effects: mean and {shown[0].level:.0%} interval", fontsize=11)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def select_effects(
    post: Posterior, pairs: Sequence[tuple[str | int, str | int]] | None, top: int, level: float = 0.9, seed: int = 0
) -> list[Effect]:
    """Return the effects of these pairs, or the `top` largest in standard deviations of their columns."""
    if pairs is None:
        sizes = np.abs(post.effects(seed=seed, units="fitted").to_numpy())
        if post.scaling is None and post.data is not None:
            spread = post.data.values.std(axis=0)
            sizes = sizes * spread[:, None] / spread[None, :]
        np.fill_diagonal(sizes, -1.0)
        order = np.argsort(-sizes, axis=None, kind="stable")[: whole_number("top", top, least=1)]
        pairs = [divmod(int(k), post.nodes) for k in order if sizes.flat[k] >= 0]
    if not pairs:
        raise InputError("pairs=[]: give at least one pair of (cause, effect)")
    return [post.effect(cause, effect, level=level, seed=seed) for cause, effect in pairs]
