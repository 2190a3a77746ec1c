"""Does `method="dibs-paper"` agree with dibs-lib in distribution? Same data, same settings, many runs of each.

    python benchmarks/agreement.py [--nodes 10] [--steps 300] [--runs 20] [--shift 0.5]

For each model it prints means and standard errors over the runs of E-SHD, AUROC, expected number of edges and
held-out log likelihood, and the difference in standard errors. Small graphs and few steps keep dibs-lib's runs short,
with a slope of beta ten times the published one so that particles are acyclic by then; the settings are otherwise those
of the paper. Below 9 nodes the two libraries have different priors: two edges for each node would need an edge
probability above one half, which dagpost does not use. dibs-lib's linear particles start with weights moved away from
zero by 0.5; the paper's start from the prior, and so do both here unless `--shift 0.5` is given.
"""

from __future__ import annotations

import argparse

import jax
import numpy as np
from dibs_lib import their_method, their_particles, their_posterior

import dagpost as dp
from dagpost.inference.dibs import Linear, infer, paper_settings
from dagpost.models import as_model
from dagpost.posterior import Posterior

BETA = 10.0
FIGURES = ("E-SHD", "AUROC", "edges", "held-out")


def figures(post: Posterior, sim: dp.Simulation) -> list[float]:
    return [
        dp.metrics.expected_shd(post, sim.graph),
        dp.metrics.auroc(post, sim.graph),
        post.expected_edges,
        -dp.metrics.negative_log_likelihood(post, sim.test),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["bge", "linear", "mlp"])
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--particles", type=int, default=8)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--shift", type=float, default=0.0, help="of dibs-lib's first linear weights; its own is 0.5")
    options = parser.parse_args()
    print(f"{jax.devices()[0].device_kind}, d = {options.nodes}, {options.steps} steps, {options.runs} runs of each")
    print(f"{'':9}{'':10}{'dibs-paper':>18}{'dibs-lib':>18}{'difference / s.e.':>20}")
    for name in options.models:
        sim = dp.simulate(name, nodes=options.nodes, observations=100, seed=77, interventional_sets=0)
        model = as_model(name)
        settings = paper_settings(model, options.nodes, steps=options.steps, cyclic="drop", beta=Linear(BETA))
        method = their_method(name, sim, BETA, options.shift)
        ours, theirs = [], []
        for seed in range(options.first_seed, options.first_seed + options.runs):
            post = infer(
                sim.train, model, dp.ErdosRenyi(), settings, particles=options.particles, seed=seed, progress=False
            )
            ours.append(figures(post, sim))
            graphs, theta = their_particles(method, name, options.particles, options.steps, seed)
            theirs.append(figures(their_posterior(name, sim, np.asarray(graphs) > 0, theta), sim))
        ours, theirs, root = np.array(ours), np.array(theirs), np.sqrt(options.runs)
        for k, figure in enumerate(FIGURES):
            errors = [table[:, k].std(ddof=1) / root for table in (ours, theirs)]
            apart = (ours[:, k].mean() - theirs[:, k].mean()) / max(np.hypot(*errors), 1e-12)
            cells = "".join(f"{t[:, k].mean():>10.3f} ± {e:<5.3f}" for t, e in zip((ours, theirs), errors))
            print(f"{name if k == 0 else '':9}{figure:10}{cells}{apart:>14.1f}", flush=True)


if __name__ == "__main__":
    main()
