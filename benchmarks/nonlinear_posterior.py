"""The nonlinear posterior against DiBS: networks of the paper, one row for each data set and method.

    python benchmarks/nonlinear_posterior.py [--nodes 20] [--sets 10] [--seeds 2] [--limit 600] [--methods auto dibs]
        [--figure docs/images/nonlinear.png]

Data are those of the paper's protocol for neural networks (`dp.simulate(model="mlp")`, N = 100). `auto` integrates
the evidence of families numerically and samples graphs with tempered chains until the time limit; two seeds show how
far its edge probabilities can be reproduced. Rows go to results/nonlinear_posterior.csv and are kept: a second call
runs what is missing. `--table` prints the means alone.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

RESULTS = Path(__file__).parent / "results" / "nonlinear_posterior.csv"


def timed(nodes: int, data_seed: int, method: str, seeds: int, limit: float) -> dict[str, Any]:
    """Run one method on one data set; with two seeds, also the largest and median difference of an edge probability."""
    import dagpost as dp
    from dagpost import metrics

    sim = dp.simulate(nodes=nodes, observations=100, model="mlp", seed=data_seed)
    began, posts = time.perf_counter(), []
    for seed in range(seeds):
        limits = {"time_limit": limit} if method == "auto" else {}
        posts.append(dp.fit(sim.train, "mlp", method=method, seed=seed, progress=False, **limits))
    seconds = (time.perf_counter() - began - sum(post.info["compiling"] for post in posts)) / seeds
    first = posts[0]
    plus = first if method == "auto" else first.weighted("posterior")
    row = {
        "nodes": nodes, "data": data_seed, "method": method, "limit": limit if method == "auto" else None,
        "edges": int(sim.graph.sum()),
        "auroc": metrics.auroc(first, sim.graph), "eshd": metrics.expected_shd(first, sim.graph),
        "eshd_weighted": metrics.expected_shd(plus, sim.graph), "seconds": seconds,
        "cores": len(os.sched_getaffinity(0)),
        "trusted": first.record.verdict.trusted if first.record.verdict else None,
    }  # fmt: skip
    if method == "auto":
        found = first.record.diagnostics
        row |= {"families": getattr(found, "families", None), "evidence_error": getattr(found, "evidence_error", None)}
        row |= {"chain_error": getattr(found, "error", None), "rhat": getattr(found, "rhat", None)}
    if seeds > 1:
        gaps = np.abs(posts[0].edge_marginals - posts[1].edge_marginals)
        row |= {"largest_gap": gaps.max(), "largest_90": float(np.quantile(gaps, 0.9))}
    return row


def draw(table: pd.DataFrame, path: Path) -> None:
    """Draw E-SHD and AUROC of the networks with 20 nodes, one dot for each data set and method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    table = table[table["nodes"] == 20]
    auto, dibs = (table[table["method"] == method].set_index("data") for method in ("auto", "dibs"))
    rows = {"nonlinear posterior": auto, "dibs": dibs, "dibs, weighted": dibs.assign(eshd=dibs["eshd_weighted"])}
    figure, axes = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained", sharey=True)
    for ax, measure, label in zip(axes, ("eshd", "auroc"), ("E-SHD (smaller is better)", "AUROC (larger is better)")):
        for place, frame in enumerate(rows.values()):
            if measure == "eshd" or place < 2:  # AUROC is shown for equal weights
                ax.plot(frame[measure], [place] * len(frame), "o", alpha=0.6, color=f"C{place}")
                ax.plot(frame[measure].mean(), place, "|", markersize=22, color=f"C{place}")
        ax.set_xlabel(label)
    axes[0].set_yticks(range(len(rows)), list(rows))
    axes[0].set_ylim(len(rows) - 0.5, -0.5)
    figure.suptitle("Neural networks on 20 nodes, 100 rows: a dot for each data set, means as bars")
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[20])
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--limit", type=float, default=600.0)
    parser.add_argument("--methods", nargs="+", default=["auto", "dibs"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the means alone")
    parser.add_argument("--figure", type=Path, help="where to draw the data sets with 20 nodes")
    options = parser.parse_args()
    rows = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    done = {(row["nodes"], row["data"], row["method"]) for row in rows}
    for nodes in options.nodes:
        for data_seed in range(options.sets):
            for method in options.methods:
                if options.table or (nodes, data_seed, method) in done:
                    continue
                rows.append(timed(nodes, data_seed, method, options.seeds, options.limit))
                pd.DataFrame(rows).round(4).to_csv(options.out, index=False)
                print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False), flush=True)
    table = pd.DataFrame(rows)
    columns = ["edges", "auroc", "eshd", "eshd_weighted", "seconds", "cores", "largest_gap", "chain_error"]
    methods = table.groupby(["nodes", "data"])["method"].transform("nunique")
    for title, rows_of in (("all data sets", table), ("those that both methods ran on", table[methods > 1])):
        means = rows_of.groupby(["nodes", "method"])[[name for name in columns if name in table]].mean()
        means.insert(0, "sets", rows_of.groupby(["nodes", "method"]).size())
        print(f"{title}\n{means.round(3).to_string()}")
    if options.figure:
        draw(table, options.figure)


if __name__ == "__main__":
    main()
