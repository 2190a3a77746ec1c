"""The posterior drawn as one graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from dagpost.errors import InputError, nearest
from dagpost.plot.canvas import (
    BLUE,
    GAP,
    GREEN,
    LARGEST_FONT,
    PLAIN_TEXT,
    SMALLEST_FONT,
    VERMILION,
    GraphLayout,
    axes,
    circular,
    has_slices,
    label,
    layered,
    probabilities_of,
    suits_layers,
    two_slices,
    with_conditions,
)
from dagpost.posterior import Posterior
from dagpost.posterior.features import consensus
from dagpost.posterior.pairs import adjacency, settled_directions
from dagpost.posterior.targets import conditions_of, target_matrix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_NUMBERS = 40
"""Most pairs whose probabilities are written by default."""
SURE = 0.995
"""Pairs at least this probable get no number."""
LEAST_REVERSE = 0.1
"""Least probability of the reverse direction that is written as well."""
COLOURS = {"arrow": BLUE, "line": VERMILION, "target": GREEN}
"""Colours of edges: settled directions, open ones, and from conditions to what they change."""
LAYOUTS = ("auto", "rows", "circle")
UNITS_PER_INCH = 65.0
"""Scale of a figure with rows, in the units of the layout."""
FONT_UNITS = 14.0
"""Font size in the units of the layout at which the longest labels still fit between their neighbours."""


def graph(
    source: Posterior | pd.DataFrame, ax: Axes | None = None, *, threshold: float = 0.5, labels: bool | None = None,
    layout: Literal["auto", "rows", "circle"] = "auto", conditions: bool = True,
) -> Axes:  # fmt: skip
    """Draw the pairs that are probably adjacent as a graph; more probable pairs are wider and darker.

    The threshold applies to the probability of an edge in either direction. Arrows are pairs whose more probable
    direction has at least 3/4 of that probability (`dagpost.posterior.pairs.LEAST_SHARE`); pairs whose direction is
    open are dashed lines. Each pair is judged by itself, so arrows may form a cycle; `post.consensus_graph()` is
    acyclic.

    Parameters
    ----------
    source
        A posterior, or a table of edge probabilities labelled like `post.edge_probabilities`.
    ax
        Axes to draw into; a new figure by default.
    threshold
        Least probability of an edge in either direction for a pair to be drawn, above 0 and at most 1.
    labels
        Whether to write the probabilities of pairs below 0.995, and those of reverse directions from 0.1 on after
        "back". By default only if at most 40 pairs have a number.
    layout
        "rows" (causes above effects), "circle", or "auto": rows for small sparse graphs, else a circle. Time slices
        (`x[t-1]` and `x`) stand side by side, the past on the left, unless a circle is asked for.
    conditions
        Whether to draw the conditions of a posterior with unknown targets, as ellipses, with edges to the nodes that
        they change with at least the probability `threshold`.

    Returns
    -------
    matplotlib.axes.Axes
        The Axes drawn into.

    Examples
    --------
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
    either = adjacency(p)
    shown = (either >= threshold) & ~np.eye(len(p), dtype=np.bool_)
    arrows = shown & settled_directions(p)
    lines = np.triu(shown & ~(arrows | arrows.T), 1)
    all_edges = consensus(np.where(arrows, p, 0.5 * p * (lines | lines.T)), 0.0)
    hits, marks = np.zeros((0, len(names))), list[str]()
    if conditions and isinstance(source, Posterior):
        hits, marks = target_matrix(source), [label(name) for name in conditions_of(source)]
    hits = np.where(hits >= threshold, hits, 0.0)
    slices = has_slices(names) and layout != "circle"
    rows = slices or (suits_layers(all_edges) if layout == "auto" else layout == "rows")
    texts = [label(name) for name in names]
    if rows:
        placed = with_conditions(two_slices(all_edges, names) if slices else layered(all_edges, texts), marks, hits)
        ax, places, size = _draw_rows(ax, [*texts, *marks], placed, len(texts))
    else:
        drawn = np.zeros((len(names) + len(marks),) * 2)
        drawn[: len(names), : len(names)] = np.where(arrows | lines | lines.T, p, 0.0)
        drawn[len(names) :, : len(names)] = hits
        ax, places, size = _draw_circle(ax, [*texts, *marks], circular(drawn), len(texts))
    values = np.where(arrows | lines, either, 0.0)
    back = np.where(arrows, p.T, 0.0)
    unsure = int(((values > 0) & (values < SURE) | (back >= LEAST_REVERSE)).sum() + ((hits > 0) & (hits < SURE)).sum())
    written = unsure <= MOST_NUMBERS if labels is None else labels
    edges = [(int(i), int(j), float(values[i, j])) for i, j in zip(*np.nonzero(arrows | lines))]
    edges += [(len(names) + int(k), int(j), float(hits[k, j])) for k, j in zip(*np.nonzero(hits))]
    for i, j, value in edges:
        kind = "target" if i >= len(names) else "arrow" if arrows[i, j] else "line"
        bend = _connect(ax, places, i, j, value, kind, rows, size)
        numbers = [f"{value:.2f}"] if value < SURE else []
        numbers += [f"back {back[i, j]:.2f}"] if kind == "arrow" and back[i, j] >= LEAST_REVERSE else []
        if written and numbers:
            _write(ax, places[i], places[j], bend, "\n".join(numbers), 0.5 if rows else 0.35, 0.75 * size)
    dashed = "; dashed: direction open" if lines.any() else ""
    changed = "\nfrom ellipses: conditions to what they change" if marks else ""
    sure = (values >= SURE).any() or (hits >= SURE).any()
    note = f"\nwithout a number: {SURE:g} or more" if written and unsure and sure else ""
    ax.set_title(f"Pairs with probability {threshold:g} or more{dashed}{changed}{note}", fontsize=11)
    ax.axis("off")
    return ax


