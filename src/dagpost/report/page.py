"""The report as plain text.

The interactive report: one HTML file with everything inside, which asks nothing of any host.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from dagpost._util.files import check_target, write_atomically
from dagpost.errors import printable
from dagpost.posterior import Posterior
from dagpost.report import sections
from dagpost.report.content import content_of
from dagpost.report.trust import judged

SHOWN = 0.01
"""Edges less probable than this are left out of the table."""


def text_report(summary: dict[str, Any]) -> str:
    """What was done, how far to trust it, and every edge with some probability."""
    lines = [
        f"Posterior over causal graphs: {printable(summary['table'])}",
        "",
        f"rows      {summary['rows']}",
        f"columns   {len(summary['names'])}",
        f"model     {summary['model']}",
        f"prior     {summary['prior']}",
        f"method    {summary['method']}, seed {summary['seed']}, {summary['seconds']:.1f} s",
        f"units     {'standardised' if summary['standardised'] else 'as in the table'}",
        f"graphs    {summary['graphs']}, with {summary['expected_edges']:.1f} edges expected",
    ]
    if "verdict" in summary["info"]:
        lines += ["", str(summary["info"]["verdict"])]
    lines += ["", *(f"assumed   {what}: {text}" for what, text in summary["assumed"].items()), "", "probability  edge"]
    shown = [e for e in summary["edges"] if e["probability"] >= SHOWN]
    lines += [f"{e['probability']:11.3f}  {printable(e['cause'])} -> {printable(e['effect'])}" for e in shown]
    lines.append(f"({len(summary['edges']) - len(shown)} edges with a probability below {SHOWN:g} are not listed)")
    return "\n".join(lines) + "\n"


SCRIPTS = (
    "tools.js", "lookup.js", "tooltip.js", "table.js", "details.js", "bends.js", "graph.js", "views.js", "heatmap.js",
    "tables.js", "main.js",
)  # fmt: skip
"""In this order: each uses those before it."""

UNSAFE_IN_JSON = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def write_report(
    post: Posterior,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the interactive report of a posterior: one HTML file that works offline.

    Causal effects are in it where they can be computed: from the parameters of the particles, or where the data are at
    hand (`post.with_data(...)` for a posterior from a file).

    >>> import dagpost as dp, tempfile
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=0).train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dp.write_report(post, f"{folder}/report.html").name
    'report.html'
    """
    check_target(path, overwrite)
    return write_atomically(path, html_report(post, {} if title is None else {"table": title}).encode(), overwrite)


def html_report(post: Posterior, summary: Mapping[str, Any] | None = None) -> str:
    """The page; `summary` adds what the command line knows (table, options, seconds, assumptions)."""
    said = summary or {}
    post = replace(post, marginals=post.edge_marginals)  # computed once
    judgement = judged(post)
    script, style, library = own_script(), resource("html/page.css"), resource("vendor/cytoscape.min.js")
    parts = {
        "policy": policy([library, script], [style]),
        "title": escape(str(said.get("table", f"{post.nodes} variables"))),
        "style": style,
        "glance": sections.glance(post),
        "trust": sections.trust(judgement),
        "measures": sections.measures(judgement),
        "knowledge": sections.knowledge(post),
        "options": sections.options(post, said),
        "data-summary": sections.data(post),
        "content": as_script_json(content_of(post)),
        "library": library,
        "script": script,
    }
    return filled(resource("html/page.html"), parts)


def filled(template: str, parts: Mapping[str, str]) -> str:
    """`{{name}}` replaced, in one pass: what is put in is not looked at again."""
    return re.sub(r"\{\{([a-z-]+)\}\}", lambda found: parts[found[1]], template)


def resource(name: str) -> str:
    """A file that comes with this package."""
    return files("dagpost.report").joinpath(*name.split("/")).read_text(encoding="utf-8")


def own_script() -> str:
    """The scripts of the page as one, in a scope of their own."""
    body = "\n".join(resource(f"html/{name}") for name in SCRIPTS)
    return '"use strict";\n(() => {\n' + body + "})();\n"


def as_script_json(value: Any) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for bad, good in UNSAFE_IN_JSON.items():
        text = text.replace(bad, good)
    return text


def policy(scripts: list[str], styles: list[str]) -> str:
    """Nothing may load, and nothing may run or style but these texts; pictures come from the page itself."""
    allowed = (" ".join(f"'sha256-{digest(text)}'" for text in texts) for texts in (scripts, styles))
    script, style = allowed
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
