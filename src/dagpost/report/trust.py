"""Assessment of how far a posterior can be trusted: the diagnostics of a run in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np

from dagpost.inference.mcmc.diagnostics import LARGEST_RHAT, SMALLEST_ESS
from dagpost.posterior import Posterior
from dagpost.posterior.features import effective_draws
from dagpost.posterior.pairs import LEAST_SHARE, adjacency, settled_directions
from dagpost.posterior.records import ExactDiagnostics, ParticleDiagnostics, ResamplingDiagnostics

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
    if record.method == "exact" or isinstance(record.diagnostics, ExactDiagnostics):
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
