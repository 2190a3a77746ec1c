"""The report as plain text, as one PNG, and as one interactive HTML file that contains everything it needs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dagpost import plot
from dagpost._util.files import check_target, write_atomically
from dagpost.design import NextExperiment
from dagpost.errors import InputError, printable
from dagpost.plot.charts import select_effects
from dagpost.posterior import Effect, Posterior
from dagpost.posterior.pairs import LEAST_SHARE, ranked_pairs
from dagpost.posterior.records import RunRecord
from dagpost.report import gains, sections
from dagpost.report.content import content_of
from dagpost.report.functions import functions
from dagpost.report.sections import assess
from dagpost.report.targets import targets_section
from dagpost.report.wide import clusters_section, is_wide
from dagpost.report.words import described, method_sentence

LARGEST_GRAPH = 100
"""Most nodes for which the graph is drawn beside the heat map."""
SHOWN_EFFECTS = 8
"""Number of effects shown."""


def png_report(summary: dict[str, Any], post: Posterior | None = None) -> bytes:
    """Return the figures of a run as one PNG file.

    Parameters
    ----------
    summary
        Summary of the run, with at least `names` and `edges`; `evolution` adds the course of a DiBS run.
    post
        The posterior; with it, intervals and effects are drawn as well.

    Returns
    -------
    bytes
        The PNG file.
    """
    from matplotlib.figure import Figure

    panels = list(_panels(summary, post))
    columns = min(2, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(7.0 * columns, 6.5 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, draw in zip(axes, panels):
        draw(ax)
    for ax in axes[len(panels) :]:
        ax.axis("off")
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return out.getvalue()


def _panels(summary: dict[str, Any], post: Posterior | None) -> list[Callable[[Any], Any]]:
    """Return for each panel a function that draws it into given Axes."""
    names = summary["names"]
    table = pd.DataFrame(edge_matrix(summary), index=names, columns=names)
    out: list[Callable[[Any], Any]] = []
    if len(names) <= LARGEST_GRAPH:
        out.append(lambda ax: plot.graph(table if post is None else post, ax))
    out.append(lambda ax: plot.heat_map(table, ax))
    if post is not None:
        out.append(lambda ax: plot.edge_intervals(post, ax))
        effects = largest_effects(post)
        if effects:
            out.append(lambda ax: plot.effects(effects, ax=ax))
    if summary.get("evolution"):
        out.append(lambda ax: plot.evolution(summary["evolution"], ax))
        out.append(lambda ax: plot.evolution(summary["evolution"], ax, show="particles"))
    return out


def largest_effects(post: Posterior) -> list[Effect]:
    """Return the effects with the largest means; none in wide tables, where computing all takes long, and where drawing
    the parameters needs data that are missing."""
    if post.nodes < 2 or is_wide(post):
        return []
    try:
        return select_effects(post, None, SHOWN_EFFECTS)
    except InputError:
        return []


def edge_matrix(summary: dict[str, Any]) -> np.ndarray:
    """Return the edge probabilities of a summary; row i, column j for i -> j."""
    index = {name: i for i, name in enumerate(summary["names"])}
    out = np.zeros((len(index), len(index)))
    for edge in summary["edges"]:
        out[index[edge["cause"]], index[edge["effect"]]] = edge["probability"]
    return out


LEAST_LISTED = 0.01
"""Pairs less probably adjacent than this are left out of the text."""
SCRIPTS = (
    "tools.js", "lookup.js", "conditions.js", "tooltip.js", "table.js", "details.js", "bends.js", "graph.js",
    "views.js", "heatmap.js", "tables.js", "export.js", "main.js",
)  # fmt: skip
"""Scripts of the page; each uses those before it."""
UNSAFE_IN_JSON = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def text_report(summary: dict[str, Any]) -> str:
    """Return the report as plain text: how the run was made, its verdict, and the pairs by probability.

    Parameters
    ----------
    summary
        Summary of a run, as `dagpost fit` writes it.

    Returns
    -------
    str
        The text, ending in a newline.
    """
    method = method_sentence(summary["method"], RunRecord.from_flat(summary["info"]).diagnostics)
    lines = [
        f"Posterior over causal graphs: {printable(summary['table'])}",
        "",
        f"rows      {summary['rows']}",
        f"columns   {len(summary['names'])}",
        f"model     {described(summary['model'])}",
        f"prior     {described(summary['prior'])}",
        f"method    {method}; seed {summary['seed']}; {summary['seconds']:.1f} s",
        f"units     {'standardised' if summary['standardised'] else 'as in the table'}",
        f"graphs    {summary['graphs']}, with {summary['expected_edges']:.1f} edges expected",
    ]
    if "verdict" in summary["info"]:
        lines += ["", str(summary["info"]["verdict"])]
    lines += ["", *(f"assumed   {what}: {text}" for what, text in summary["assumed"].items()), ""]
    return "\n".join([*lines, *_pair_lines(summary)]) + "\n"


def _pair_lines(summary: dict[str, Any]) -> list[str]:
    """Return a table of the pairs: adjacency first, then the more probable direction and its share of the adjacency."""
    shown, d = ranked_pairs(edge_matrix(summary), LEAST_LISTED), len(summary["names"])
    left = d * (d - 1) // 2 - len(shown)
    lines = ["adjacent  share       direction"]
    for pair in shown:
        cause, effect = (printable(summary["names"][k]) for k in (pair.cause, pair.effect))
        note = "open" if pair.is_open else ""
        lines.append(f"{pair.adjacency:8.3f}  {pair.share:5.2f} {note:4}  {cause} -> {effect}")
    return [
        *lines,
        f"({left} pairs that are adjacent with a probability below {LEAST_LISTED:g} are not listed)",
        "adjacent: probability of an edge in either direction; share: the part of it that this direction has, which",
        f"is open below {LEAST_SHARE:g}",
    ]


def write_report(
    post: Posterior,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    experiment: NextExperiment | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the interactive report of a posterior: one HTML file that works offline.

    Causal effects are included where they can be computed: from the parameters of the particles, or from the data
    (add them with `post.with_data(...)` to a posterior loaded from a file).

    Parameters
    ----------
    post
        The posterior.
    path
        File to write.
    title
        Heading of the page; the number of variables by default.
    experiment
        Ranking of experiments from `dagpost.next_experiment`, for a section of its own.
    overwrite
        Whether to replace an existing file; otherwise it is an error.

    Returns
    -------
    pathlib.Path
        The file written.

    Examples
    --------
    >>> import dagpost as dp, tempfile
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=0).train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dp.write_report(post, f"{folder}/report.html").name
    'report.html'
    """
    check_target(path, overwrite)
    summary: dict[str, Any] = {} if title is None else {"table": title}
    if experiment is not None:
        summary["next"] = experiment.plain()
    return write_atomically(path, html_report(post, summary).encode(), overwrite)


