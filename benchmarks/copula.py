"""Are edge probabilities of the copula calibrated? Of edges with probability p, a share p should be there.

    python benchmarks/copula.py [--sets 200] [--rows 100] [--moves 90000]

Each truth (graph, parameters) is drawn from the prior that inference uses; latent rows are drawn from it, with 4, 5 or
6 columns in turn, and cut into binary, ordinal, count and continuous columns: thresholds at random quantiles, and
monotone transforms. Two chains run for so many moves. The table has a row for each tenth of the probabilities; errors
are those of means over data sets, since edges of one data set depend on each other. Sums by data set
go to results/copula.csv and are kept: a second call measures the sets that are missing.
"""

from __future__ import annotations

import argparse
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
    graph = np.asarray(dp.ErdosRenyi().sample_density(key_graph, nodes))
    theta = model.sample_parameters(key_theta, graph)
    latent = model.sample_rows(key_rows, graph, theta, rows).values
    kinds = rng.permutation(np.arange(nodes) % 4)
    return graph, dp.Dataset(np.column_stack([cut(z, kind, rng) for z, kind in zip(latent.T, kinds)]))


def measured(seed: int, rows: int, moves: int) -> pd.DataFrame:
    """Return edges, the sum of their probabilities and how many are there, by tenths of the probability, in a set."""
    graph, data = simulated(seed, rows)
    options = {"max_moves": moves, "ensembles": 2, "draws": 100, "progress": False}
    post = dp.fit(data, "copula", "erdos-renyi", seed=0, **options)
    off_diagonal = ~np.eye(len(graph), dtype=bool)
    p, truth = post.edge_marginals[off_diagonal], graph[off_diagonal].astype(int)
    by = pd.DataFrame({"tenth": np.minimum((10 * p).astype(int), 9), "probability": p, "present": truth}).groupby(
        "tenth"
    )
    out = by.sum().assign(edges=by.size(), chain_error=post.record.diagnostics.error).reset_index()
    return out.assign(set=seed, nodes=len(graph), rows=rows, moves=moves).round(5)


def deciles(found: pd.DataFrame) -> pd.DataFrame:
    """Return the mean probability and the share of edges that are there, by tenths of the probability."""
    sets, by = found["set"].nunique(), found.groupby("tenth")
    edges = by["edges"].sum()
    out = pd.DataFrame({"edges": edges, "probability": by["probability"].sum() / edges})
    out["share"] = by["present"].sum() / edges
    off = (found["present"] - found["probability"]).groupby([found["tenth"], found["set"]]).sum().unstack(fill_value=0)
    off = off.reindex(columns=found["set"].unique(), fill_value=0)
    out["error"] = np.sqrt(sets * off.var(axis=1, ddof=1)) / edges
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--moves", type=int, default=90_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    parts = [pd.read_csv(asked.out)] if asked.out.exists() else []
    done = set(parts[0]["set"]) if parts else set()
    for seed in sorted(set(range(asked.sets)) - done):
        parts.append(measured(seed, asked.rows, asked.moves))
        pd.concat(parts).to_csv(asked.out, index=False)
    found = pd.concat(parts)
    table = deciles(found)
    off = (table["share"] - table["probability"]).abs()
    beyond, mean = int((off > 3 * table["error"]).sum()), float((off * table["edges"]).sum() / table["edges"].sum())
    error = found.groupby("set")["chain_error"].first().median()
    print(table.round(3).to_string())
    print(f"{found['set'].nunique()} data sets, {table['edges'].sum()} edges; median chain error {error:.3f}")
    print(f"mean deviation {mean:.4f}; {beyond} tenths beyond three standard errors")


if __name__ == "__main__":
    main()
