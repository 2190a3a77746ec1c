"""Which defaults? Models and graph priors on four linear Gaussian networks from the literature that nobody here made.

    python benchmarks/foreign_networks.py [--rows 100 200 500 1000] [--limit 120] [--jobs 16] [--out FILE] [--table]

ecoli70, magic-niab, magic-irri and arth150 with their published coefficients, from the bnlearn repository as pgmpy
ships them (MIT licence; `pip install --no-deps pgmpy`, or `--folder` with the JSON files). Data are simulated and
standardised; `auto` runs under its default time limit with one core for each run. Beside it: PC at level 0.05, absolute
correlations, and the empty graph.

`eshd` is the sum over pairs of nodes of the probability that the pair's state (no edge, one direction, the other) is
wrong. An undirected edge of PC counts as one half for each direction.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pinned import run_pinned

RESULTS = Path(__file__).parent / "results" / "foreign_networks.csv"
NETWORKS = ("ecoli70", "magic-niab", "magic-irri", "arth150")
PRIORS = ("erdos-renyi 2", "erdos-renyi 1", "unknown-density")
METHODS = ("auto", "dibs")
FIRST_SEED = 70_000


def example_folder() -> Path:
    """Return the folder of the networks in the installed pgmpy."""
    found = importlib.util.find_spec("pgmpy")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("pgmpy is not installed: pip install --no-deps pgmpy")
    return Path(found.submodule_search_locations[0]) / "utils" / "example_models"


def simulated(folder: Path, network: str, rows: int, seed: int) -> tuple[Any, np.ndarray]:
    """Return standardised data of a network, and its graph."""
    from dagpost.data import Dataset

    told = json.loads((folder / f"{network}.json").read_text())
    names = [str(name) for name in told["nodes"]]
    index = {name: n for n, name in enumerate(names)}
    graph = np.zeros((len(names), len(names)), dtype=bool)
    for cause, effect in told["arcs"]:
        graph[index[str(cause)], index[str(effect)]] = True
    rng = np.random.default_rng(seed)
    values, left = np.zeros((rows, len(names))), set(names)
    while left:
        for name in sorted(left):
            parents = [names[i] for i in np.flatnonzero(graph[:, index[name]])]
            if not left.isdisjoint(parents):
                continue
            local = told["cpds"][name]
            noise = rng.normal(size=rows) * np.sqrt(local["variance"][0])
            weights = {parent: coefficient[0] for parent, coefficient in local["coefficients"].items()}
            mean = weights.pop("(Intercept)", 0.0) + sum(w * values[:, index[p]] for p, w in weights.items())
            values[:, index[name]] = mean + noise
            left.remove(name)
    return Dataset(values, tuple(names)).standardised(), graph


def scores(marginals: np.ndarray, graph: np.ndarray) -> dict[str, float]:
    """Return AUROC of the edges and the expected number of wrong pairs."""
    from sklearn.metrics import roc_auc_score

    off = ~np.eye(len(graph), dtype=bool)
    right = np.where(graph, marginals, 0) + np.where(graph.T, marginals.T, 0)
    right = np.where(graph | graph.T, right, 1 - marginals - marginals.T)
    wrong_and_sure = ((marginals + marginals.T > 0.8) & ~(graph | graph.T))[np.triu_indices(len(graph), 1)].sum()
    return {
        "auroc": float(roc_auc_score(graph[off], marginals[off])),
        "eshd": float((1 - right)[np.triu_indices(len(graph), 1)].sum()),
        "edges": float(marginals.sum()),
        "wrong_pairs": int(wrong_and_sure),
    }


def timed(case: tuple[str, int, int, str, str, str], folder: Path, limit: float) -> dict[str, Any]:
    """One run."""
    import dagpost as dp
    from dagpost.inference.bootstrap.pc import pc_search

    network, rows, number, method, model, prior = case
    data, graph = simulated(folder, network, rows, FIRST_SEED + number)
    row: dict[str, Any] = {
        "network": network, "nodes": len(graph), "true_edges": int(graph.sum()), "rows": rows, "set": number,
        "method": method, "model": model, "prior": prior,
    }  # fmt: skip
    if method == "pc":
        found = pc_search(data.values, 0.05)
        return {**row, **scores(np.where(found & found.T, 0.5, found), graph)}
    if method == "correlation":
        return {**row, **scores(np.abs(np.corrcoef(data.values.T)), graph), "eshd": np.nan, "edges": np.nan}
    noise = {"noise_variance": None} if model == "linear" else {}
    chosen = {"bge": dp.BGe, "linear": dp.LinearGaussian}[model](**noise)
    graph_prior = dp.ErdosRenyi(float(prior[-1])) if prior.startswith("erdos") else prior
    post = dp.fit(data, chosen, graph_prior, method, time_limit=limit, seed=number, progress=False)
    told = {name: post.info.get(name) for name in ("error", "rhat", "trusted", "total_seconds", "compiling")}
    return {**row, **scores(post.edge_marginals, graph), **told}


def _in_pool(argument: tuple[tuple[str, int, int, str, str, str], Path, float]) -> dict[str, Any]:
    return timed(*argument)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=NETWORKS)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200, 500, 1000])
    parser.add_argument("--sets", type=int, default=1)
    parser.add_argument("--methods", nargs="+", default=["auto"], choices=METHODS)
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    parser.add_argument("--priors", nargs="+", default=PRIORS)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of a run")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--folder", type=Path, help="of the JSON files")
    parser.add_argument("--out", type=Path, default=RESULTS, help="one row for each run; those that it has are kept")
    parser.add_argument("--table", action="store_true", help="run nothing, print the table of what is there")
    options = parser.parse_args()
    rows = pd.read_csv(options.out).to_dict("records") if options.out.exists() else []
    done = {tuple(r[k] for k in ("network", "rows", "set", "method", "model", "prior")) for r in rows}
    data = list(itertools.product(options.networks, options.rows, range(options.sets)))
    ways = [*itertools.product(options.methods, options.models, options.priors)]
    cases = [(*d, *way) for d in data for way in [("pc", "–", "–"), ("correlation", "–", "–"), *ways]]
    todo = [] if options.table else [case for case in cases if case not in done]
    if todo:
        folder = options.folder or example_folder()
        for row in run_pinned(_in_pool, [(case, folder, options.limit) for case in todo], options.jobs):
            rows.append(row)
            pd.DataFrame(rows).round(4).to_csv(options.out, index=False)
            print(".", end="", flush=True)
        print()
    table = pd.DataFrame(rows)
    table["way"] = table[["method", "model", "prior"]].agg(" ".join, axis=1).str.replace(" –", "")
    for measure in ("eshd", "auroc", "edges", "wrong_pairs", "error"):
        print(measure)
        print(table.pivot_table(measure, ["network", "true_edges", "rows"], "way").round(2).to_string())


if __name__ == "__main__":
    main()
