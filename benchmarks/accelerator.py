"""How long does DiBS take on the device that JAX uses: a GPU, where there is one?

    python benchmarks/accelerator.py [--models linear bge mlp] [--nodes 20 50 100]

Networks of the paper's protocol (Erdős–Rényi with two edges per node, 100 rows), default settings, 30 particles. Prints
seconds of the first call, which compiles, and of the second, E-SHD and AUROC. Rows go to results/accelerator.csv.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import jax
import pandas as pd

import dagpost as dp

RESULTS = Path(__file__).parent / "results" / "accelerator.csv"


def measure(model: str, nodes: int) -> dict:
    """Return one row for a model and a number of nodes."""
    sim = dp.simulate(model, "erdos-renyi", nodes=nodes, observations=100, seed=0, interventional_sets=0)
    seconds = []
    for seed in (0, 1):
        began = time.perf_counter()
        post = dp.fit(sim.train, model, "erdos-renyi", "dibs", seed=seed, progress=False)
        seconds.append(time.perf_counter() - began)
    return {
        "model": model, "nodes": nodes, "device": jax.devices()[0].device_kind, "cores": len(os.sched_getaffinity(0)),
        "first": seconds[0], "second": seconds[1], "eshd": dp.metrics.expected_shd(post, sim.graph),
        "auroc": dp.metrics.auroc(post, sim.graph),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["linear", "bge", "mlp"])
    parser.add_argument("--nodes", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    rows = []
    for model in asked.models:
        for nodes in asked.nodes:
            rows.append(measure(model, nodes))
            pd.DataFrame(rows).to_csv(asked.out, index=False, float_format="%.4g")
            print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False, header=len(rows) == 1), flush=True)


if __name__ == "__main__":
    main()
