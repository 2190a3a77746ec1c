"""Does it pay to cool chains slowly from the empty graph? Chains of `auto` with hundreds of nodes, before their ladder.

    python benchmarks/annealing.py [--nodes 200 500 1000] [--models bge linear]

Erdős–Rényi networks with two edges per node, weights of the paper, 200 rows. Prints the log posterior of the DAG that a
chain of so many rounds reaches, its edges, and how many of them are true: annealed, at the posterior from the start,
and that of the true graph.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
from repeat import simulated

from dagpost.inference.mcmc.ensembles import UNTEMPERED, advance, graphs_of, start
from dagpost.inference.mcmc.ladder import anneal, hottest_level, rounds_per_heat, standard_recipe
from dagpost.inference.mcmc.scoring import log_posterior, scorer_for
from dagpost.models import as_model
from dagpost.priors import as_prior
from dagpost.typing import Graph

ROWS = 200


def compare(model_name: str, nodes: int, silent: bool = False) -> None:
    """Print the lines of one network."""
    sim = simulated(nodes, model_name, "erdos-renyi", 0, ROWS, 0.0)
    model, prior = as_model(model_name), as_prior("erdos-renyi")
    scoring = scorer_for(model, prior, model.summarise(sim.train), nodes)
    empty, heats = np.zeros((1, nodes, nodes), np.bool_), np.geomspace(1.0, hottest_level(nodes, ROWS), 10)

    def show(what: str, graph: Graph, seconds: float) -> None:
        reached = log_posterior(scoring.scorer, start(graph[None], scoring, 1).scores[0])
        right = int((graph & sim.graph.astype(bool)).sum())
        if not silent:
            print(
                f"{model_name:6} {nodes:5} nodes  {what:22} {seconds:6.1f} s  log posterior {reached:9.0f}  "
                f"{int(graph.sum())} edges, {right} right",
                flush=True,
            )

    show("true graph", sim.graph.astype(bool), 0.0)
    began = time.perf_counter()
    annealed = anneal(empty, scoring, np.array([1]), heats)[0]
    show("annealed", annealed, time.perf_counter() - began)
    began, chain = time.perf_counter(), start(empty, scoring, 1)
    advance([chain], scoring, UNTEMPERED, standard_recipe(nodes, scoring), len(heats) * rounds_per_heat(nodes))
    show("at the posterior", graphs_of(chain.parents)[0], time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[200, 500, 1000])
    parser.add_argument("--models", nargs="+", default=["bge", "linear"])
    asked = parser.parse_args()
    for model in asked.models:
        compare(model, 20, silent=True)  # compiles
    for nodes, model in itertools.product(asked.nodes, asked.models):
        compare(model, nodes)


if __name__ == "__main__":
    main()
