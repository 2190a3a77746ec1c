"""The nonlinear posterior: how far do two runs of `auto` agree, on the networks of the studies `mlp-20` and `mlp-50`?

    python benchmarks/nonlinear_posterior.py [--nodes 20] [--data 0 1 2] [--limit SECONDS] [--once] [--table]
        [--store results] [--figure docs/images/nonlinear.png]

Each data set of the paper's protocol (Erdős–Rényi, neural networks, N = 100) is fitted twice. The first run is the
task `auto` of the study, and its result goes to the study's folder (`dagpost study mlp-20 --collect` makes the tables);
the second has another seed. With `--limit` the runs end after another time than the study's, and are kept out of it.
Rows go to results/nonlinear_posterior.csv and are kept: a second call runs what is missing. `--table` prints the means,
and those of the study on the same data sets.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dagpost.studies.experiments.fitting import NONLINEAR_SECONDS

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "nonlinear_posterior.csv"
STUDIES = HERE.parent / "results"


def run_twice(nodes: int, number: int, store: Path, limit: float | None, once: bool) -> dict[str, Any]:
    """Run the task of a study, and once more with another seed; return its measures and how far the two differ."""
    import dagpost as dp
    from dagpost.studies import study_by_name, unpack
    from dagpost.studies.experiments.fitting import fit_run
    from dagpost.studies.experiments.synthetic import simulation_of
    from dagpost.studies.runner import perform
    from dagpost.studies.study import Scale
    from dagpost.studies.task import Store

    tasks = study_by_name(f"mlp-{nodes}").tasks(Scale(number + 1))
    (task,) = [
        t for t in tasks
        if (t.data["set"], t.data["graphs"], t.run["method"]) == (number, "erdos-renyi", "auto")
    ]  # fmt: skip
    kept: list[dp.Posterior] = []

    def keeping(*given: Any) -> Iterator[Any]:
        for fitted in fit_run(*given):
            kept.append(fitted.posterior)
            yield fitted

    if limit is not None:
        task = replace(task, run={**task.run, "options": {**task.run["options"], "time_limit": limit}})
    result = perform(task, keeping)
    if limit is None:
        unpack(store)  # the study's finished tasks, of which its tables are made
        Store.at(store).put(task, result)
    sim, first = simulation_of(task), kept[0]
    gaps = {}
    if not once:
        (second,) = (fitted.posterior for fitted in fit_run(sim.train, task.run, task.data["graphs"], task.seed + 1))
        apart = np.abs(first.edge_marginals - second.edge_marginals)
        gaps = {"largest_gap": apart.max(), "edges_above_0.05": int((apart > 0.05).sum())}
    found, verdict = first.record.diagnostics, first.record.verdict
    return {
        "nodes": nodes, "data": number, "limit": task.run["options"]["time_limit"],
        "cores": len(os.sched_getaffinity(0)),
        "seconds": result["seconds"] - first.info["compiling"],
        "edges": int(sim.graph.sum()), "auroc": result["rows"][0]["auroc"], "eshd": result["rows"][0]["shd"],
        "families": getattr(found, "families", None), "rhat": getattr(found, "rhat", None),
        "chain_error": getattr(found, "error", None), "evidence_error": getattr(found, "evidence_error", None),
        "trusted": verdict.trusted if verdict else None,
        **gaps,
    }  # fmt: skip


def study_rows(nodes: int) -> pd.DataFrame:
    """Return the rows of a study on Erdős–Rényi graphs, by data set and method."""
    table = pd.read_csv(STUDIES / f"mlp-{nodes}" / "table.csv")
    return table[table["graphs"] == "erdos-renyi"].rename(columns={"set": "data", "shd": "eshd"})


METHODS = ("auto", "dibs", "dibs+", "dibs-lib", "dibs-lib+")


def draw(path: Path) -> None:
    """Draw E-SHD and AUROC of the networks with 20 nodes, one dot for each data set and method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rows = study_rows(20)
    rows = rows[rows["data"].isin(rows.loc[rows["method"] == "auto", "data"])]
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained", sharey=True)
    for ax, measure, label in zip(axes, ("eshd", "auroc"), ("E-SHD (smaller is better)", "AUROC (larger is better)")):
        for place, method in enumerate(METHODS):
            values = rows.loc[rows["method"] == method, measure]
            ax.plot(values, [place] * len(values), "o", alpha=0.6, color=f"C{place}")
            ax.plot(values.mean(), place, "|", markersize=22, color=f"C{place}")
        ax.set_xlabel(label)
    axes[0].set_yticks(range(len(METHODS)), METHODS)
    axes[0].set_ylim(len(METHODS) - 0.5, -0.5)
    figure.suptitle("Neural networks on 20 nodes, 100 rows: a dot for each data set, means as bars")
    figure.savefig(path, dpi=110)


def print_means(table: pd.DataFrame) -> None:
    """Print means by size and time limit, and means of the study's methods on the data sets in the table."""
    by = table.groupby(["nodes", "limit"])
    means = by.mean(numeric_only=True).drop(columns="data").assign(median_gap=by["largest_gap"].median())
    print(means.assign(sets=by.size()).round(3).T.to_string())
    for nodes, sets in table.groupby("nodes")["data"]:
        rows = study_rows(nodes)
        rows = rows[rows["method"].isin(METHODS) & rows["data"].isin(sets)]
        means = rows.groupby("method")[["auroc", "eshd", "nll", "inll"]].mean()
        print(f"study mlp-{nodes}\n{means.assign(sets=rows.groupby('method').size()).round(3).to_string()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--data", type=int, nargs="+", default=list(range(10)), help="numbers of the data sets")
    parser.add_argument("--limit", type=float, help="seconds of a run, in place of the study's")
    parser.add_argument("--once", action="store_true", help="one run for each data set")
    parser.add_argument("--store", type=Path, default=STUDIES, help="where results of the study go")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the means alone")
    parser.add_argument("--figure", type=Path, help="where to draw the data sets with 20 nodes")
    asked = parser.parse_args()
    rows = pd.read_csv(asked.out).to_dict("records") if asked.out.exists() else []
    done = {(row["nodes"], row["data"]) for row in rows if row["limit"] == (asked.limit or NONLINEAR_SECONDS)}
    for number in () if asked.table else asked.data:
        if (asked.nodes, number) not in done:
            rows.append(run_twice(asked.nodes, number, asked.store, asked.limit, asked.once))
            pd.DataFrame(rows).round(4).to_csv(asked.out, index=False)
            print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False), flush=True)
    if asked.table:
        print_means(pd.DataFrame(rows))
    if asked.figure:
        draw(asked.figure)


if __name__ == "__main__":
    main()
