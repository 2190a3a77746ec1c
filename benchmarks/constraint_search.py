"""PC beside causal-learn's, on the same data: seconds of each, and how often they learn the same graph.

    python benchmarks/constraint_search.py [--nodes 10 20] [--sets 4] [--significance 0.05]

Needs causal-learn, which `make setup-bench` installs.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings

import numpy as np
from causallearn.search.ConstraintBased.PC import pc

import dagpost as dp
from dagpost.inference.bootstrap.pc import pc_search


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 20])
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--significance", type=float, default=0.05)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    pc_search(np.random.default_rng(0).standard_normal((20, 3)), 0.05)  # compiles
    for d, prior in itertools.product(options.nodes, ("erdos-renyi", "scale-free")):
        ours = theirs = 0.0
        skeletons = graphs = 0
        for number in range(options.sets):
            sim = dp.simulate("linear", prior, nodes=d, observations=100, seed=90_000 + number, interventional_sets=0)
            started = time.perf_counter()
            found = pc_search(sim.train.values, options.significance)
            ours += time.perf_counter() - started
            started = time.perf_counter()
            marks = pc(sim.train.values, alpha=options.significance, indep_test="fisherz", show_progress=False).G.graph
            theirs += time.perf_counter() - started
            skeletons += bool(((found | found.T) == (marks != 0)).all())
            graphs += bool((found == ((marks == -1) | ((marks == 1) & (marks.T == 1)))).all())
        print(
            f"d {d} {prior}: {ours / options.sets:.5f} s, causal-learn {theirs / options.sets:.2f} s, "
            f"ratio {theirs / ours:.0f}; same skeleton in {skeletons}, same graph in {graphs} of {options.sets}",
            flush=True,
        )


if __name__ == "__main__":
    main()
