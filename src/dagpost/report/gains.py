"""Section of the HTML report about the next experiment: bars of gains, and the order of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from dagpost.report.sections import Markup, html_table

MOST_EXPERIMENTS = 20
"""Most candidates for the next experiment that are listed."""


def section(found: Mapping[str, Any] | None) -> str:
    """Return the section about the next experiment, from `NextExperiment.plain`; empty without one."""
    if not found:
        return ""
    listed, batch = found["experiments"][:MOST_EXPERIMENTS], found["batch"]
    widest = max(max(row["gain"] + 2 * row["error"] for row in listed), 1e-12)
    chosen = {row["experiment"] for row in batch}
    rows = [
        (
            row["experiment"], row["sets"], _gain_bar(row, widest, row["experiment"] in chosen),
            f"{row['gain']:.3f} ± {row['error']:.3f}", f"{row['behind']:.3f}",
        )
        for row in listed
    ]  # fmt: skip
    together = [
        (row["experiment"], row["sets"], f"{row['gain']:.3f} ± {row['error']:.3f}", f"{row['added']:.3f}")
        for row in batch
    ]
    left = len(found["experiments"]) - len(rows)
    more = f" {left:,} further candidates are not listed." if left else ""
    return (
        '<section id="next" aria-labelledby="next-title"><h2 id="next-title">The next experiment</h2>'
        f"<p>{escape(found['sentence'])}</p>"
        + (html_table(("chosen, in order", "to", "gain of all up to it", "added"), together) if len(batch) > 1 else "")
        + html_table(("set", "to", "gain", "± standard error (nats)", "behind the best"), rows)
        + f'<p class="small">Expected information gain of {found["rows"]:,} rows, from {found["outcomes"]:,} simulated '
        f"outcomes: {escape(found['bound'])}. Lines on the bars are two standard errors.{more}</p></section>"
    )


def _gain_bar(row: Mapping[str, Any], widest: float, chosen: bool) -> Markup:
    """Return a bar of the gain of an experiment, with two standard errors."""
    low, gain, high = (100 * max(row["gain"] + side * row["error"], 0.0) / widest for side in (-2, 0, 2))
    kind = "bar chosen" if chosen else "bar"
    return Markup(
        f'<svg class="{kind}" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect y="1" width="{gain:.1f}" height="8"/><path d="M{low:.1f} 5H{high:.1f}"/></svg>'
    )
