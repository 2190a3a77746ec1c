"""Estimates of the evidence of MLP families by several seeds: how far apart they are, and what they claim.

    python benchmarks/evidence_error.py [--families 6] [--seeds 4]

Families are true ones of a simulated network of the paper's kind (20 nodes, 100 rows), and some with one parent more.
"Claimed" is the median of the errors of the estimates.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import dagpost as dp
from dagpost.models.mlp_gaussian import MlpEvidence


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--families", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--efforts", type=int, nargs="+", default=[0, 1, 2])
    asked = parser.parse_args()
    sim = dp.simulate(nodes=20, observations=100, model="mlp", seed=3, interventional_sets=0)
    rng, families = np.random.default_rng(0), []
    for j in range(20):
        row = sim.graph[:, j].astype(bool)
        if row.sum() >= 2:
            more = row.copy()
            more[rng.choice(np.flatnonzero(~row & (np.arange(20) != j)))] = True
            families += [(j, row), (j, more)]
    families = [(j, row) for j, row in families if row.sum() <= 6][: asked.families]
    model = dp.MlpGaussian()
    sources = [MlpEvidence(model, model.summarise(sim.train), seed) for seed in range(asked.seeds)]
    print("parents:", *(row.sum() for _, row in families))
    print("| effort | seconds | claimed | standard deviation between seeds: median, largest | mean |")
    print("| --- | --- | --- | --- | --- |")
    for effort in asked.efforts:
        sources[0].compute(*families[0], effort)
        began = time.perf_counter()
        found = np.array([[source.compute(j, row, effort)[:2] for source in sources] for j, row in families])
        seconds = (time.perf_counter() - began) / found[..., 0].size
        spread = found[..., 0].std(axis=1, ddof=1)
        claimed = np.median(found[..., 1])
        print(f"| {effort} | {seconds:.3f} | {claimed:.2f} | {np.median(spread):.2f}, {spread.max():.2f} | "
              f"{found[..., 0].mean():.2f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
