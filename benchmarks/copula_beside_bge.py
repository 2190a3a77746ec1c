"""How far are edge probabilities of the copula from those of BGe on complete Gaussian tables, by number of rows?

    python benchmarks/copula_beside_bge.py [--rows 100 300 1000 3000] [--sets 5] [--nodes 5] [--moves 200000]

BGe of standardised columns is an exact sum over all graphs; the copula knows ranks alone. Prints the largest difference
of an edge probability in each set, and the copula's own error.
"""

from __future__ import annotations

import argparse

import numpy as np

import dagpost as dp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 300, 1000, 3000])
    parser.add_argument("--sets", type=int, default=5)
    parser.add_argument("--nodes", type=int, default=5)
    parser.add_argument("--moves", type=int, default=200_000)
    asked = parser.parse_args()
    print("| rows | largest difference in each set | median | error of the chains |\n| --- | --- | --- | --- |")
    for rows in asked.rows:
        gaps, errors = [], []
        for seed in range(asked.sets):
            data = dp.simulate(nodes=asked.nodes, observations=rows, seed=seed, interventional_sets=0).train
            exact = dp.exact(data.standardised(), model="bge", prior="erdos-renyi")
            options = {"max_moves": asked.moves, "ensembles": 2, "draws": 100, "progress": False}
            chains = dp.fit(data, "copula", "erdos-renyi", seed=0, **options)
            gaps.append(np.abs(exact.edge_marginals - chains.edge_marginals).max())
            errors.append(chains.record.diagnostics.error)
        each = " ".join(f"{gap:.3f}" for gap in gaps)
        print(f"| {rows} | {each} | {np.median(gaps):.3f} | {max(errors):.3f} |", flush=True)


if __name__ == "__main__":
    main()