def html_report(post: Posterior, summary: Mapping[str, Any] | None = None) -> str:
    """Return the interactive report as HTML.

    Parameters
    ----------
    post
        The posterior.
    summary
        What the command line knows about the run: table, options, seconds, assumptions, and under "next" a ranking of
        experiments (`NextExperiment.plain`).

    Returns
    -------
    str
        The page.
    """
    summary = summary or {}
    post = replace(post, marginals=post.edge_marginals)  # computed once
    assessment, curves = assess(post), functions(post)
    script, style, library = page_script(), resource("html/page.css"), resource("vendor/cytoscape.min.js")
    parts = {
        "policy": policy([library, script], [style]),
        "title": escape(str(summary.get("table", f"{post.nodes} variables"))),
        "style": style,
        "glance": sections.glance(post),
        "trust": sections.trust(assessment),
        "targets-link": '<a href="#targets">Targets</a>' if post.record.targets is not None else "",
        "targets": targets_section(post),
        "functions-link": '<a href="#functions">Functions</a>' if curves else "",
        "functions": curves,
        "next-link": '<a href="#next">Next experiment</a>' if summary.get("next") else "",
        "next": gains.section(summary.get("next")),
        "clusters-link": '<a href="#clusters">Clusters</a>' if is_wide(post) else "",
        "clusters": clusters_section(post),
        "measures": sections.measures(assessment),
        "knowledge": sections.knowledge(post),
        "options": sections.options(post, summary),
        "data-summary": sections.data(post),
        "content": as_script_json(content_of(post)),
        "library": library,
        "script": script,
    }
    return fill(resource("html/page.html"), parts)


def fill(template: str, parts: Mapping[str, str]) -> str:
    """Return the template with each `{{name}}` replaced, in one pass: inserted text is not searched again."""
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda match: parts[match[1]], template)


def resource(name: str) -> str:
    """Return the text of a file that comes with this package."""
    return files("dagpost.report").joinpath(*name.split("/")).read_text(encoding="utf-8")


def page_script() -> str:
    """Return the scripts of the page as one, in a scope of its own."""
    body = "\n".join(resource(f"html/{name}") for name in SCRIPTS)
    return '"use strict";\n(() => {\n' + body + "})();\n"


def as_script_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for bad, good in UNSAFE_IN_JSON.items():
        text = text.replace(bad, good)
    return text


def policy(scripts: list[str], styles: list[str]) -> str:
    """Return a Content-Security-Policy that allows these scripts and styles and embedded images, nothing else."""
    script, style = (" ".join(f"'sha256-{digest(text)}'" for text in texts) for texts in (scripts, styles))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """Return the SHA-256 digest of a text in Base64."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
