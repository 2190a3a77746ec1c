"""Charts of edge probabilities (as a heat map, with Monte Carlo intervals), effects, functions of edges, DiBS runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dagpost.design import NextExperiment
from dagpost.errors import InputError, nearest, whole_number
from dagpost.inference.history import TOP, History
from dagpost.plot.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PLAIN_TEXT,
    PURPLE,
    SKY,
    VERMILION,
    axes,
    edge_label,
    font_size,
    label,
    probabilities_of,
)
from dagpost.posterior import Curve, Effect, Posterior
from dagpost.posterior.effects import Units
from dagpost.posterior.features import effective_draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LARGEST_WITH_NUMBERS = 12
"""Most nodes for which probabilities are written into the cells by default."""
LARGEST_WITH_NAMES = 200
"""Most nodes whose names stand beside a heat map."""
INTERVAL_NOTES = {
    "exact": "exact, no Monte Carlo error",
    "orders": "{level:.0%} Monte Carlo interval, from independent draws",
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
        Whether to write the numbers into the cells; by default for up to 12 nodes. More than 200 nodes are numbered
        in place of their names.

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
    if d <= LARGEST_WITH_NAMES:
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
    """Return the effects of these pairs, or the `top` largest, in standard deviations of columns or probabilities."""
    if pairs is None:
        sizes = np.abs(post.effects(seed=seed, units="fitted").to_numpy())
        if post.scaling is None and post.data is not None and not (post.model.categorical or post.model.latent):
            spread = np.nanstd(post.data.values, axis=0)
            sizes = sizes * spread[:, None] / spread[None, :]
        np.fill_diagonal(sizes, -1.0)
        order = np.argsort(-sizes, axis=None, kind="stable")[: whole_number("top", top, least=1)]
        pairs = [divmod(int(k), post.nodes) for k in order if sizes.flat[k] >= 0]
    if not pairs:
        raise InputError("pairs=[]: give at least one pair of (cause, effect)")
    return [post.effect(cause, effect, level=level, seed=seed) for cause, effect in pairs]


MOST_MARKS = 500
"""Most values of the cause that are marked on its axis."""


def mechanism(
    source: Posterior | Curve, cause: str | int | None = None, effect: str | int | None = None, ax: Axes | None = None,
    *, level: float = 0.9, draws: int = 200, seed: int = 0, units: Units = "raw",
) -> Axes:  # fmt: skip
    """Draw the function of an edge with its band, or any other curve, such as a total effect.

    Line and band are mean and pointwise interval over the posterior. Short lines at the axis mark values of the cause
    in the data, where they are at hand. The title has the probability of the edge (of a path for a total effect).

    Parameters
    ----------
    source
        A posterior, or a curve that was computed before: `post.mechanism("a", "b")` or `post.effect_curve("a", "b")`.
    cause, effect
        Names or positions of two nodes, for a posterior.
    ax
        Axes to draw into; a new figure by default.
    level
        Probability of the band at each value.
    draws
        Number of draws.
    seed
        Seed of the draws.
    units
        "raw" or "fitted", as in `post.mechanism`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.
    """
    if isinstance(source, Posterior) and cause is not None and effect is not None:
        source = source.mechanism(cause, effect, level=level, draws=draws, seed=seed, units=units)
    if not isinstance(source, Curve) or len(source.values) < 2:
        raise InputError("give a posterior with cause and effect, or a curve such as post.mechanism('a', 'b')")
    ax = axes(ax, 5, 4)
    order = np.argsort(source.values)
    values = source.values[order]
    ax.fill_between(values, source.lower[order], source.upper[order], color=SKY, alpha=0.45, linewidth=0)
    ax.plot(values, source.mean[order], color=BLUE, linewidth=2)
    marks, bottom = source.marks(MOST_MARKS), ax.get_xaxis_transform()
    ax.plot(marks, np.full(len(marks), 0.015), "|", color="0.45", markersize=5, alpha=0.5, transform=bottom)
    direct, shown = source.kind == "direct", label(source.effect)
    if direct:
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    ax.set_xlabel(label(source.cause) if direct else f"{label(source.cause)}, set by intervention", **PLAIN_TEXT)
    ax.set_ylabel(f"contribution to {shown}" if direct else f"expected {shown}", **PLAIN_TEXT)
    what = f"{'edge' if direct else 'path'} with probability {source.probability:.2f}"
    title = f"{edge_label(source.cause, source.effect)}\n{what}, {source.level:.0%} band"
    ax.set_title(title, fontsize=11, **PLAIN_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def experiments(found: NextExperiment, ax: Axes | None = None, *, top: int = 25) -> Axes:
    """Draw the expected information gain of experiments with two standard errors, the best first.

    Parameters
    ----------
    found
        What `dp.next_experiment` returned.
    ax
        Axes to draw into; a new figure by default.
    top
        Number of candidates.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.
    """
    if not isinstance(found, NextExperiment):
        raise InputError("give a ranking of experiments, such as dp.next_experiment(post)")
    table = found.table.head(whole_number("top", top, least=1))
    count = len(table)
    ax = axes(ax, 6, float(np.clip(0.28 * count + 1.4, 2.5, 14)))
    chosen = table["experiment"].isin(found.batch["experiment"])
    ax.barh(range(count), table["gain"], color=[BLUE if one else SKY for one in chosen], height=0.7)
    ax.errorbar(table["gain"], range(count), xerr=2 * table["error"], fmt="none", ecolor="0.25", capsize=2.5)
    shown = [" + ".join(label(name) for name in text.split(" + ")) for text in table["experiment"]]
    ax.set_yticks(range(count), shown, fontsize=font_size(count), **PLAIN_TEXT)
    ax.set_ylim(count - 0.4, -0.6)
    what = "the graph" if found.about is None else edge_label(*found.about)
    ax.set_xlabel("expected information gain, nats")
    ax.set_title(f"The next experiment: {found.rows} rows, about {what}", fontsize=11, **PLAIN_TEXT)
    ax.spines[["top", "right"]].set_visible(False)
    return ax


Show = Literal["probabilities", "particles", "temperatures"]
SHOWS = ("probabilities", "particles", "temperatures")
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, SKY, GREY)


def evolution(
    history: History | Mapping[str, Any], ax: Axes | None = None, *, names: Sequence[str] | None = None,
    show: Show = "probabilities", top: int = TOP,
) -> Axes:  # fmt: skip
    """Draw how a DiBS run evolved, as recorded by `dp.fit(..., callback=dp.History())`.

    Parameters
    ----------
    history
        The recorded history, or its `summary`.
    ax
        Axes to draw into; a new figure by default.
    names
        Column names, usually `post.names`; x0, x1, ... by default. A summary has its own.
    show
        "probabilities" (of the most probable edges, and the share of cyclic particles), "particles" (number of edges
        of each particle) or "temperatures" (alpha and beta).
    top
        Number of edges, those most probable at the end.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.
    """
    if show not in SHOWS:
        raise InputError(f"unknown show={show!r}: {nearest(str(show), SHOWS)}")
    record = history
    if isinstance(history, History):
        d = history.edge_probabilities.shape[-1] if len(history) else 0
        record = history.summary(names or [f"x{j}" for j in range(d)], top)
    ax = axes(ax, 7, 4)
    step = np.asarray(record["step"])  # type: ignore[index]
    {"probabilities": _probabilities, "particles": _particles, "temperatures": _temperatures}[show](ax, step, record)
    ax.set_xlabel("step of DiBS")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def _probabilities(ax: Axes, step: np.ndarray, record: Any) -> None:
    """Draw the probability of each edge and the share of cyclic particles."""
    styles = ("-", "--", ":")
    for k, edge in enumerate(record["edges"]):
        color, style = COLOURS[k % len(COLOURS)], styles[k // len(COLOURS) % len(styles)]
        name = edge_label(edge["cause"], edge["effect"])
        ax.plot(step, edge["probability"], color=color, linestyle=style, linewidth=1.3, label=name)
    particles = len(record["particle_edges"][0])
    share = np.asarray(record["cyclic"]) / particles
    ax.plot(step, share, color=VERMILION, linewidth=2.5, alpha=0.6, label="share of cyclic particles")
    ax.set_ylim(-0.02, 1.02)
    ax.set_ylabel("probability")
    ax.set_title(f"Edge probabilities of {particles} particles", fontsize=11)
    legend = ax.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    for text in legend.get_texts():
        text.set(**PLAIN_TEXT)


def _particles(ax: Axes, step: np.ndarray, record: Any) -> None:
    """Draw the number of edges of each particle, its mean and the number of cyclic particles."""
    sizes = np.asarray(record["particle_edges"])
    ax.plot(step, sizes, color=SKY, linewidth=0.9, alpha=0.6)
    ax.plot(step, record["expected_edges"], color=BLUE, linewidth=2, label="expected number of edges")
    ax.plot(step, record["cyclic"], color=VERMILION, linewidth=1.5, label=f"cyclic particles, of {sizes.shape[1]}")
    ax.plot([], [], color=SKY, label="edges of each particle")
    ax.set_ylabel("number")
    ax.set_title("Particles", fontsize=11)
    ax.legend(fontsize=8, frameon=False)


def _temperatures(ax: Axes, step: np.ndarray, record: Any) -> None:
    """Draw the inverse temperatures alpha and beta."""
    ax.plot(step, record["alpha"], color=BLUE, label="alpha: how sharp the edges are")
    ax.plot(step, record["beta"], color=ORANGE, linestyle="--", label="beta: how strongly cycles are penalised")
    ax.set_yscale("log")
    ax.set_ylabel("inverse temperature")
    ax.set_title("Temperatures", fontsize=11)
    ax.legend(fontsize=8, frameon=False)
