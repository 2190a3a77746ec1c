"""The figure of a study: boxes or lines, with the paper's numbers, where there are any, as open diamonds."""

from __future__ import annotations

import io
from collections.abc import Iterable
from typing import Any

from dagpost.studies.study import Layout, Study
from dagpost.studies.tables import HEADINGS, Line, Row, display_name, sort_key, summary

WIDE = 100.0
"""Ratio of the largest to the smallest value from which on boxes have a logarithmic axis."""


def draw_figure(study: Study, rows: Iterable[Row]) -> bytes:
    """Return the figure as PNG: a row of panels for each value of the layout's `panels`, a column for each metric."""
    from matplotlib.figure import Figure

    layout, lines = study.layout, summary(study, rows)
    values = list(dict.fromkeys(line.names[layout.panels] for line in lines)) if layout.panels else [None]
    metrics = list(layout.metrics)
    height = max(2.4, 0.22 * len({series(layout, line) for line in lines}) + 0.8)
    figure = Figure(figsize=(max(7.0, 2.9 * len(metrics)), max(3.0, height) * len(values)), layout="constrained")
    axes = figure.subplots(len(values), len(metrics), squeeze=False)
    draw = draw_boxes if layout.figure == "boxes" else draw_lines
    for panels, value in zip(axes, values):
        for number, (panel, metric) in enumerate(zip(panels, metrics)):
            panel_lines = [
                line
                for line in lines
                if line.metric == metric and (layout.panels is None or line.names[layout.panels] == value)
            ]
            draw(panel, layout, panel_lines, labelled=number == 0)
            panel.set_title(layout.metrics[metric], fontsize=9)
            panel.tick_params(labelsize=7)
        if layout.panels:
            panels[0].set_ylabel(display_name(layout.panels, value), fontsize=9)
    figure.suptitle(study.title, fontsize=10)
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110, metadata={"Software": None})
    return out.getvalue()


def series(layout: Layout, line: Line) -> str:
    """Return the label that distinguishes a line or box within its panel."""
    inside = {name: value for name, value in line.names.items() if name not in (layout.panels, layout.x)}
    if layout.figure == "boxes":
        inside = {name: value for name, value in line.names.items() if name != layout.panels}
    words = [
        f"{HEADINGS.get(name, name)} = {display_name(name, value)}"
        if isinstance(value, int | float)
        else display_name(name, value)
        for name, value in inside.items()
    ]
    return ", ".join(words)


def draw_boxes(panel: Any, layout: Layout, lines: list[Line], labelled: bool) -> None:
    """Draw a horizontal box for each line; `labelled` names them on the axis."""
    panel.boxplot([line.values for line in lines], orientation="horizontal", widths=0.6, flierprops={"markersize": 2})
    names = [series(layout, line) for line in lines] if labelled else [""] * len(lines)
    panel.set_yticks(range(1, len(lines) + 1), names)
    panel.invert_yaxis()
    values = [value for line in lines for value in line.values]
    if values and 0 < WIDE * min(values) < max(values):
        panel.set_xscale("log")
    theirs = [(k + 1, *line.paper) for k, line in enumerate(lines) if line.paper[0] is not None]
    if theirs:
        positions, means, deviations = zip(*theirs)
        panel.errorbar(
            means, positions, xerr=[sd or 0.0 for sd in deviations], fmt="D", markerfacecolor="none", color="tab:red",
            markersize=4, linewidth=1, label="paper",
        )  # fmt: skip
        panel.legend(fontsize=6)


def draw_lines(panel: Any, layout: Layout, lines: list[Line], labelled: bool) -> None:
    """Draw means with standard deviations along the layout's `x`; `labelled` adds the legend."""
    column = layout.x
    assert column is not None
    ticks = sorted(dict.fromkeys(line.names[column] for line in lines), key=lambda value: sort_key(column, value))
    for k, name in enumerate(dict.fromkeys(series(layout, line) for line in lines)):
        part = [line for line in lines if series(layout, line) == name and line.mean is not None]
        part.sort(key=lambda line: ticks.index(line.names[column]))
        positions = [ticks.index(line.names[column]) for line in part]
        panel.errorbar(
            positions, [line.mean for line in part], yerr=[line.sd or 0.0 for line in part], fmt="o-", markersize=3,
            linewidth=1, elinewidth=0.6, color=f"C{k % 10}", label=name,
        )  # fmt: skip
        theirs = [(x, line.paper[0]) for x, line in zip(positions, part) if line.paper[0] is not None]
        if theirs:
            panel.plot(
                *zip(*theirs), marker="D", markerfacecolor="none", markersize=4, linestyle="--", linewidth=0.8,
                color=f"C{k % 10}", label=f"{name}, paper",
            )  # fmt: skip
    panel.set_xticks(range(len(ticks)), [display_name(column, v) for v in ticks], rotation=30 if len(ticks) > 6 else 0)
    panel.set_xlabel(HEADINGS.get(column, column), fontsize=8)
    if layout.logarithmic:
        panel.set_yscale("log")
    if labelled:
        panel.legend(fontsize=5)
