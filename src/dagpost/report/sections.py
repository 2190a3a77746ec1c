"""Static sections of the HTML report: headline, trust, prior knowledge, options and data. Every text is escaped.

How far a posterior can be trusted follows from the diagnostics of its run (`assess`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np

from dagpost.inference.mcmc.diagnostics import LARGEST_RHAT, SMALLEST_ESS
from dagpost.posterior import Posterior
from dagpost.posterior.features import effective_draws
from dagpost.posterior.pairs import LEAST_SHARE, adjacency, settled_directions
from dagpost.posterior.records import ExactDiagnostics, ParticleDiagnostics, ResamplingDiagnostics
from dagpost.report.words import described, method_sentence, option_phrases

Level = Literal["good", "caution", "bad"]


class Reason(NamedTuple):
    """One reason for or against trust."""

    level: Level
    text: str


class Measure(NamedTuple):
    """A diagnostic of the run and what it means."""

    what: str
    value: str
    meaning: str


class Assessment(NamedTuple):
    """Verdict on a posterior, with its reasons and the diagnostics behind it."""

    level: Level
    headline: str
    reasons: list[Reason]
    measures: list[Measure]


def assess(post: Posterior) -> Assessment:
    """Return the verdict on a posterior.

    The level and the headline follow from the method's own diagnostics. Further reasons name cyclic particles, few
    rows, open directions, and the assumptions that no diagnostic can check.
    """
    level, headline, reasons = _about_method(post)
    reasons = [*reasons, *_about_cycles(post), *_about_data(post), *_about_directions(post), _about_model(post)]
    return Assessment(level, headline, reasons, _measures(post))


def _about_method(post: Posterior) -> tuple[Level, str, list[Reason]]:
    """Return level, headline and reasons that follow from the method and its diagnostics."""
    record, graphs = post.record, len(post)
    found = record.diagnostics
    if isinstance(found, ExactDiagnostics) and found.algorithm == "orders":
        assert record.verdict is not None
        level: Level = "good" if record.verdict.trusted else "caution"
        headline = "As a computation, yes: these are" if record.verdict.trusted else "With care: these are few"
        return level, f"{headline} independent draws of the exact posterior.", [Reason(level, record.verdict.text)]
    if record.method == "exact" or isinstance(found, ExactDiagnostics):
        reasons = [Reason("good", "Edge probabilities are sums over all graphs: they carry no sampling error.")]
        if not post.is_exhaustive:
            reasons.append(
                Reason(
                    "good",
                    f"Paths, parent sets and classes are averages over {graphs:,} independent exact draws, "
                    f"with a sampling error of about ±{1 / np.sqrt(graphs):.2g}.",
                )
            )
        return "good", "As a computation, yes: this posterior is exact.", reasons
    verdict = record.verdict
    if verdict is not None and verdict.trusted is not None:
        if verdict.trusted:
            return "good", "As a computation, yes: independent chains agree.", [Reason("good", verdict.text)]
        return "bad", "Not yet: the chains have not mixed.", [Reason("bad", verdict.text)]
    if isinstance(record.diagnostics, ResamplingDiagnostics):
        text = "The graphs come from resamples of the data, weighted by their posterior density; no sampler was run."
        return "caution", "With care: a bootstrap stands in for the posterior.", [Reason("caution", text)]
    if isinstance(record.diagnostics, ParticleDiagnostics):
        text = (
            f"{graphs:,} particles represent the whole posterior: probabilities come in steps of about "
            f"{1 / graphs:.2g}, and regions without a particle are missed."
        )
        reasons = [Reason("caution", text)]
        if verdict is not None:
            reasons.insert(0, Reason("caution", verdict.text))
        return "caution", "With care: an approximation by a few particles.", reasons
    cut_short = [Reason("bad", verdict.text)] if verdict is not None else []
    text = (
        f"A single chain with {graphs:,} graphs cannot show whether it has explored the whole posterior: "
        "compare runs with different seeds."
    )
    return "caution", "With care: no diagnostic was computed.", [*cut_short, Reason("caution", text)]


def _about_cycles(post: Posterior) -> list[Reason]:
    """Return a warning where particles had cycles."""
    found = post.record.diagnostics
    if not isinstance(found, ParticleDiagnostics) or not found.cyclic:
        return []
    handled = "dropped" if found.cyclic_handling == "drop" else "repaired"
    return [Reason("caution", f"{found.cyclic} of {found.particles} particles had a cycle and were {handled}.")]


def _about_data(post: Posterior) -> list[Reason]:
    """Return a warning where there are few rows for the number of columns."""
    rows = post.record.provenance.rows
    if rows is None or rows >= 5 * post.nodes:
        return []
    return [Reason("caution", f"{rows:,} rows for {post.nodes} columns are few: the prior has a strong influence.")]


def _about_directions(post: Posterior) -> list[Reason]:
    """Return a warning where pairs are surely adjacent, but their direction is open."""
    p = post.edge_marginals
    joined, settled = np.triu(adjacency(p), 1) >= 0.9, settled_directions(p)
    count, open_ = int(joined.sum()), int((joined & ~(settled | settled.T)).sum())
    if not open_:
        return []
    text = (
        f"{open_} of {count} pairs that are adjacent with probability 0.9 or more may point either way (neither "
        f"direction has {LEAST_SHARE:.0%} of that). Graphs that differ in such directions can fit equally well; "
        "interventions distinguish them."
    )
    return [Reason("caution", text)]


def _about_model(post: Posterior) -> Reason:
    """Return the assumptions of the model."""
    what = post.model.assumption or f"the model {post.model.name!r} holds"
    text = (
        f"All results rest on these assumptions: {what}, no unmeasured common cause, no feedback. "
        "No diagnostic on this page can check them."
    )
    return Reason("caution", text)


def _units(post: Posterior) -> str:
    """Return the units of the columns, or that there are none."""
    if post.model.categorical:
        return f"categories, {min(map(len, post.levels))} to {max(map(len, post.levels))} levels"
    return "standardised columns" if post.scaling is not None else "as in the table"


def _measures(post: Posterior) -> list[Measure]:
    """Return the diagnostics that the run has recorded."""
    diagnostics = post.record.diagnostics
    out = [Measure("graphs in the posterior", f"{len(post):,}", "each one a directed acyclic graph")]
    effective = effective_draws(post)
    if effective < 0.99 * len(post):
        meaning = "1 / Σ weight²: a small number means a peaked posterior"
        out.append(Measure("effective number of graphs", f"{effective:,.1f}", meaning))
    most, least = f"should be at most {LARGEST_RHAT}", f"should be at least {SMALLEST_ESS:.0f}"
    descriptions = {
        "rhat": ("largest split-R̂ of an edge", f"agreement of the chains; {most}"),
        "rhat_log_posterior": ("split-R̂ of the log posterior", f"agreement of the chains in fit; {most}"),
        "ess": (
            "smallest effective sample size of an edge",
            f"independent draws with the same error; {least}",
        ),
        "ess_log_posterior": ("effective sample size of the log posterior", least),
        "error": ("largest standard error of an edge probability", "remaining Monte Carlo error"),
        "acceptance": ("acceptance rate", "accepted share of the proposed moves"),
        "cyclic": ("particles with a cycle", "dropped or repaired, depending on the method"),
        "log_evidence": ("log evidence", "log p(data), for comparing models on the same data"),
    }
    for key, (what, meaning) in descriptions.items():
        if value := _format(getattr(diagnostics, key, None)):
            out.append(Measure(what, value, meaning))
    return out


def _format(value: Any) -> str:
    """Return a number, or a dict of numbers, as text; the empty string for anything else."""
    if isinstance(value, Mapping):
        return ", ".join(f"{k} {_format(v)}" for k, v in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if not isfinite(value):
        return "infinite" if value > 0 else "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.4g}"


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
    return html_table(("diagnostic", "value", "what it means"), assessment.measures)


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
    return checked + html_table(("kind", "what"), _knowledge_rows(post)) + _odds(post)


def _knowledge_rows(post: Posterior) -> list[tuple[str, str]]:
    """Return the rows of the knowledge table: kind and content."""
    known, names = post.prior.constraints, post.names
    assert known is not None
    given: Mapping[str, Any] = post.record.provenance.knowledge or {}

    def edges(pairs: Iterable[tuple[int, int]]) -> str:
        return "; ".join(f"{names[i]} → {names[j]}" for i, j in pairs)

    rows = []
    if post.record.provenance.lags:
        rows.append(("time", "edges lead into the present alone, from the row before or within the row"))
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
    return html_table(("edge with a prior probability", "prior", "posterior"), rows)


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
        ("units", _units(post)),
        ("dagpost", summary.get("dagpost", __version__)),
        ("SHA-256 of the data", provenance.data_hash),
    ]
    assumptions = [
        (f"assumed: {what}", text)
        for what, text in (post.record.assumptions or dict(summary.get("assumed", {}))).items()
    ]
    return html_table(("what", "setting"), [(k, str(v)) for k, v in [*rows, *assumptions] if v is not None])


def data(post: Posterior) -> str:
    """Return a table of the columns with the statistics that the posterior has."""
    columns: dict[str, list[str]] = {"column": list(post.names)}
    scaling = post.scaling
    raw = None if post.data is None else post.data.raw().values
    if raw is not None:
        columns |= {
            "mean": _numbers(np.nanmean(raw, axis=0)),
            "standard deviation": _numbers(np.nanstd(raw, axis=0)),
            "smallest": _numbers(np.nanmin(raw, axis=0)),
            "largest": _numbers(np.nanmax(raw, axis=0)),
        }
    elif scaling is not None:
        columns |= {"mean": _numbers(scaling.mean), "standard deviation": _numbers(scaling.scale)}
    if post.data is not None and post.data.intervened.any():
        columns["rows under intervention"] = [f"{n:,}" for n in post.data.intervened.sum(axis=0)]
    lacking, count = post.record.provenance.missing or {}, max(post.record.provenance.rows or 0, 1)
    if lacking:
        own = [lacking.get(name, 0) for name in post.names]
        columns["missing cells"] = [f"{n:,} ({100 * n / count:.1f} %)" if n else "none" for n in own]
    p = post.edge_marginals
    columns |= {
        "causes expected": [f"{v:.2f}" for v in p.sum(axis=0)],
        "effects expected": [f"{v:.2f}" for v in p.sum(axis=1)],
    }
    return _missing(post) + html_table(tuple(columns), zip(*columns.values()))


def _missing(post: Posterior) -> str:
    """Return a paragraph on missing cells, if there were any."""
    lacking, rows = post.record.provenance.missing or {}, post.record.provenance.rows or 0
    if not lacking:
        return ""
    cells = sum(lacking.values())
    share = f" ({100 * cells / (rows * post.nodes):.1f} %)" if rows else ""
    text = (
        f"{cells:,} cells{share} of {len(lacking)} of {post.nodes} columns were missing. They were drawn together with "
        "the graphs, so that all probabilities and intervals allow for what is not known of them; whether a cell is "
        "missing must not depend on its value given the observed cells of its row. post.imputed() has completed tables."
    )
    return f"<p>{escape(text)}</p>"


def html_table(heads: tuple[str, ...], rows: Iterable[Iterable[str]]) -> str:
    """Return an HTML table, escaped."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    body = "".join("<tr>" + "".join(f"<td>{_cell(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


class Markup(str):
    """HTML made here, which a table takes as it is."""


def _cell(text: str) -> str:
    """Return the HTML of a cell."""
    return text if isinstance(text, Markup) else escape(text)


def _numbers(values: np.ndarray) -> list[str]:
    """Return the values with four significant digits."""
    return [f"{v:.4g}" for v in values]


def _number(value: Any) -> str:
    """Return a count with separators, or "unknown"."""
    return f"{value:,}" if isinstance(value, int) else "unknown"