def _draw_rows(
    ax: Axes | None, texts: list[str], layout: GraphLayout, variables: int
) -> tuple[Axes, np.ndarray, float]:
    """Draw labels in boxes, those of conditions (after so many variables) in ellipses; return the Axes, the positions
    of the nodes in them and the font size."""
    left, right = (layout.x - layout.width / 2).min() - GAP / 2, (layout.x + layout.width / 2).max() + GAP / 2
    depth = np.ptp(layout.y)
    width, height = np.array([right - left, depth]) / UNITS_PER_INCH
    ax = axes(ax, float(np.clip(width, 5, 16)), float(np.clip(height + 1.5, 3, 14)))
    points = 72 * ax.get_window_extent().width / ax.figure.dpi
    size = float(np.clip(FONT_UNITS * points / (right - left), SMALLEST_FONT, LARGEST_FONT))
    places = np.stack([layout.x, -layout.y], axis=1)
    box = {"boxstyle": "round,pad=0.3", "facecolor": "white", "edgecolor": "0.55", "linewidth": 0.8}
    ellipse = {**box, "boxstyle": "ellipse,pad=0.2", "edgecolor": GREEN}
    for j, (text, (x, y)) in enumerate(zip(texts, places)):
        around = box if j < variables else ellipse
        ax.text(x, y, text, ha="center", va="center", fontsize=size, bbox=around, zorder=4, **PLAIN_TEXT)
    ax.set_xlim(left, right)
    ax.set_ylim(-layout.y.max() - GAP, GAP - layout.y.min())
    return ax, places, size


def _draw_circle(
    ax: Axes | None, texts: list[str], places: np.ndarray, variables: int
) -> tuple[Axes, np.ndarray, float]:
    """Draw dots on the circle, ellipses for conditions, with labels outside, radial if there are many; return as
    `_draw_rows`."""
    d = len(texts)
    side, size = float(np.clip(5 + 0.13 * d, 6, 12)), float(np.clip(14 - 0.1 * d, 6, 10))
    ax = axes(ax, side, side)
    radial = d > 20
    ax.plot(*places[:variables].T, "o", color="white", markeredgecolor="0.35", markersize=0.7 * size, zorder=4)
    ax.plot(*places[variables:].T, marker=_ellipse(), linestyle="", color="white", markeredgecolor=GREEN,
            markersize=1.2 * size, zorder=4)  # fmt: skip
    for text, (x, y) in zip(texts, places):
        angle = float(np.degrees(np.arctan2(y, x)))
        at: dict[str, Any] = {"ha": "center" if abs(x) < 0.2 else "left" if x > 0 else "right", "va": "center"}
        if radial:
            rotation = angle if x >= 0 else angle + 180
            at = {"ha": "left" if x >= 0 else "right", "va": "center", "rotation": rotation, "rotation_mode": "anchor"}
        out = 1.06 if radial or abs(x) >= 0.2 else 1.1
        ax.text(out * x, out * y, text, fontsize=size, zorder=4, **at, **PLAIN_TEXT)
    longest = max(map(len, texts)) * 0.6 * size / 72  # inches, about
    reach = 1.12 + longest * 2.6 / side
    ax.set_xlim(-reach, reach)
    ax.set_ylim(*((-reach, reach) if radial else (-1.18, 1.18)))
    ax.set_aspect("equal")
    return ax, places, size


