"""Nonlinear data: the models `additive` and `gp` against linear ones, DiBS and a greedy spline search.

    python benchmarks/nonlinear_models.py [--kind additive-noise] [--nodes 10 20] [--rows 200 500] [--sets 3]
        [--methods ...] [--seeds 2] [--limit SECONDS] [--table]

`nonlinear_data.py` says which kinds of data there are. Chains have 20 s, those of `gp` 60 s with up to 100 rows and
300 s with more. Two seeds show how far edge probabilities can be reproduced. Rows go to results/nonlinear_models.csv
and are kept: a second call runs what is missing. `seconds` are those of one fit without compiling; `cpu` is the time of
all threads in the last fit, unless that compiled something. On a busy machine a run gets less done in its time:
`--limit` gives it more, and `cpu` says how much it took.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from nonlinear_data import KINDS, simulate

RESULTS = Path(__file__).parent / "results" / "nonlinear_models.csv"
METHODS = ("additive", "gp", "bge", "linear", "mlp dibs", "spline search")
BY = ["kind", "nodes", "rows", "data", "method"]


def time_limit(method: str, rows: int) -> float:
    """Return the seconds that chains have."""
    return (60.0 if rows <= 100 else 300.0) if method == "gp" else 20.0


def spline_search(values: np.ndarray) -> np.ndarray:
    """Return the DAG that adding, removing and reversing single edges ends at, by the BIC of additive cubic splines
    with six basis functions for each parent (as CAM does; Bühlmann, Peters, Ernest, 2014)."""
    from scipy.interpolate import BSpline

    n, d = values.shape
    knots = [np.quantile(values[:, i], np.linspace(0, 1, 5)) for i in range(d)]
    bases = []
    for i in range(d):
        t = np.r_[[knots[i][0]] * 3, knots[i], [knots[i][-1]] * 3]
        bases.append(BSpline.design_matrix(np.clip(values[:, i], t[0], t[-1]), t, 3).toarray()[:, 1:])
    known: dict[tuple[int, bytes], float] = {}

    def score(j: int, row: np.ndarray) -> float:
        key = (j, row.tobytes())
        if key not in known:
            design = np.column_stack([np.ones(n), *(bases[i] for i in np.flatnonzero(row))])
            rest = values[:, j] - design @ np.linalg.lstsq(design, values[:, j], rcond=None)[0]
            known[key] = -0.5 * n * np.log(rest @ rest / n) - 0.5 * np.log(n) * design.shape[1]
        return known[key]

    graph = np.zeros((d, d), dtype=bool)
    while True:
        reach = np.linalg.matrix_power(np.eye(d) + graph, d) > 0
        best, change = 0.0, None
        for i in range(d):
            for j in range(d):
                if i == j:
                    continue
                row = graph[:, j].copy()
                row[i] = not row[i]
                gain = score(j, row) - score(j, graph[:, j])
                if not graph[i, j] and reach[j, i]:
                    continue
                if gain > best:
                    best, change = gain, [(i, j)]
                if graph[i, j]:  # reversed, where no other path leads from i to j
                    without = graph.copy()
                    without[i, j] = False
                    if not (np.linalg.matrix_power(np.eye(d) + without, d) > 0)[i, j]:
                        back = graph[:, i].copy()
                        back[j] = True
                        both = gain + score(i, back) - score(i, graph[:, i])
                        if both > best:
                            best, change = both, [(i, j), (j, i)]
        if change is None:
            return graph
        for i, j in change:
            graph[i, j] = not graph[i, j]


def timed(kind: str, nodes: int, rows: int, data: int, method: str, seeds: int, limit: float | None) -> dict[str, Any]:
    """Run one method on one data set, with another time limit if given."""
    import dagpost as dp
    from dagpost import metrics

    values, graph = simulate(kind, nodes, rows, data)
    row = dict(zip(BY, (kind, nodes, rows, data, method))) | {"edges": int(graph.sum())}
    began = time.perf_counter()
    if method == "spline search":
        names = tuple(f"x{i}" for i in range(nodes))
        found = dp.Posterior(spline_search(values)[None], np.zeros(1), names, dp.Additive(), dp.ErdosRenyi())
        seconds = time.perf_counter() - began
        quality = {"auroc": metrics.auroc(found, graph), "eshd": metrics.expected_shd(found, graph)}
        return row | quality | {"seconds": seconds}
    name, _, way = method.partition(" ")
    options = {"method": way or "auto", "progress": False}
    if not way:
        row["limit"] = options["time_limit"] = limit or time_limit(method, rows)
    posts, cpu = [], 0.0
    for seed in range(1 if way else seeds):
        cpu = time.process_time()
        posts.append(dp.fit(values, name, seed=seed, **options))
        cpu = time.process_time() - cpu
    compiling = sum(post.info["compiling"] for post in posts)
    row |= {
        "auroc": metrics.auroc(posts[0], graph), "eshd": metrics.expected_shd(posts[0], graph),
        "seconds": (time.perf_counter() - began - compiling) / len(posts),
        "cpu": cpu if posts[-1].info["compiling"] < 1 else None, "cores": len(os.sched_getaffinity(0)),
        "trusted": posts[0].record.verdict.trusted if posts[0].record.verdict else None,
    }  # fmt: skip
    if len(posts) > 1:
        row["largest_gap"] = np.abs(posts[0].edge_marginals - posts[1].edge_marginals).max()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", default=KINDS[0], choices=KINDS)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 500])
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--limit", type=float, help="seconds of the chains, in place of those above")
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the means alone")
    options = parser.parse_args()
    rows = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    done = {tuple(row[name] for name in BY) for row in rows}
    for nodes in options.nodes:
        for count in options.rows:
            for data in range(options.sets):
                for method in options.methods:
                    if not options.table and (options.kind, nodes, count, data, method) not in done:
                        rows.append(timed(options.kind, nodes, count, data, method, options.seeds, options.limit))
                        pd.DataFrame(rows).round(4).to_csv(options.out, index=False)
                        print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False, header=False), flush=True)
    by, measures = ["kind", "nodes", "rows", "method"], ["edges", "auroc", "eshd", "seconds", "cpu", "largest_gap"]
    table = pd.DataFrame(rows).reindex(columns=by + measures).groupby(by)
    means = table[measures].mean()
    means.insert(0, "sets", table.size())
    print(means.round(3).to_string())


if __name__ == "__main__":
    main()
