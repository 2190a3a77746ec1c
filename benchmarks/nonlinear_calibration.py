"""Are edge probabilities of nonlinear models calibrated? Of edges with probability p, a share p should be there.

    python benchmarks/nonlinear_calibration.py [--models additive gp mlp] [--nodes 4] [--rows 50] [--sets 200]

Each truth (graph, functions, noise) is drawn from the model and the prior that inference uses (`source="density"`), and
the posterior is the exact sum over all graphs. `additive` and `gp` speak of columns in standard units, so each column
is standardised before its children are drawn. Rows go to results/nonlinear_calibration.csv, one for each model and
tenth of the probabilities, and are kept: a second call runs the models that are missing.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.graphs import topological_order

RESULTS = Path(__file__).parent / "results" / "nonlinear_calibration.csv"


def rows_in_standard_units(sim: dp.Simulation, rows: int) -> tuple[dp.Dataset, np.ndarray]:
    """Return rows of a simulated network, every column standardised before its children are drawn, and the standard
    deviations before that."""
    values, axes = np.zeros((rows, len(sim.graph))), jax.tree.broadcast(sim.model.theta_axes, sim.theta)
    spread = np.zeros(len(sim.graph))
    with jax.enable_x64(True):
        for j in topological_order(sim.graph):
            theta_j = jax.tree.map(lambda leaf, axis, j=j: np.take(np.asarray(leaf), j, axis=axis), sim.theta, axes)
            inputs = jnp.asarray(np.where(sim.graph[:, j], values, 0.0))
            drawn = np.asarray(sim.model.sample_node(jax.random.key(1000 * sim.seed + j), inputs, theta_j))
            spread[j] = drawn.std()
            values[:, j] = (drawn - drawn.mean()) / spread[j]
    return dp.Dataset(values), spread


def deciles(model: str, nodes: int, rows: int, sets: int) -> pd.DataFrame:
    """Return the mean probability and the share of edges that are there, by tenths of the probability."""
    probabilities, present, began = [], [], time.perf_counter()
    off_diagonal = ~np.eye(nodes, dtype=bool)
    for seed in range(sets):
        sim = dp.simulate(
            model, nodes=nodes, observations=rows, seed=seed, source="density", test_observations=0,
            interventional_sets=0,
        )  # fmt: skip
        data = sim.train if model == "mlp" else rows_in_standard_units(sim, rows)[0]
        post = dp.fit(data, model, "erdos-renyi", method="exact", seed=0, progress=False)
        probabilities.append(post.edge_marginals[off_diagonal])
        present.append(sim.graph[off_diagonal])
    p, truth = np.concatenate(probabilities), np.concatenate(present)
    tenth = np.minimum((10 * p).astype(int), 9)
    found = pd.DataFrame(
        {"tenth": tenth, "probability": p, "share": truth, "set": np.repeat(np.arange(sets), off_diagonal.sum())}
    )
    by = found.groupby("tenth")
    out = by[["probability", "share"]].mean().assign(edges=by.size())
    # edges of one data set depend on each other: the error is that of means over data sets
    off = (found["share"] - found["probability"]).groupby([found["tenth"], found["set"]]).sum().unstack(fill_value=0)
    out["error"] = np.sqrt(sets * off.var(axis=1, ddof=1)) / out["edges"]
    took = (time.perf_counter() - began) / sets
    return out.reset_index().assign(model=model, nodes=nodes, rows=rows, sets=sets, seconds=took)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["additive", "gp", "mlp"])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--sets", type=int, default=200)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    parts = [part for _, part in pd.read_csv(asked.out).groupby("model", sort=False)] if asked.out.exists() else []
    for model in asked.models:
        if any((part["model"] == model).all() for part in parts):
            continue
        parts.append(deciles(model, asked.nodes, asked.rows, asked.sets))
        pd.concat(parts).round(4).to_csv(asked.out, index=False)
    for part in parts:
        off = (part["share"] - part["probability"]).abs()
        weighted = (off * part["edges"]).sum() / part["edges"].sum()
        print(f"\n{part['model'].iloc[0]}: mean deviation {weighted:.3f}, largest {off.max():.3f}")
        print(part[["probability", "share", "error", "edges"]].round(3).to_string(index=False))


if __name__ == "__main__":
    main()
