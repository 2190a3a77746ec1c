"""Chains of `auto` against the exact posterior of nonlinear models, on few nodes.

    python benchmarks/nonlinear_exact.py [--models additive gp mlp] [--nodes 5 6] [--sets 2] [--limit 60]
        [--precision 0.005] [--chain-seed 1]

Data are neural networks of the paper's kind, 100 rows. The chains have another seed than the exact sum: where evidence
is numerical they share no estimate, unless `--chain-seed 0` gives them the same. Prints the largest difference of an
edge probability.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import dagpost as dp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["additive", "gp", "mlp"])
    parser.add_argument("--nodes", type=int, nargs="+", default=[5, 6])
    parser.add_argument("--sets", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--precision", type=float, default=0.005)
    parser.add_argument("--chain-seed", type=int, default=1)
    asked = parser.parse_args()
    print("| model | nodes | data set | largest difference | seconds of exact, auto |")
    print("| --- | --- | --- | --- | --- |")
    for model in asked.models:
        for nodes in asked.nodes:
            for data in range(asked.sets):
                sim = dp.simulate(nodes=nodes, observations=100, model="mlp", seed=data, interventional_sets=0)
                posts, took = [], []
                options = (
                    {"method": "exact"},
                    {"start": "additive", "time_limit": asked.limit, "precision": asked.precision},
                )
                for chosen in options:
                    began = time.perf_counter()
                    posts.append(
                        dp.fit(sim.train, model, seed=asked.chain_seed if posts else 0, progress=False, **chosen)
                    )
                    took.append(time.perf_counter() - began - posts[-1].info["compiling"])
                gap = np.abs(posts[0].edge_marginals - posts[1].edge_marginals).max()
                print(f"| {model} | {nodes} | {data} | {gap:.3f} | {took[0]:.0f}, {took[1]:.0f} |", flush=True)


if __name__ == "__main__":
    main()
