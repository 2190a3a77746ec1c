"""Evolution of the particles during a DiBS run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dagpost.errors import InputError, nearest
from dagpost.inference.history import TOP, History
from dagpost.plot.canvas import BLUE, GREEN, GREY, ORANGE, PLAIN_TEXT, PURPLE, SKY, VERMILION, axes, edge_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
