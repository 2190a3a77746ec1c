"""What a run says of itself, as records with fields: diagnostics, verdict, provenance and assumptions.

`RunRecord.flat` gives all of it as one dictionary of plain values, for logs and JSON; `RunRecord.from_flat` reads such
a dictionary, which is also what posterior files of format 1 hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, asdict, dataclass, field, fields, replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np

EndedBy = Literal["diagnostics", "steps", "limit"]


@dataclass(frozen=True)
class Verdict:
    """Whether to trust a run, in a sentence.

    Attributes
    ----------
    text
        The sentence; it names what failed and what helps.
    trusted
        Whether the diagnostics passed; None for methods that have none.
    model_fit
        Whether the data look like the model, from its residuals; None where that was not tested.
    """

    text: str
    trusted: bool | None = None
    model_fit: str | None = None


@dataclass(frozen=True)
class Diagnostics:
    """Base class of what methods measure about their own run; `ended_by` is why the run ended, where it says so."""

    ended_by: EndedBy | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class ChainDiagnostics(Diagnostics):
    """Tempered chains (`dp.Auto`).

    Attributes
    ----------
    rhat, ess
        Largest split-R̂ and smallest effective sample size of an edge.
    error
        Largest standard error of an edge probability.
    rhat_log_posterior, ess_log_posterior
        The same of the log posterior.
    edge_errors
        Standard error of every edge probability.
    acceptance
        Share of accepted moves by kind of move, at temperature 1.
    swap_rates, heats
        Accepted exchanges between neighbouring levels, and the inverse temperatures of the levels.
    ensembles, rounds, moves
        Number of independent ensembles, rounds of each that count, and moves of all chains.
    seconds
        Duration of the chains.
    start
        Where the chains started.
    particles, steps
        Of DiBS, where they started from it.
    evidence_error, families
        Where evidence is integrated numerically: largest standard error of an edge probability that comes from it, and
        number of families estimated.
    outside_candidates
        Where only candidates can be parents: estimated number of edges per graph from other nodes.
    """

    rhat: float
    ess: float
    error: float
    rhat_log_posterior: float
    ess_log_posterior: float
    edge_errors: Sequence[Sequence[float]]
    acceptance: Mapping[str, float]
    swap_rates: Sequence[float]
    heats: Sequence[float]
    ensembles: int
    rounds: int
    moves: int
    seconds: float
    start: str = "dibs"
    particles: int | None = None
    steps: int | None = None
    evidence_error: float | None = None
    families: int | None = None
    outside_candidates: float | None = None


@dataclass(frozen=True)
class ParticleDiagnostics(Diagnostics):
    """DiBS: particles, how many had a cycle and what became of them, steps made, and Metropolis moves of each; of HMC
    the share of accepted trajectories at the end."""

    particles: int
    cyclic: int
    steps: int | None = None
    cyclic_handling: Literal["drop", "repair"] = "drop"
    moves: int = 0
    acceptance: float | None = None


@dataclass(frozen=True)
class SingleChainDiagnostics(Diagnostics):
    """MC³ and its variants: the schedule, the share of accepted moves, and the scale of the parameters' random walk."""

    burn_in: int
    thin: int
    neighbourhood: Literal["approximate", "exact"]
    acceptance: float
    scale: float | None = None


@dataclass(frozen=True)
class ResamplingDiagnostics(Diagnostics):
    """The DAG bootstrap: resamples made, those dropped, and for PC the level at the end and how often it was halved."""

    resamples: int
    dropped: int
    significance: float | None = None
    halvings: int | None = None


@dataclass(frozen=True)
class ExactDiagnostics(Diagnostics):
    """Exact inference: the algorithm, `log p(D)`, and the log of the sum of the unnormalised posterior.

    Where the graphs are drawn by way of orders: the number of orders drawn, the share of proposals that were accepted,
    and the standard error of every edge probability.
    """

    algorithm: Literal["enumerate", "layers", "orders"]
    log_evidence: float | None = None
    log_normaliser: float | None = None
    orders: int | None = None
    acceptance: float | None = None
    edge_errors: Sequence[Sequence[float]] | None = None


KINDS: tuple[type[Diagnostics], ...] = (
    ChainDiagnostics, ParticleDiagnostics, SingleChainDiagnostics, ResamplingDiagnostics, ExactDiagnostics,
)  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """Where a posterior comes from.

    Attributes
    ----------
    rows, data_hash
        Number of rows and SHA-256 of the data.
    scaling
        Means and standard deviations by which columns were standardised; None for raw units.
    kinds, levels
        Kind of each column and names of its categories; None where all columns are continuous.
    lags, series
        Of a table of two time slices: 1, and the column that named the series; else None.
    missing
        Number of missing cells by column, of columns that had any; None for a complete table.
    missing_values
        Texts and numbers that the user named as missing cells.
    conditions
        Column that named the conditions, if there was one.
    options
        Options of the run, the method and the seed included.
    knowledge
        Prior knowledge by names of columns, if there was any.
    total_seconds, compiling
        Duration of the whole run without compiling, and that of compiling.
    """

    rows: int | None = None
    data_hash: str | None = None
    scaling: Mapping[str, Sequence[float]] | None = None
    kinds: Sequence[str] | None = None
    levels: Sequence[Sequence[str]] | None = None
    lags: int | None = None
    series: str | None = None
    missing: Mapping[str, int] | None = None
    missing_values: list[str] | None = None
    conditions: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    knowledge: Mapping[str, Any] | None = None
    total_seconds: float | None = None
    compiling: float | None = None


