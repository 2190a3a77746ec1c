"""GES beside causal-learn's, on the same data: seconds of each, and whether they find the same class.

    python benchmarks/greedy_search.py [--nodes 10 20] [--sets 4]

Needs causal-learn, which `make setup-bench` installs.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

import numpy as np
from causallearn.search.ScoreBased.GES import ges

import dagpost as dp
from dagpost.inference.bootstrap.ges import greedy_search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--sets", type=int, default=4)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    greedy_search(np.random.default_rng(0).standard_normal((20, 3)))  # compiles
    for d, prior in itertools.product(options.nodes, ("erdos-renyi", "scale-free")):
        ours = theirs = 0.0
        same = 0
        for number in range(options.sets):
            sim = dp.simulate("linear", prior, nodes=d, observations=100, seed=90_000 + number, interventional_sets=0)
            started = time.perf_counter()
            found = greedy_search(sim.train.values)
            ours += time.perf_counter() - started
            started = time.perf_counter()
            marks = ges(sim.train.values, score_func="local_score_BIC")["G"].graph
            theirs += time.perf_counter() - started
            same += bool(((marks == -1) == found).all())
        print(
            f"d {d} {prior}: {ours / options.sets:.4f} s, causal-learn {theirs / options.sets:.2f} s, "
            f"ratio {theirs / ours:.0f}; same class in {same} of {options.sets}",
            flush=True,
        )


if __name__ == "__main__":
    main()
