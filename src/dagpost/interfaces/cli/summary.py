"""The summary of a run: summary.json, summary.txt and what `dagpost fit` prints at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dagpost import __version__
from dagpost.interfaces.cli.messages import pair_text

if TYPE_CHECKING:
    from dagpost.inference.defaults import Assumptions
    from dagpost.posterior import Posterior

LONG_COMPILING = 5.0
"""Seconds of compiling from which on the summary mentions them."""


def summarise(post: Posterior, table: str, assumptions: Assumptions, seed: int, seconds: float) -> dict[str, Any]:
    """Return the content of summary.json."""
    from dagpost.report.content import sign_of_pairs

    signs, pairs = sign_of_pairs(post), post.pair_table().to_dict("records")
    return {
        "dagpost": __version__,
        "table": table,
        "rows": assumptions.data.observations,
        "names": list(post.names),
        "model": repr(assumptions.model),
        "prior": repr(assumptions.prior),
        "method": assumptions.method,
        "seed": seed,
        "standardised": assumptions.data.scaling is not None,
        "assumed": dict(post.record.assumptions),
        "graphs": len(post),
        "expected_edges": post.expected_edges,
        "seconds": round(seconds, 3),
        "info": dict(post.info),
        "pairs": [{**pair, "sign": signs.get((pair["cause"], pair["effect"]))} for pair in pairs],
        "edges": post.edge_table().to_dict("records"),
    }


def summary_text(summary: dict[str, Any], top: int = 12) -> str:
    """Return the summary in a few lines, with the `top` pairs most probably joined."""
    likely = [pair for pair in summary["pairs"] if pair["adjacent"] >= 0.5]
    lines = [
        f"{summary['graphs']} graphs on {len(summary['names'])} nodes by {summary['method']} "
        f"in {summary['seconds']:.1f} s; {summary['expected_edges']:.1f} edges expected, "
        f"{len(likely)} pairs more probably joined than not"
    ]
    lines += [f"  {pair['adjacent']:.3f}  {pair_text(pair)}" for pair in likely[:top]]
    if len(likely) > top:
        lines.append(f"  … and {len(likely) - top} more")
    if "verdict" in summary["info"]:
        lines.append(str(summary["info"]["verdict"]))
    if summary["info"].get("model_fit"):
        lines.append(str(summary["info"]["model_fit"]))
    compiling = summary["info"].get("compiling", 0.0)
    if compiling >= LONG_COMPILING:
        lines.append(f"Compiling took {compiling:.0f} s of this; time limits exclude it, and later runs compile less.")
    return "\n".join(lines)
