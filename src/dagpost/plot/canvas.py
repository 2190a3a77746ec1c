"""Helpers shared by all figures: Axes to draw into, colours, labels and font sizes."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dagpost.errors import InputError
from dagpost.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008): distinguishable with any kind of colour vision
BLUE, ORANGE, VERMILION, GREEN, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#777777",
)  # fmt: skip
ROUNDING = 1e-9
"""Tolerance by which a sum of weights may leave [0, 1]."""
LONGEST_LABEL = 18
"""Longest label in letters; longer names are cut."""
SMALLEST_FONT, LARGEST_FONT = 4.0, 10.0

PLAIN_TEXT: dict[str, Any] = {"parse_math": False}
"""Text properties for everything that shows a name: a dollar sign must not start a formula."""


def has_matplotlib() -> bool:
    """Return whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """Return the given Axes, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    if not has_matplotlib():
        raise InputError("figures need matplotlib: install it with pip install 'dagpost[report]'")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def label(name: str) -> str:
    """Return the name on one line, unprintable characters replaced, cut to `LONGEST_LABEL`."""
    shown = "".join(c if c.isprintable() else "�" for c in name)
    return shown if len(shown) <= LONGEST_LABEL else shown[: LONGEST_LABEL - 1] + "…"


def edge_label(cause: str, effect: str) -> str:
    """Return the label of an edge, made of those of its nodes."""
    return f"{label(cause)} → {label(effect)}"


def probabilities_of(source: Posterior | pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Return names and edge probabilities of a posterior, or of a labelled table such as `post.edge_probabilities`."""
    if isinstance(source, Posterior):
        return list(source.names), source.edge_marginals
    if not isinstance(source, pd.DataFrame) or list(source.index) != list(source.columns):
        raise InputError("give a posterior, or a table of edge probabilities with the same names as rows and columns")
    values = source.to_numpy(dtype=float)
    if not ((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all():
        raise InputError("edge probabilities must lie between 0 and 1")
    return [str(name) for name in source.columns], np.clip(values, 0.0, 1.0)


def font_size(count: int) -> float:
    """Return the font size in points for this many labels on one axis."""
    return float(np.clip(160 / max(count, 1), SMALLEST_FONT, LARGEST_FONT))
