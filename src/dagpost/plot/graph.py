"""The posterior as one picture of a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dagpost.errors import InputError, nearest
from dagpost.plot.canvas import BLUE, VERMILION, AsItIs, axes, font_size, label, probabilities_of
from dagpost.plot.layout import circular, layered, suits_rows
from dagpost.posterior import Posterior
from dagpost.posterior.features import consensus

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LABELLED_UP_TO = 40
"""Numbers up to which they are written beside the edges."""
SURE = 0.995
"""Edges at least this probable bear no number."""
BACK = 0.1
"""From here on the probability of the other direction is written as well."""
LAYOUTS = ("auto", "rows", "circle")


def graph(
    source: Posterior | pd.DataFrame, ax: Axes | None = None, *, threshold: float = 0.5, labels: bool | None = None,
    layout: Literal["auto", "rows", "circle"] = "auto",
) -> Axes:  # fmt: skip
    """Probable edges; wider and darker where more probable.

    Arrows are edges at least as probable as `threshold` (from the most probable on, those that would close a cycle
    left out). Dashed lines connect pairs that are probably adjacent while neither direction is probable enough; their
    number is the probability of either. `labels` writes the probabilities of edges that are not sure (below 0.995), and
    "back" that of the other direction from 0.1 on; by default if there are no more than 40. `layout` is "rows", causes
    above effects, "circle", or whichever suits.

    >>> import dagpost as dp
    >>> post = dp.exact(dp.simulate(nodes=4, observations=50, seed=3).train)
    >>> ax = graph(post)
    >>> ax.figure.savefig("graph.pdf")  # doctest: +SKIP
    """
    if isinstance(threshold, bool) or not 0 < threshold <= 1:
        raise InputError(f"threshold={threshold!r}: give a probability above 0, at most 1")
    if layout not in LAYOUTS:
        raise InputError(f"unknown layout {layout!r}: {nearest(str(layout), LAYOUTS)}")
    names, p = probabilities_of(source)
    arrows = consensus(p, float(np.nextafter(threshold, 0)))
    either = np.minimum(p + p.T, 1.0)
    lines = np.triu((either >= threshold) & ~(arrows | arrows.T), 1)
    all_edges = consensus(np.where(arrows, 1.0, 0.5 * p * (lines | lines.T)), 0.0)
    rows = suits_rows(all_edges) if layout == "auto" else layout == "rows"
    places = layered(all_edges) if rows else circular(all_edges, np.where(arrows | lines | lines.T, p, 0.0))
    ax, size = (_with_rows if rows else _with_circle)(ax, names, places)
    values = np.where(arrows, p, np.where(lines, either, 0.0))
    unsure = int(((values > 0) & (values < SURE)).sum())
    written = unsure <= LABELLED_UP_TO if labels is None else labels
    for i, j in zip(*np.nonzero(arrows | lines)):
        arrow, value = bool(arrows[i, j]), float(values[i, j])
        bend = _connect(ax, places, int(i), int(j), value, arrow, rows, size)
        if written and value < SURE:
            back = f"\nback {p[j, i]:.2f}" if arrow and p[j, i] >= BACK else ""
            _write(ax, places[i], places[j], bend, f"{value:.2f}{back}", 0.5 if rows else 0.35, 0.75 * size)
    dashed = "; dashed: direction open" if lines.any() else ""
    numbers = f"\nwithout a number: {SURE:g} or more" if written and unsure and (values >= SURE).any() else ""
    ax.set_title(f"Edges with probability {threshold:g} or more{dashed}{numbers}", fontsize=11)
    ax.axis("off")
    return ax


def _with_rows(ax: Axes | None, names: list[str], places: np.ndarray) -> tuple[Axes, float]:
    """Names in boxes at their places."""
    depth = -places[:, 1].min()
    widest = max(int((places[:, 1] == y).sum()) for y in np.unique(places[:, 1]))
    ax = axes(ax, float(np.clip(1.3 * widest + 1, 5, 16)), float(np.clip(depth + 1.5, 3, 14)))
    size = font_size(max(len(names), 3 * widest))
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "0.55", "linewidth": 0.8}
    for name, (x, y) in zip(names, places):
        ax.text(x, y, label(name), ha="center", va="center", fontsize=size, bbox=box, zorder=4, **AsItIs)
    ax.set_xlim(-0.05, 1.05)
    ax.set_ylim(-depth - 0.4, 0.4)
    return ax, size


def _with_circle(ax: Axes | None, names: list[str], places: np.ndarray) -> tuple[Axes, float]:
    """Dots on the circle, names outside it; many names stand like spokes."""
    d = len(names)
    side, size = float(np.clip(5 + 0.13 * d, 6, 12)), float(np.clip(14 - 0.1 * d, 6, 10))
    ax = axes(ax, side, side)
    spokes = d > 20
    ax.plot(*places.T, "o", color="white", markeredgecolor="0.35", markersize=0.7 * size, zorder=4)
    for name, (x, y) in zip(names, places):
        angle = float(np.degrees(np.arctan2(y, x)))
        at: dict[str, Any] = {"ha": "center" if abs(x) < 0.2 else "left" if x > 0 else "right", "va": "center"}
        if spokes:
            turned = angle if x >= 0 else angle + 180
            at = {"ha": "left" if x >= 0 else "right", "va": "center", "rotation": turned, "rotation_mode": "anchor"}
        out = 1.06 if spokes or abs(x) >= 0.2 else 1.1
        ax.text(out * x, out * y, label(name), fontsize=size, zorder=4, **at, **AsItIs)
    longest = max(len(label(name)) for name in names) * 0.6 * size / 72  # inches, about
    reach = 1.12 + longest * 2.6 / side
    ax.set_xlim(-reach, reach)
    ax.set_ylim(*((-reach, reach) if spokes else (-1.18, 1.18)))
    ax.set_aspect("equal")
    return ax, size


def _connect(ax: Axes, places: np.ndarray, i: int, j: int, p: float, arrow: bool, rows: bool, size: float) -> float:
    """An arrow, or a dashed line; bent a little where it would run through other nodes. How much it is bent."""
    from matplotlib.patches import FancyArrowPatch

    start, end = places[i], places[j]
    bend = _bend_between_rows(ax, places, i, j) if rows else _bend_on_circle(start, end)
    gap = 1.1 * size if rows else 0.5 * size
    patch = FancyArrowPatch(
        tuple(start), tuple(end), arrowstyle="-|>" if arrow else "-", connectionstyle=f"arc3,rad={bend}",
        linestyle="-" if arrow else (0, (4, 2)), color=BLUE if arrow else VERMILION, alpha=0.25 + 0.75 * p,
        linewidth=0.4 + 1.4 * p, mutation_scale=5 + 0.7 * size, shrinkA=gap, shrinkB=gap, zorder=2,
        gid=f"edge-{i}-{j}",
    )  # fmt: skip
    ax.add_patch(patch)
    return bend


def _write(ax: Axes, start: np.ndarray, end: np.ndarray, bend: float, text: str, share: float, size: float) -> None:
    """A number on its edge."""
    x, y = _along(ax, start, end, bend, share)
    back = {"boxstyle": "round,pad=0.08", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
    ax.text(x, y, text, ha="center", va="center", fontsize=size, color="0.2", bbox=back, zorder=3)


def _bend_on_circle(start: np.ndarray, end: np.ndarray) -> float:
    """Towards the centre, the more the closer the edge is to the rim."""
    middle, along = (start + end) / 2, end - start
    return 0.25 * float(np.hypot(*middle) * np.sign(along[0] * middle[1] - along[1] * middle[0]))


def _bend_between_rows(ax: Axes, places: np.ndarray, i: int, j: int) -> float:
    """The bend that keeps an edge furthest from the nodes in between, straight where that is good enough."""
    start, end = places[i], places[j]
    between = np.delete(places, [i, j], axis=0)
    between = between[(between[:, 1] < max(start[1], end[1])) & (between[:, 1] > min(start[1], end[1]))]
    if not len(between):
        return 0.0 if start[1] != end[1] else 0.3
    at = ax.transData.transform(between)
    shares = np.linspace(0.1, 0.9, 17)

    def room(bend: float) -> float:
        path = np.array([ax.transData.transform(_along(ax, start, end, bend, share)) for share in shares])
        apart = (path[:, None] - at[None]) * np.array([1.0, 2.0])  # boxes are wider than high
        return float(np.hypot(apart[..., 0], apart[..., 1]).min())

    return max((0.0, 0.15, -0.15, 0.3, -0.3, 0.5, -0.5), key=lambda bend: min(room(bend), 60.0) - 20 * abs(bend))


def _along(ax: Axes, start: np.ndarray, end: np.ndarray, bend: float, share: float) -> np.ndarray:
    """A point of the arc; `arc3` is a quadratic Bézier curve in display coordinates, so that is where it lies."""
    a, b = ax.transData.transform(start), ax.transData.transform(end)
    control = (a + b) / 2 + bend * np.array([b[1] - a[1], a[0] - b[0]])
    point = (1 - share) ** 2 * a + 2 * share * (1 - share) * control + share**2 * b
    return ax.transData.inverted().transform(point)
