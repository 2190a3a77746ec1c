"""The report as plain text."""

from __future__ import annotations

from typing import Any

from dagpost.errors import printable

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
