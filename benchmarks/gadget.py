"""Beside Gadget (Viinikka et al. 2020): how far do its seeds agree after twenty times the seconds of `auto`?

    pip install sumu==0.1.2        # has Gadget: partition MCMC, compiled from source when installed
    python benchmarks/gadget.py [--nodes 20 50] [--agreement 0.05] [--times 20]

Both sample the posterior of DAGs under the same BGe score and the same prior (`Fair`: all numbers of parents of a
node are equally probable); the scores are compared first. `auto` runs with time limits of 2, 4, 8, … seconds until no
edge probability differs between its two seeds by more than `--agreement`. Then Gadget runs for `--times` as long, with
16 tempered chains and 10 candidate parents per node, half of its iterations as burn-in. Both use one core, and seconds
are those of the CPU, without compiling. Rows go to results/gadget.csv.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
from jax.scipy.special import gammaln

import dagpost as dp
from dagpost.graphs import essential_graph, structural_hamming_distance
from dagpost.priors import InDegreePrior

RESULTS = Path(__file__).parent / "results" / "gadget.csv"
SEEDS = (1, 2)


@dataclass(frozen=True)
class Fair(InDegreePrior):
    """Prior `p(G) ∝ Π_j 1 / C(d - 1, p_j)` of numbers of parents `p_j`, as in Gadget."""

    name: ClassVar[str] = "fair"

    def log_in_degree(self, parents: jax.Array, d: int) -> jax.Array:
        return gammaln(parents + 1.0) + gammaln(d - parents) - math.lgamma(d)

    def sample(self, key: Any, d: int) -> Any:
        return self.sample_density(key, d)


def largest_score_difference(data: dp.Dataset) -> float:
    """Return how far scores of families differ between the two programs, a constant for each node aside."""
    import sumu

    d, rng = data.nodes, np.random.default_rng(0)
    theirs = sumu.gadget.LocalScore(sumu.Data(np.asarray(data.values), discrete=False), scoref="bge")
    model, prior = dp.BGe(), Fair()
    stats = model.summarise(data)
    worst = 0.0
    for node in range(d):
        others = [i for i in range(d) if i != node]
        sets = [np.sort(rng.choice(others, size, replace=False)) for size in (0, 1, 2, 3, 4)]
        ours = [
            float(model.log_evidence(node, parents, stats)) + float(prior.log_in_degree(jnp.asarray(len(parents)), d))
            for parents in sets
        ]
        apart = np.array(ours) - [theirs.local(node, parents) for parents in sets]
        worst = max(worst, float(np.ptp(apart)))
    return worst


class Run(NamedTuple):
    """Graphs that a program has drawn, edge probabilities, and the CPU seconds that it took."""

    graphs: np.ndarray
    edges: np.ndarray
    seconds: float


def gadget(data: dp.Dataset, seed: int, iterations: int) -> Run:
    """Run Gadget."""
    import sumu

    np.random.seed(seed)  # noqa: NPY002
    began = time.process_time()
    sampler = sumu.Gadget(
        data=sumu.Data(np.asarray(data.values), discrete=False), scoref="bge", ess=10, max_id=-1, K=10, d=3,
        cp_algo="greedy-lite", mc3_chains=16, burn_in=iterations // 2, iterations=iterations // 2, thinning=5,
        tolerance=2**-32,
    )  # fmt: skip
    families, _ = sampler.sample()
    seconds = time.process_time() - began
    graphs = np.zeros((len(families), data.nodes, data.nodes), np.bool_)
    for m, graph in enumerate(families):
        for node, *parents in graph:
            graphs[m, parents, node] = True
    return Run(graphs, graphs.mean(axis=0), seconds)


def auto(data: dp.Dataset, seed: int, limit: float) -> Run:
    """Run `auto`."""
    began = time.process_time()
    post = dp.fit(data, "bge", Fair(), "auto", seed=seed, time_limit=limit, progress=False)
    return Run(post.graphs, post.edge_marginals, time.process_time() - began)


def largest_gap(one: Run, two: Run) -> float:
    return float(np.abs(one.edges - two.edges).max())


def iterations_in(data: dp.Dataset, seconds: float) -> int:
    """Return how many iterations Gadget makes in these seconds, from two short runs."""
    few, more = (gadget(data, 0, count).seconds for count in (200, 600))
    each = (more - few) / 400
    return max(1000, round((seconds - few) / each))


def compare(nodes: int, agreement: float, times: float) -> dict[str, Any]:
    """Return one row: seconds, agreement and E-SHD of both."""
    sim = dp.simulate("bge", "erdos-renyi", nodes=nodes, observations=200, seed=80_000, interventional_sets=0)
    scores = largest_score_difference(sim.train)
    limit = 2.0
    while largest_gap(*(ours := [auto(sim.train, seed, limit) for seed in SEEDS])) > agreement and limit < 1000:
        limit *= 2
    iterations = iterations_in(sim.train, times * float(np.mean([run.seconds for run in ours])))
    theirs = [gadget(sim.train, seed, iterations) for seed in SEEDS]
    truth = essential_graph(sim.graph)
    row = {"nodes": nodes, "score_difference": scores}
    for name, runs in (("auto", ours), ("gadget", theirs)):
        shd = [structural_hamming_distance(essential_graph(run.graphs), truth).mean() for run in runs]
        row[f"{name}_seconds"] = float(np.mean([run.seconds for run in runs]))
        row |= {f"{name}_gap": largest_gap(*runs), f"{name}_eshd": float(np.mean(shd))}
    apart = np.mean([run.edges for run in theirs], axis=0) - np.mean([run.edges for run in ours], axis=0)
    return {**row, "apart": float(np.abs(apart).max())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[20, 50])
    parser.add_argument("--agreement", type=float, default=0.05)
    parser.add_argument("--times", type=float, default=20.0)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[0]])
    for nodes, limit in ((16, 60.0), (20, 1.0)):  # compile exact draws and chains
        auto(dp.simulate("bge", nodes=nodes, observations=50, seed=0, interventional_sets=0).train, 0, limit)
    rows = pd.read_csv(asked.out).to_dict("records") if asked.out.exists() else []
    for nodes in asked.nodes:
        row = compare(nodes, asked.agreement, asked.times)
        rows = [r for r in rows if r["nodes"] != nodes] + [row]
        pd.DataFrame(rows).to_csv(asked.out, index=False, float_format="%.4g")
        print(pd.DataFrame([row]).round(4).T.to_string(header=False), flush=True)


if __name__ == "__main__":
    main()
