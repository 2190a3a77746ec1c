"""Static sections of the HTML report: headline, trust, prior knowledge, options and data. Every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import numpy as np

from dagpost.posterior import Posterior
from dagpost.posterior.pairs import adjacency, settled_directions
from dagpost.report.trust import Assessment
from dagpost.report.words import described, method_sentence, option_phrases

SYMBOLS = {"good": "✓", "caution": "!", "bad": "✗"}
SPOKEN_LEVELS = {"good": "good", "caution": "with care", "bad": "bad"}


def glance(post: Posterior) -> str:
    """Return the key numbers of the posterior as a list of tiles."""
    either = np.triu(adjacency(post.edge_marginals), 1)
    settled = settled_directions(post.edge_marginals)
    sure = either >= 0.95
    tiles = [
        (f"{post.nodes:,}", "variables"),
        (_number(post.record.provenance.rows), "rows of data"),
        (f"{post.expected_edges:.1f}", "edges expected"),
        (f"{int(sure.sum()):,}", "pairs adjacent with probability 0.95 or more"),
        (f"{int((sure & ~(settled | settled.T)).sum()):,}", "of these with an open direction"),
        (f"{int(((either > 0.05) & (either < 0.95)).sum()):,}", "pairs undecided (0.05 to 0.95)"),
    ]
    items = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(value)}</dd></div>" for value, what in tiles)
    return f'<dl class="glance">{items}</dl>'


def trust(assessment: Assessment) -> str:
    """Return the verdict with its reasons."""
    reasons = "".join(
        f'<li class="{r.level}">'
        f'<span class="sign" role="img" aria-label="{SPOKEN_LEVELS[r.level]}">{SYMBOLS[r.level]}</span>'
        f"<span>{escape(r.text)}</span></li>"
        for r in assessment.reasons
    )
    return (
        f'<section class="verdict {assessment.level}" aria-labelledby="trust-title">'
        '<h2 id="trust-title"><span class="small">Can these probabilities be trusted?</span> '
        f"{escape(assessment.headline)}</h2>"
        f'<ul class="reasons">{reasons}</ul></section>'
    )


def measures(assessment: Assessment) -> str:
    """Return the diagnostics behind the verdict as a table."""
    return _table(("diagnostic", "value", "what it means"), assessment.measures)


def knowledge(post: Posterior) -> str:
    """Return the prior knowledge, and whether every graph satisfies it."""
    known = post.prior.constraints
    if known is None:
        return "<p>None was given: every edge was possible a priori.</p>"
    kept = int(known.honoured_by(post.graphs).sum())
    if kept == len(post):
        checked = f'<p class="good">✓ Honoured: all {len(post):,} graphs were checked.</p>'
    else:
        checked = f'<p class="bad">✗ {len(post) - kept:,} of {len(post):,} graphs violate it.</p>'
    return checked + _table(("kind", "what"), _knowledge_rows(post)) + _odds(post)


def _knowledge_rows(post: Posterior) -> list[tuple[str, str]]:
    """Return the rows of the knowledge table: kind and content."""
    known, names = post.prior.constraints, post.names
    assert known is not None
    given: Mapping[str, Any] = post.record.provenance.knowledge or {}

    def edges(pairs: Iterable[tuple[int, int]]) -> str:
        return "; ".join(f"{names[i]} → {names[j]}" for i, j in pairs)

    rows = []
    if known.present:
        rows.append(("required edges", edges(known.present)))
    if "tiers" in given:
        rows.append(("tiers, earlier to later", " | ".join(", ".join(tier) for tier in given["tiers"])))
    for key, words in (("roots", "roots (no causes)"), ("leaves", "leaves (no effects)")):
        if key in given:
            rows.append((words, ", ".join(given[key])))
    forbidden = [tuple(e) if not isinstance(e, str) else e for e in given.get("forbidden", [])]
    if forbidden:
        rows.append(("forbidden edges", "; ".join(e if isinstance(e, str) else " → ".join(e) for e in forbidden)))
    if known.absent:
        rows.append(("edges ruled out in total", f"{len(set(known.absent)):,} of {post.nodes * (post.nodes - 1):,}"))
    if known.max_parents is not None:
        rows.append(("most parents of a node", str(known.max_parents)))
    return rows


def _odds(post: Posterior) -> str:
    """Return a table of prior edge probabilities beside the posterior ones."""
    known, p = post.prior.constraints, post.edge_marginals
    if known is None or not known.odds:
        return ""
    rows = [
        (f"{post.names[i]} → {post.names[j]}", f"{1 / (1 + np.exp(-odds)):.3f}", f"{p[i, j]:.3f}")
        for i, j, odds in known.odds
    ]
    return _table(("edge with a prior probability", "prior", "posterior"), rows)


def options(post: Posterior, summary: Mapping[str, Any]) -> str:
    """Return how the posterior was computed, as a table."""
    from dagpost import __version__

    provenance, diagnostics = post.record.provenance, post.record.diagnostics
    method = str(summary.get("method", post.record.method or ""))
    seconds = summary.get("seconds", provenance.total_seconds)
    rows: list[tuple[str, Any]] = [
        ("table", summary.get("table")),
        ("model", described(summary.get("model", post.model))),
        ("prior", described(summary.get("prior", post.prior))),
        ("method", method_sentence(method, diagnostics) or None),
        ("settings", option_phrases(provenance.options, diagnostics) or None),
        ("duration", None if seconds is None else f"{seconds:,.1f} seconds"),
        ("units", "standardised columns" if post.scaling is not None else "as in the table"),
        ("dagpost", summary.get("dagpost", __version__)),
        ("SHA-256 of the data", provenance.data_hash),
    ]
    assumptions = [
        (f"assumed: {what}", text)
        for what, text in (post.record.assumptions or dict(summary.get("assumed", {}))).items()
    ]
    return _table(("what", "setting"), [(k, str(v)) for k, v in [*rows, *assumptions] if v is not None])


def data(post: Posterior) -> str:
    """Return a table of the columns with the statistics that the posterior has."""
    columns: dict[str, list[str]] = {"column": list(post.names)}
    scaling = post.scaling
    raw = None if post.data is None else post.data.raw().values
    if raw is not None:
        columns |= {
            "mean": _numbers(raw.mean(axis=0)),
            "standard deviation": _numbers(raw.std(axis=0)),
            "smallest": _numbers(raw.min(axis=0)),
            "largest": _numbers(raw.max(axis=0)),
        }
    elif scaling is not None:
        columns |= {"mean": _numbers(scaling.mean), "standard deviation": _numbers(scaling.scale)}
    if post.data is not None and post.data.intervened.any():
        columns["rows under intervention"] = [f"{n:,}" for n in post.data.intervened.sum(axis=0)]
    p = post.edge_marginals
    columns |= {
        "causes expected": [f"{v:.2f}" for v in p.sum(axis=0)],
        "effects expected": [f"{v:.2f}" for v in p.sum(axis=1)],
    }
    return _table(tuple(columns), zip(*columns.values()))


def _table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table, escaped."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _numbers(values: np.ndarray) -> list[str]:
    """Return the values with four significant digits."""
    return [f"{v:.4g}" for v in values]


def _number(value: Any) -> str:
    """Return a count with separators, or "unknown"."""
    return f"{value:,}" if isinstance(value, int) else "unknown"