class ImputedCells(NamedTuple):
    """Draws of the missing cells of a table, in units of the fit and as codes of levels."""

    rows: np.ndarray  # (c,)
    columns: np.ndarray  # (c,)
    values: np.ndarray  # (t, c)


@dataclass(frozen=True)
class TargetProbabilities:
    """Which condition changes the mechanism of which node.

    Attributes
    ----------
    conditions
        Names of the conditions.
    probability, prior
        Posterior and prior probability, by condition and node.
    change
        "soft": parents stay and parameters change; "hard": a changed node has no parents.
    """

    conditions: Sequence[str]
    probability: Sequence[Sequence[float]]
    prior: Sequence[Sequence[float]]
    change: Literal["soft", "hard"] = "soft"


@dataclass(frozen=True)
class Sampling:
    """How the graphs stand for the posterior.

    Attributes
    ----------
    exhaustive
        All DAGs with their exact probabilities.
    sample
        Draws of the posterior itself, for which equal weights are right.
    collapsed
        Whether parameters were integrated out while graphs were inferred; None: they were if there are none.
    chain_lengths
        Number of draws of every chain, where the graphs stand chain by chain.
    """

    exhaustive: bool = False
    sample: bool = False
    collapsed: bool | None = None
    chain_lengths: Sequence[int] | None = None


@dataclass(frozen=True)
class RunRecord:
    """Everything that a run says of itself.

    Attributes
    ----------
    method
        Name of the method.
    sampling
        How the graphs stand for the posterior.
    diagnostics
        What the method measured; its class depends on the method.
    verdict
        Whether to trust the run; None where the method does not judge itself.
    provenance
        Data, options and durations.
    assumptions
        What was assumed because nobody said otherwise, by topic.
    extra
        Entries of user-defined methods.
    targets
        Probabilities of the targets of conditions, where the data have conditions.
    """

    method: str = ""
    sampling: Sampling = field(default_factory=Sampling)
    diagnostics: Diagnostics | None = None
    verdict: Verdict | None = None
    provenance: Provenance = field(default_factory=Provenance)
    assumptions: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    targets: TargetProbabilities | None = None

    def with_sampling(self, **changes: Any) -> Self:
        """Return the record with these fields of `sampling` changed."""
        return replace(self, sampling=replace(self.sampling, **changes))

    def flat(self) -> dict[str, Any]:
        """Return all fields that are set in one dictionary."""
        out: dict[str, Any] = {"method": self.method} if self.method else {}
        for part in (self.sampling, self.diagnostics, self.provenance):
            if part is not None:
                out |= {f.name: getattr(part, f.name) for f in fields(part)}
        if self.verdict is not None:
            told = self.verdict
            out |= {"verdict": told.text, "trusted": told.trusted, "model_fit": told.model_fit}
        if self.targets is not None:
            out["targets"] = asdict(self.targets)
        out |= {"assumed": dict(self.assumptions), **self.extra}
        return {name: value for name, value in out.items() if not _is_unset(name, value)}

    @classmethod
    def from_flat(cls, info: Mapping[str, Any]) -> Self:
        """Build the record from a flat dictionary; entries without a field go to `extra`."""
        rest = dict(info)

        def take(kind: type) -> dict[str, Any]:
            return {f.name: rest.pop(f.name) for f in fields(kind) if f.name in rest}

        method = rest.pop("method", "")
        text, trusted, model_fit = (rest.pop(name, None) for name in ("verdict", "trusted", "model_fit"))
        sampling, diagnostics = Sampling(**take(Sampling)), None
        for kind in KINDS:
            if all(f.name in rest for f in fields(kind) if _is_required(f)):
                diagnostics = kind(**take(kind))
                break
        targets = rest.pop("targets", None)
        assumptions = rest.pop("assumptions", {}) or {}  # the name of "assumed" in older files
        assumptions = rest.pop("assumed", assumptions)
        verdict = None if text is None and trusted is None else Verdict(text or "", trusted, model_fit)
        return cls(
            method, sampling, diagnostics, verdict, Provenance(**take(Provenance)), assumptions, rest,
            None if targets is None else TargetProbabilities(**targets),
        )  # fmt: skip


def _is_required(entry: Field[Any]) -> bool:
    return entry.default is MISSING and entry.default_factory is MISSING


def _is_unset(name: str, value: Any) -> bool:
    if name in ("exhaustive", "sample", "options"):
        return not value
    return value is None
