"""The ranking of experiments: its tables, its sentence, and what makes it less sure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from dagpost.design.information import FEW_OUTCOMES, FEWEST_IN_BIN, Strata
from dagpost.design.outcomes import with_path
from dagpost.errors import printable
from dagpost.posterior import Posterior
from dagpost.posterior.notebook import titled_table

NEAR = 0.8
"""Share of the entropy from which on a gain is called near to it."""
FEW_DRAWS = 100
"""Effective number of draws below which a ranking rests on few."""
CLEAR = 2.0
"""Standard errors from which on a difference is called clear."""


@dataclass(frozen=True, eq=False, repr=False)
class NextExperiment:
    """Experiments ranked by expected information gain, in nats.

    Attributes
    ----------
    table
        A row for each candidate, the best first: `experiment` (names of the nodes that are set), `sets` (to which
        values, in raw units), `gain`, its Monte Carlo standard error `error`, and how far it is `behind` the best, with
        `behind_error`, which is smaller, since all candidates are judged on the same simulated truths.
    batch
        A row for each chosen experiment, in the order of choice: `experiment`, `sets`, `gain` of all up to it together,
        `error`, and the gain that it `added`.
    about
        Cause and effect, where the gain is about an effect; None for the graph.
    entropy
        Uncertainty about the graph, or the bin of the effect, in nats: no gain is larger.
    rows
        Rows of each experiment.
    outcomes
        Simulated outcomes of each experiment.
    bound
        What the estimate is on average, compared with the gain itself.
    choices
        Names of the nodes of each chosen experiment.
    notes
        What makes the ranking less sure than its errors say; part of the sentence.
    """

    table: pd.DataFrame
    batch: pd.DataFrame
    about: tuple[str, str] | None
    entropy: float
    rows: int
    outcomes: int
    bound: str
    choices: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def best(self) -> tuple[str, ...]:
        """Names of the nodes to set in the next experiment."""
        return self.choices[0]

    @property
    def sentence(self) -> str:
        """The result in plain words."""
        what = "the graph" if self.about is None else f"the effect of {printable(self.about[0])} on {self._effect}"
        rows = f"{self.rows} row{'s' * (self.rows > 1)}"
        if self.entropy == 0:
            return f"There is nothing to learn about {what}: the posterior is certain."
        chosen = ", then ".join(printable(name) for name in self.batch["experiment"])
        last = self.batch.iloc[-1]
        text = (
            f"Set {chosen} next ({rows}{' each' * (len(self.batch) > 1)}): "
            f"{self._interval(last['gain'], CLEAR * last['error'])} of {self.entropy:.3g} nats about {what} expected."
        )
        others = self.table.iloc[1:]
        close = others[others["behind"] <= CLEAR * others["behind_error"]]
        if len(self.batch) == 1 and len(close):
            more = f" and {len(close) - 3} more" if len(close) > 3 else ""
            names = ", ".join(printable(name) for name in close["experiment"][:3])
            text += f" Not clearly better than {names}{more}."
        return " ".join([text, *self.notes])

    def _interval(self, gain: float, margin: float) -> str:
        """Return a gain with its margin; as an interval that ends at the entropy, where it would reach above that."""
        if gain + margin <= self.entropy:
            return f"{gain:.3g} ± {margin:.2g}"
        low = min(max(gain - margin, 0.0), self.entropy)
        beyond = gain > self.entropy * (1 + 1e-9)
        return f"between {low:.3g} and all{f' (the estimate, {gain:.3g}, is above that by chance)' if beyond else ''}"

    @property
    def _effect(self) -> str:
        assert self.about is not None
        return printable(self.about[1])

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON and reports."""
        out: dict[str, Any] = {
            name: getattr(self, name) for name in ("about", "entropy", "rows", "outcomes", "bound", "notes")
        }
        tables = {"experiments": self.table.to_dict("records"), "batch": self.batch.to_dict("records")}
        return {**out, "choices": [list(names) for names in self.choices], "sentence": self.sentence, **tables}

    def _repr_html_(self) -> str:
        """The ranking as a table, in notebooks."""
        title = "Expected information gain, nats"
        return titled_table(title, self.table.drop(columns=["behind", "behind_error"]), self.sentence)

    def __repr__(self) -> str:
        parts = [self.table.round(4).to_string(index=False)]
        if len(self.batch) > 1:
            parts.append(self.batch.round(4).to_string(index=False))
        return "\n".join([*parts, self.sentence])


def ranking_of(labels: list[str], texts: list[str], gains: Float[np.ndarray, "c r s"], strata: Strata) -> pd.DataFrame:
    """Return the candidates with gains and errors, the best first."""
    means = strata.mean(gains)
    order = np.argsort(-means, kind="stable")
    behind = gains[order[0]] - gains[order]
    columns = {
        "experiment": [labels[c] for c in order],
        "sets": [texts[c] for c in order],
        "gain": means[order],
        "error": strata.error(gains[order]),
        "behind": strata.mean(behind),
        "behind_error": strata.error(behind),
    }
    return pd.DataFrame(columns)


def batch_of(
    labels: list[str], texts: list[str], steps: list[np.ndarray], order: list[int], strata: Strata
) -> pd.DataFrame:
    """Return the chosen experiments with the gain of all up to each."""
    gains = np.array([step[c] for step, c in zip(steps, order)])
    total = strata.mean(gains)
    columns = {
        "experiment": [labels[c] for c in order],
        "sets": [texts[c] for c in order],
        "gain": total,
        "error": strata.error(gains),
        "added": np.diff(total, prepend=0.0),
    }
    return pd.DataFrame(columns)


def notes_of(post: Posterior, pair: tuple[int, int] | None, entropy: float, gain: float, strata: Strata) -> list[str]:
    """Return what makes a ranking less sure than its errors say, as sentences."""
    if entropy <= 0:
        return []
    out = []
    if pair is not None and strata.fewest < FEW_OUTCOMES:
        out.append(f"Some intervals of the effect have only {strata.fewest} simulated outcomes: give more `outcomes`.")
    if post.is_exhaustive:
        return out
    effective = 1 / (post.weights**2).sum()
    cure = "fit with more `draws` or `particles` to make it surer."
    path = np.zeros(0, dtype=np.bool_) if pair is None else with_path(post, *pair)[post.weights > 0]
    rarer = min(path.sum(), (~path).sum())
    if effective < FEW_DRAWS:
        out.append(f"The ranking rests on few draws, {effective:.0f} in effect: {cure}")
    elif pair is not None and 0 < rarer < FEWEST_IN_BIN:
        ends = " to ".join(printable(post.names[k]) for k in pair)
        which = "have" if path.mean() < 0.5 else "are without"
        out.append(f"The ranking rests on few draws, {rarer} of {len(path)} {which} a path from {ends}: {cure}")
    elif pair is None and gain > NEAR * entropy:
        out.append(f"Gains are near to the {entropy:.3g} nats that the draws hold, so that few of them tell: {cure}")
    return out
