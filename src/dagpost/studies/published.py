"""The paper's own figures, as far as it gives numbers: `published.csv`, copied from its tables and text.

Lorch, Rothfuss, Schölkopf and Krause, DiBS: Differentiable Bayesian Structure Learning, NeurIPS 2021. Results on
simulated networks and the ablations are given as plots alone. Column `where` names the row by columns of our tables;
what the paper calls DiBS is `dibs-paper` there, DiBS+ is `dibs-paper+`. Numbers of edges come from its text.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class Published:
    """One number of the paper; `sd` is None where it gives none."""

    metric: str
    where: tuple[tuple[str, str], ...]
    mean: float
    sd: float | None

    def is_about(self, names: Mapping[str, Any]) -> bool:
        """Whether a row of ours with these values is the same thing."""
        return all(name in names and _same(names[name], value) for name, value in self.where)


def _same(ours: Any, theirs: str) -> bool:
    return float(theirs) == float(ours) if isinstance(ours, int | float) else str(ours) == theirs


@lru_cache(maxsize=1)
def _all() -> dict[str, tuple[Published, ...]]:
    text = (resources.files("dagpost.studies") / "published.csv").read_text(encoding="utf-8")
    out: dict[str, list[Published]] = {}
    for row in csv.DictReader(text.splitlines()):
        where = tuple((name, value) for name, _, value in (w.partition("=") for w in row["where"].split(";")))
        sd = float(row["sd"]) if row["sd"] else None
        out.setdefault(row["study"], []).append(Published(row["metric"], where, float(row["mean"]), sd))
    return {study: tuple(numbers) for study, numbers in out.items()}


def published(study: str) -> tuple[Published, ...]:
    """What the paper gives in numbers for a study; nothing where it has plots alone."""
    return _all().get(study, ())
