"""Section of the HTML report for models that are not linear: the functions of the strongest edges, as small drawings.

Drawings are SVG elements in the page, drawn here: they need neither scripts nor matplotlib, follow the colours of the
page, and print. Every text is escaped.
"""

from __future__ import annotations

from html import escape

import numpy as np

from dagpost.errors import InputError
from dagpost.plot.canvas import edge_label, label
from dagpost.posterior import Curve, Posterior

LEAST_EDGE = 0.5
"""Least probability of an edge whose function is drawn."""
MOST_FUNCTIONS = 12
"""Most functions that are drawn, those of the most probable edges."""
DRAWS = 100
"""Draws behind each band."""
WIDTH, HEIGHT = 260.0, 170.0
"""Size of a drawing."""
LEFT, RIGHT, TOP, BOTTOM = 54.0, 254.0, 8.0, 138.0
"""Frame of its curve; what is left holds the numbers and names of the axes."""
MOST_MARKS = 60
"""Most values of the cause that are marked on its axis."""


def functions(post: Posterior) -> str:
    """Return the section; empty for a linear model, without probable edges, and where parameters are not available."""
    curves = strongest_functions(post)
    if not curves:
        return ""
    drawings = "".join(f"<figure>{_caption(curve)}{drawing(curve)}</figure>" for curve in curves)
    return (
        '<section id="functions" aria-labelledby="functions-title">'
        '<h2 id="functions-title">Functions of the strongest edges</h2>'
        '<p class="small">How each cause enters its effect directly, with the other causes of that effect held at '
        f"their means: the mean over the posterior and a band of probability {curves[0].level:g} at each value, given "
        "that the edge exists. Vertical: contribution to the effect, 0 on average. Marks at the bottom: values in the "
        f'data.</p><div class="curves">{drawings}</div></section>'
    )


def strongest_functions(post: Posterior) -> list[Curve]:
    """Return the functions of the most probable edges; none for a linear model."""
    if post.model.linear or post.model.categorical:
        return []
    p = post.edge_marginals
    order = np.argsort(-p, axis=None, kind="stable")[:MOST_FUNCTIONS]
    out = []
    for i, j in (divmod(int(k), post.nodes) for k in order if p.flat[k] >= LEAST_EDGE):
        try:
            out.append(post.mechanism(i, j, draws=DRAWS))
        except InputError:  # no parameters, no node_mean, or no graph with the edge
            continue
    return out


def _caption(curve: Curve) -> str:
    """Return the edge and its probability as a caption."""
    edge = escape(f"{curve.cause} → {curve.effect}", quote=True)
    shown = escape(edge_label(curve.cause, curve.effect))
    return f'<figcaption title="{edge}"><b>{shown}</b> probability {curve.probability:.2f}</figcaption>'


def drawing(curve: Curve) -> str:
    """Return the curve as an SVG element."""
    low, high = min(curve.lower.min(), 0.0), max(curve.upper.max(), 0.0)
    first, last = curve.values[0], curve.values[-1]

    def across(values: np.ndarray) -> np.ndarray:
        return LEFT + (RIGHT - LEFT) * (values - first) / (last - first)

    def down(values: np.ndarray) -> np.ndarray:
        return BOTTOM - (BOTTOM - TOP) * (values - low) / ((high - low) or 1.0)

    x, zero = across(curve.values), f"{down(np.zeros(1))[0]:.1f}"
    band = _points(np.append(x, x[::-1]), down(np.append(curve.upper, curve.lower[::-1])))
    rug = "".join(f"M{v:.1f} {BOTTOM:g}v-5" for v in across(curve.marks(MOST_MARKS)))
    texts = (
        (LEFT - 4, TOP + 9, "end", _short(high)),
        (LEFT - 4, BOTTOM, "end", _short(low)),
        (LEFT, BOTTOM + 13, "start", _short(first)),
        (RIGHT, BOTTOM + 13, "end", _short(last)),
        ((LEFT + RIGHT) / 2, BOTTOM + 27, "middle", label(curve.cause)),
    )
    words = "".join(f'<text x="{a:g}" y="{b:g}" text-anchor="{side}">{escape(t)}</text>' for a, b, side, t in texts)
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(spoken(curve))}">'
        f'<path class="axis" d="M{LEFT:g} {TOP:g}V{BOTTOM:g}H{RIGHT:g}"/>'
        f'<path class="zero" d="M{LEFT:g} {zero}H{RIGHT:g}"/>'
        f'<polygon class="band" points="{band}"/><polyline class="mean" points="{_points(x, down(curve.mean))}"/>'
        f'<path class="rug" d="{rug}"/>{words}</svg>'
    )


def spoken(curve: Curve) -> str:
    """Return the curve in words, for readers who do not see it."""
    peak, trough = int(curve.mean.argmax()), int(curve.mean.argmin())
    return (
        f"Contribution of {curve.cause} to {curve.effect}: {curve.mean[0]:.3g} at {curve.values[0]:.3g}, "
        f"{curve.mean[-1]:.3g} at {curve.values[-1]:.3g}; largest {curve.mean[peak]:.3g} at {curve.values[peak]:.3g}, "
        f"smallest {curve.mean[trough]:.3g} at {curve.values[trough]:.3g}"
    )


def _short(value: float) -> str:
    """Return a number in at most eight characters."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 99_999.5 else f"{value:.3g}" if abs(value) < 1000 else f"{value:.2g}"


def _points(x: np.ndarray, y: np.ndarray) -> str:
    """Return points of a drawing to a tenth of a pixel."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
