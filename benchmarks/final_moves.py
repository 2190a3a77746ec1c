"""The Metropolis moves with which particles of DiBS end: rounds with larger moves beside moves of single edges alone.

    python benchmarks/final_moves.py [--nodes 20] [--models bge linear] [--particles 120] [--limit 300]

Erdős–Rényi networks of the paper's protocol, 100 rows. Prints, for numbers of moves per node: seconds of all particles,
the mean log posterior of their DAGs, and the root mean square and the largest difference of an edge probability from
`auto`, which runs until the limit where it does not draw exactly. So many draws of `auto` itself come first.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable

import jax
import numpy as np

import dagpost as dp
from dagpost.inference.checkpoints import NULL_SECTION
from dagpost.inference.mcmc import equilibrate
from dagpost.inference.mcmc.ensembles import run_moves, start
from dagpost.inference.mcmc.scoring import scorer_for
from dagpost.models import as_model
from dagpost.posterior import log_joint_of
from dagpost.priors import as_prior
from dagpost.typing import Graphs

PER_NODE = {"rounds": (100, 400, 1000, 4000), "single edges": (1000, 10_000)}


def compare(model_name: str, nodes: int, asked: argparse.Namespace) -> None:
    """Print the table of one model."""
    sim = dp.simulate(model_name, "erdos-renyi", nodes=nodes, observations=100, seed=0, interventional_sets=0)
    model, prior = as_model(model_name), as_prior("erdos-renyi")
    stats = model.summarise(sim.train)
    scoring = scorer_for(model, prior, stats, nodes)
    auto = dp.fit(sim.train, model, prior, time_limit=asked.limit, progress=False)
    particles = dp.fit(sim.train, model, prior, "dibs", particles=asked.particles, moves=0, progress=False).graphs

    def show(what: str, graphs: Graphs, seconds: float) -> None:
        apart = (graphs.mean(axis=0) - auto.edge_marginals)[~np.eye(nodes, dtype=bool)]
        mean = float(np.mean(log_joint_of(graphs, (), model, prior, stats)))
        print(
            f"  {what:26} {seconds:6.1f} s  {mean:9.1f}  {np.sqrt(np.mean(apart**2)):.4f}  {np.abs(apart).max():.3f}",
            flush=True,
        )

    def rounds(graphs: Graphs, moves: int) -> Graphs:
        return equilibrate(graphs, moves, model, prior, stats, jax.random.key(1))[0]

    def single_edges(graphs: Graphs, moves: int) -> Graphs:
        chains = [start(graph[None], scoring, seed, 1 << 15) for seed, graph in enumerate(graphs)]
        return run_moves(chains, scoring, "pair", moves, NULL_SECTION, None)

    print(f"{model_name}, {nodes} nodes; auto: {auto.info['verdict']}")
    some = np.random.default_rng(0).choice(len(auto.graphs), asked.particles)
    show("draws of auto", auto.graphs[some], auto.info["total_seconds"])
    show("before moves", particles, 0.0)
    ways: dict[str, Callable[[Graphs, int], Graphs]] = {"rounds": rounds, "single edges": single_edges}
    for name, way in ways.items():
        way(particles[:2], 100)  # compiles
        for moves in PER_NODE[name]:
            began = time.perf_counter()
            moved = way(particles, moves * nodes)
            show(f"{name}, {moves:,} per node", moved, time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[20])
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    parser.add_argument("--particles", type=int, default=120)
    parser.add_argument("--limit", type=float, default=300.0)
    asked = parser.parse_args()
    for nodes, model in itertools.product(asked.nodes, asked.models):
        compare(model, nodes, asked)


if __name__ == "__main__":
    main()