def _ellipse() -> Any:
    """Return an ellipse as a marker."""
    from matplotlib.path import Path

    return Path(np.asarray(Path.unit_circle().vertices) * (1.0, 0.6), Path.unit_circle().codes)


def _connect(
    ax: Axes, places: np.ndarray, i: int, j: int, p: float, kind: Literal["arrow", "line", "target"], rows: bool,
    size: float,
) -> float:  # fmt: skip
    """Draw an arrow or a dashed line, bent where it would run through other nodes; return the bend."""
    from matplotlib.patches import FancyArrowPatch

    start, end = places[i], places[j]
    bend = _bend_between_rows(ax, places, i, j) if rows else _bend_on_circle(start, end)
    gap = 1.1 * size if rows else 0.5 * size
    patch = FancyArrowPatch(
        tuple(start), tuple(end), arrowstyle="-" if kind == "line" else "-|>", connectionstyle=f"arc3,rad={bend}",
        linestyle=(0, (4, 2)) if kind == "line" else "-", color=COLOURS[kind], alpha=0.25 + 0.75 * p,
        linewidth=0.4 + 1.4 * p, mutation_scale=5 + 0.7 * size, shrinkA=gap, shrinkB=gap, zorder=2,
        gid=f"{'target' if kind == 'target' else 'edge'}-{i}-{j}",
    )  # fmt: skip
    ax.add_patch(patch)
    return bend


def _write(ax: Axes, start: np.ndarray, end: np.ndarray, bend: float, text: str, share: float, size: float) -> None:
    """Write a number onto an edge, at this share of its length."""
    x, y = _along(ax, start, end, bend, share)
    back = {"boxstyle": "round,pad=0.08", "facecolor": "white", "edgecolor": "none", "alpha": 0.9}
    ax.text(x, y, text, ha="center", va="center", fontsize=size, color="0.2", bbox=back, zorder=3)


def _bend_on_circle(start: np.ndarray, end: np.ndarray) -> float:
    """Return a bend towards the centre, stronger for edges close to the rim."""
    middle, along = (start + end) / 2, end - start
    return 0.25 * float(np.hypot(*middle) * np.sign(along[0] * middle[1] - along[1] * middle[0]))


def _bend_between_rows(ax: Axes, places: np.ndarray, i: int, j: int) -> float:
    """Return the bend that keeps an edge away from the nodes between its ends; straight edges are preferred."""
    start, end = places[i], places[j]
    between = np.delete(places, [i, j], axis=0)
    between = between[(between[:, 1] < max(start[1], end[1])) & (between[:, 1] > min(start[1], end[1]))]
    if not len(between):
        in_row = (
            (places[:, 1] == start[1]) & (places[:, 0] > min(start[0], end[0])) & (places[:, 0] < max(start[0], end[0]))
        )
        return 0.3 if start[1] == end[1] and in_row.any() else 0.0
    at = ax.transData.transform(between)
    shares = np.linspace(0.1, 0.9, 17)

    def room(bend: float) -> float:
        path = np.array([ax.transData.transform(_along(ax, start, end, bend, share)) for share in shares])
        apart = (path[:, None] - at[None]) * np.array([1.0, 2.0])  # boxes are wider than they are high
        return float(np.hypot(apart[..., 0], apart[..., 1]).min())

    return max((0.0, 0.15, -0.15, 0.3, -0.3, 0.5, -0.5), key=lambda bend: min(room(bend), 60.0) - 20 * abs(bend))


def _along(ax: Axes, start: np.ndarray, end: np.ndarray, bend: float, share: float) -> np.ndarray:
    """Return the point at this share of the arc; `arc3` is a quadratic Bézier curve in display coordinates."""
    a, b = ax.transData.transform(start), ax.transData.transform(end)
    control = (a + b) / 2 + bend * np.array([b[1] - a[1], a[0] - b[0]])
    point = (1 - share) ** 2 * a + 2 * share * (1 - share) * control + share**2 * b
    return ax.transData.inverted().transform(point)
