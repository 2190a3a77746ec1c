"""Does the time of DiBS depend on the number of rows? Sachs data, 100 rows and all 7,466 of them.

    python benchmarks/rows.py

Prints the time of a run without compiling for each model with sufficient statistics, and the ratio.
"""

from __future__ import annotations

import time

import numpy as np

import dagpost as dp


def main() -> None:
    sachs = dp.sachs().standardised()
    few = sachs.rows(np.random.default_rng(0).permutation(sachs.observations)[:100])
    for model in ("bge", "linear"):
        took = []
        for data in (few, sachs):
            for _ in range(2):  # the first run compiles
                started = time.perf_counter()
                dp.fit(data, model=model, method="dibs", seed=0, progress=False)
                last = time.perf_counter() - started
            took.append(last)
        print(f"{model:8} 100 rows {took[0]:.2f} s, {sachs.observations} rows {took[1]:.2f} s: {took[1] / took[0]:.2f}")


if __name__ == "__main__":
    main()
