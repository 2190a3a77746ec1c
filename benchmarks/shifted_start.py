"""Why do linear particles of dibs-lib end elsewhere? Because of where they start.

    python benchmarks/shifted_start.py [--sets 3] [--studies linear-20 sachs] [--out FILE]

dibs-lib draws the first weights of its linear particles from the prior and moves them away from zero by 0.5; the paper
does not. Runs `dibs-paper` on data of the studies with weights that start like that, and prints the means beside those
that the committed tables hold for `dibs-paper` and for dibs-lib on the same data sets (protein data: all restarts).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import pandas as pd
from paired import RESULTS

import dagpost as dp
from dagpost.studies import STUDIES, Scale, Task, select_tasks
from dagpost.studies.experiments import MEASURES
from dagpost.studies.experiments.fitting import Fitted
from dagpost.studies.numbers import Tables, matching
from dagpost.studies.tables import AS_PUBLISHED

SHIFT = 0.5
METHODS = ("dibs-paper", "dibs-paper+", "dibs-lib", "dibs-lib+")
COLUMNS = ["shd", "auroc", "edges"]


@dataclass(frozen=True)
class AwayFromZero(dp.LinearGaussian):
    def sample_theta(self, key: Any, d: int) -> Any:
        return jax.tree.map(lambda weights: weights + SHIFT * jnp.sign(weights), super().sample_theta(key, d))


def started_away(data: dp.Dataset, run: Mapping[str, Any], prior: str, seed: int) -> Iterator[Fitted]:
    post = dp.fit(data, AwayFromZero(), prior, "dibs-paper", seed=seed, particles=run["particles"], progress=False)
    yield Fitted({"method": "shifted"}, post)
    yield Fitted({"method": "shifted+"}, post.weighted("posterior"))


def tasks_of(study: str, sets: int) -> list[Task]:
    tasks = select_tasks(STUDIES[study].tasks(Scale(sets)), ["model=linear", "method=dibs-paper"])
    return [t for t in tasks if t.data.get("graphs") in (None, "erdos-renyi")]


def committed(study: str, sets: int) -> pd.DataFrame:
    table = pd.DataFrame(matching(Tables(RESULTS).rows(study), {"model": "linear", "method": METHODS}))
    return table[(table["graphs"] == "erdos-renyi") & (table["set"] < sets)] if "set" in table else table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--studies", nargs="+", default=["linear-20", "sachs"])
    parser.add_argument("--out", help="write one row for each posterior of a shifted run")
    options = parser.parse_args()
    made = []
    for study in options.studies:
        rows = []
        for task in tasks_of(study, options.sets):
            rows += [{"study": study, **task.labels, **row} for row in MEASURES[task.kind](task, started_away)]
        made += rows
        if options.out:
            pd.DataFrame(made).to_csv(options.out, index=False)
        table = pd.DataFrame(rows + committed(study, options.sets).to_dict("records"))
        if "truth" in table:
            table = table[table["truth"] == AS_PUBLISHED]
        by_method = table.groupby("method")[COLUMNS]
        print(study, by_method.mean().round(3).assign(runs=by_method.size()).to_string(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
