"""Is this posterior to be trusted, and why: the diagnostics of a run in plain words."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np

from dagpost.inference.mcmc.diagnostics import LARGEST_RHAT, SMALLEST_ESS
from dagpost.posterior import Posterior

Level = Literal["good", "caution", "bad"]

ASSUMED = {
    "bge": "every relation is linear with Gaussian noise",
    "linear": "every relation is linear with Gaussian noise",
    "mlp": "every relation is a smooth function with Gaussian noise",
}


class Reason(NamedTuple):
    level: Level
    text: str


class Measure(NamedTuple):
    """A number of the run and what it means."""

    what: str
    value: str
    meaning: str


class Judgement(NamedTuple):
    level: Level
    headline: str
    reasons: list[Reason]
    measures: list[Measure]


def judged(post: Posterior) -> Judgement:
    """What the method says of itself, what is left open, and what no diagnostic can see."""
    level, headline, own = _about_method(post)
    reasons = [*own, *_about_cycles(post), *_about_data(post), *_about_directions(post), _about_model(post)]
    return Judgement(level, headline, reasons, _measures(post))


def _about_method(post: Posterior) -> tuple[Level, str, list[Reason]]:
    info, graphs = post.info, len(post)
    method = str(info.get("method", ""))
    if method == "exact":
        reasons = [Reason("good", "Edge probabilities are sums over all graphs: they carry no sampling error.")]
        if not post.is_exhaustive:
            reasons.append(
                Reason(
                    "good",
                    f"Paths, parent sets and classes are averages over {graphs:,} independent exact draws, "
                    f"good to about ±{1 / np.sqrt(graphs):.2g}.",
                )
            )
        return "good", "As a computation, yes: this posterior is exact.", reasons
    if "trusted" in info:
        verdict = str(info.get("verdict", ""))
        if info["trusted"]:
            return "good", "As a computation, yes: independent chains agree.", [Reason("good", verdict)]
        return "bad", "Not yet: the chains have not mixed.", [Reason("bad", verdict)]
    if method.startswith("bootstrap"):
        text = "The graphs come from resamples of the data, weighted by their posterior density; no sampler was run."
        return "caution", "With care: a bootstrap stands in for the posterior.", [Reason("caution", text)]
    if "particles" in info:
        text = (
            f"{graphs:,} particles stand for the whole posterior: probabilities come in steps of about "
            f"{1 / graphs:.2g}, and a region without a particle is missed."
        )
        reasons = [Reason("caution", text)]
        if "verdict" in info:
            reasons.insert(0, Reason("caution", str(info["verdict"])))
        return "caution", "With care: an approximation by a few particles.", reasons
    text = (
        f"A single chain with {graphs:,} graphs cannot show whether it has seen all of the posterior: "
        "compare runs with other seeds."
    )
    return "caution", "With care: no diagnostic was computed.", [Reason("caution", text)]


def _about_cycles(post: Posterior) -> list[Reason]:
    cyclic = post.info.get("cyclic", 0)
    if not cyclic:
        return []
    handled = "repaired" if post.info.get("cyclic_handling") not in (None, "drop") else "dropped"
    return [
        Reason("caution", f"{cyclic} of {post.info.get('particles', '?')} particles had a cycle and were {handled}.")
    ]


def _about_data(post: Posterior) -> list[Reason]:
    rows = post.info.get("rows")
    if rows is None or rows >= 5 * post.nodes:
        return []
    return [Reason("caution", f"{rows:,} rows for {post.nodes} columns are few: the prior weighs heavily here.")]


def _about_directions(post: Posterior) -> list[Reason]:
    """Pairs that are surely joined, but in which direction is open."""
    p = post.edge_marginals
    joined = np.triu(p + p.T, 1) >= 0.9
    count, open_ = int(joined.sum()), int((joined & (np.maximum(p, p.T) < 0.9)).sum())
    if not open_:
        return []
    text = (
        f"Of {count} pairs that are joined with probability 0.9 or more, {open_} may point either way (neither "
        "direction reaches 0.9). Graphs that differ in such directions can fit equally well; interventions tell them "
        "apart."
    )
    return [Reason("caution", text)]


def _about_model(post: Posterior) -> Reason:
    what = ASSUMED.get(post.model.name, f"the model {post.model.name!r} holds")
    text = (
        f"All of this is given the assumptions: {what}, no unmeasured common cause, no feedback. "
        "No diagnostic on this page can see whether they hold."
    )
    return Reason("caution", text)


def _measures(post: Posterior) -> list[Measure]:
    info = post.info
    out = [Measure("graphs in the posterior", f"{len(post):,}", "each one a directed acyclic graph")]
    effective = 1 / float(np.sum(post.weights**2))
    if effective < 0.99 * len(post):
        out.append(
            Measure("graphs that carry the weight", f"{effective:,.1f}", "1 / Σ weight²: few mean a peaked posterior")
        )
    most, least = f"at most {LARGEST_RHAT} is asked for", f"at least {SMALLEST_ESS:.0f} are asked for"
    known = {
        "rhat": ("largest split-R̂ of an edge", f"agreement of the chains; {most}"),
        "rhat_log_posterior": ("split-R̂ of the log posterior", f"the same for the fit; {most}"),
        "ess": ("smallest effective sample size of an edge", f"independent draws worth; {least}"),
        "ess_log_posterior": ("effective sample size of the log posterior", least),
        "error": ("largest standard error of an edge probability", "Monte Carlo error that is left"),
        "acceptance": ("accepted moves", "share of the proposed moves"),
        "cyclic": ("particles with a cycle", "not counted, or repaired, as the method says"),
        "log_evidence": ("log evidence", "log p(data), for comparing models on the same data"),
    }
    for key, (what, meaning) in known.items():
        if key in info and (shown := _shown(info[key])):
            out.append(Measure(what, shown, meaning))
    return out


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k} {_shown(v)}" for k, v in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    if not isfinite(value):
        return "infinite" if value > 0 else "unknown"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.4g}"
