"""Exact posteriors: time and memory by number of nodes, and soundness on a peaked posterior (N = 10,000).

python benchmarks/exact.py [--largest 16]
"""

import argparse
import subprocess
import sys
import time

import numpy as np

import dagpost as dp
from dagpost.inference.exact.layers import memory_bytes

ONE = """
import resource, sys, time
import numpy as np
import dagpost as dp
d, model = int(sys.argv[1]), sys.argv[2]
dp.exact(dp.simulate(nodes=6, observations=50).train, model)  # compile, or load what was compiled before
data = dp.simulate(nodes=d, observations=10_000, seed=1).train
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
started = time.perf_counter()
post = dp.exact(data, model)
took = time.perf_counter() - started
more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
error = abs(post.parent_probabilities.sum(axis=1) - 1).max()
print(took, more / 2**10, error, post.weighted("uniform").edge_marginals.max())
"""


def import_seconds() -> float:
    times = []
    for _ in range(5):
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import dagpost"], check=True)
        loaded = time.perf_counter() - started
        started = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(loaded - (time.perf_counter() - started))
    return float(np.median(times))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--largest", type=int, default=16)
    options = parser.parse_args()
    print(f"dagpost {dp.__version__}; import dagpost: {import_seconds() * 1e3:.0f} ms beyond starting Python")
    print("\nall edge marginals, parent sets, evidence, MAP graph and 1,000 exact draws; N = 10,000")
    print(
        f"{'d':>3}{'model':>9}{'time':>10}{'memory':>12}{'planned':>12}{'largest error of a sum of probabilities':>42}"
    )
    for d in (8, 10, 12, 14, 15, 16, 17):
        if d > options.largest:
            break
        for model in ("bge", "linear"):
            out = subprocess.run([sys.executable, "-c", ONE, str(d), model], check=True, capture_output=True, text=True)
            took, memory, error, _ = (float(x) for x in out.stdout.split())
            planned = memory_bytes(d) / 2**20
            print(f"{d:>3}{model:>9}{took:>8.2f} s{memory:>8.0f} MiB{planned:>8.0f} MiB{error:>42.1e}")


if __name__ == "__main__":
    main()
