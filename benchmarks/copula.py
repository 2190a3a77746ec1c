"""Are edge probabilities of the copula calibrated? Of edges with probability p, a share p should be there.

    python benchmarks/copula.py [--sets 200] [--rows 100] [--moves 90000]

Each truth (graph, parameters) is drawn from the prior that inference uses; latent rows are drawn from it, with 4, 5 or
6 columns in turn, and cut into binary, ordinal, count and continuous columns: thresholds at random quantiles, and
monotone transforms. Two chains run for so many moves. The table has a row for each tenth of the probabilities; errors
are those of means over data sets, since edges of one data set depend on each other. It goes to results/copula.csv.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pandas as pd

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "copula.csv"
NODES = (4, 5, 6)


def cut(latent: np.ndarray, kind: int, rng: np.random.Generator) -> np.ndarray:
    """Return a latent column as a binary (0), ordinal (1), count (2) or skewed continuous (3) one."""
    standard = (latent - latent.mean()) / latent.std()
    if kind < 2:
        levels = 2 if kind == 0 else 5
        return np.digitize(standard, np.quantile(standard, np.sort(rng.uniform(0.1, 0.9, levels - 1))))
    return np.floor(np.exp(0.8 * standard + 0.7)) if kind == 2 else np.exp(standard)


def simulated(seed: int, rows: int) -> tuple[np.ndarray, dp.Dataset]:
    """Return a graph and a mixed table of it."""
    rng, nodes, model = np.random.default_rng(seed), NODES[seed % len(NODES)], dp.Copula()
    key_graph, key_theta, key_rows = jax.random.split(jax.random.key(seed), 3)
    graph = np.asarray(dp.ErdosRenyi().sample(key_graph, nodes))
    theta = model.sample_parameters(key_theta, graph)
    latent = model.sample_rows(key_rows, graph, theta, rows).values
    kinds = rng.permutation(np.arange(nodes) % 4)
    return graph, dp.Dataset(np.column_stack([cut(z, kind, rng) for z, kind in zip(latent.T, kinds)]))


def deciles(sets: int, rows: int, moves: int) -> pd.DataFrame:
    """Return the mean probability and the share of edges that are there, by tenths of the probability."""
    parts, began = [], time.perf_counter()
    for seed in range(sets):
        graph, data = simulated(seed, rows)
        options = {"max_moves": moves, "ensembles": 2, "draws": 100, "progress": False}
        post = dp.fit(data, "copula", "erdos-renyi", seed=0, **options)
        if seed % 20 == 19:
            print(f"{seed + 1} of {sets} data sets", file=sys.stderr, flush=True)
        off_diagonal = ~np.eye(len(graph), dtype=bool)
        found = {"probability": post.edge_marginals[off_diagonal], "share": graph[off_diagonal].astype(float)}
        parts.append(pd.DataFrame(found).assign(set=seed, largest_error=post.record.diagnostics.error))
    all_edges = pd.concat(parts, ignore_index=True)
    all_edges["tenth"] = np.minimum((10 * all_edges["probability"]).astype(int), 9)
    by = all_edges.groupby("tenth")
    out = by[["probability", "share"]].mean().assign(edges=by.size())
    off = (all_edges["share"] - all_edges["probability"]).groupby([all_edges["tenth"], all_edges["set"]]).sum()
    out["error"] = np.sqrt(sets * off.unstack(fill_value=0).var(axis=1, ddof=1)) / out["edges"]
    took, chains = (time.perf_counter() - began) / sets, all_edges.groupby("set")["largest_error"].first().median()
    return out.reset_index().assign(rows=rows, sets=sets, moves=moves, chain_error=chains, seconds=took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--moves", type=int, default=90_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    table = deciles(asked.sets, asked.rows, asked.moves)
    table.round(4).to_csv(asked.out, index=False)
    off = table["share"] - table["probability"]
    beyond = int((off.abs() > 3 * table["error"]).sum())
    mean = float((off.abs() * table["edges"]).sum() / table["edges"].sum())
    print(table.round(3).to_string(index=False))
    print(f"mean deviation {mean:.4f} over {table['edges'].sum()} edges; {beyond} tenths beyond three standard errors")


if __name__ == "__main__":
    main()
