"""What all figures share: a place to draw, colours, and names that stay as they are."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from dagpost.errors import InputError
from dagpost.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# of Okabe and Ito (2008): apart for every kind of colour vision
BLUE, ORANGE, VERMILION, GREEN, PURPLE, SKY, GREY = (
    "#0072B2", "#E69F00", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#777777",
)  # fmt: skip
ROUNDING = 1e-9
"""By which a sum of weights may miss 0 or 1."""
LONGEST = 18
"""Letters of a name that are shown."""

AsItIs: dict[str, Any] = {"parse_math": False}
"""For every text that holds a name."""


def has_matplotlib() -> bool:
    return find_spec("matplotlib") is not None


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The Axes given, or those of a new figure of this size in inches."""
    if ax is not None:
        return ax
    if not has_matplotlib():
        raise InputError("figures need matplotlib: pip install 'dagpost[report]' brings it")
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(width, height), layout="constrained")[1]


def label(name: str) -> str:
    """The name, cut to fit and on one line."""
    shown = "".join(c if c.isprintable() else "�" for c in name)
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"


def edge_label(cause: str, effect: str) -> str:
    return f"{label(cause)} → {label(effect)}"


def probabilities_of(source: Posterior | pd.DataFrame) -> tuple[list[str], np.ndarray]:
    """Names and edge probabilities of a posterior, or of a labelled table such as `post.edge_probabilities`."""
    if isinstance(source, Posterior):
        return list(source.names), source.edge_marginals
    if not isinstance(source, pd.DataFrame) or list(source.index) != list(source.columns):
        raise InputError("give a posterior, or its edge probabilities as a table with the same names on both sides")
    values = source.to_numpy(dtype=float)
    if not ((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all():
        raise InputError("edge probabilities must lie between 0 and 1")
    return [str(name) for name in source.columns], np.clip(values, 0.0, 1.0)


def font_size(count: int) -> float:
    """Smaller letters for more of them."""
    return float(np.clip(160 / max(count, 1), 4.0, 10.0))
