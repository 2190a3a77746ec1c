"""SVGD, SGLD and HMC on the latent posterior of DiBS, at equal numbers of gradients.

    python benchmarks/samplers.py [--jobs 5-bge 5-linear 5-mlp 20-bge 20-linear] [--sets 4] [--particles 50] [--show]

writes benchmarks/results/samplers.csv (rows of problems that are not run stay) and prints its means as a table. Runs
are without the Metropolis moves that the defaults make after the last step, which would hide what the samplers do.
Schedules are those of the defaults. "own": the estimator that the defaults take for the sampler; "exact": the sum over
all parent sets for every sampler.

`edge_error` is the mean absolute difference of edge probabilities from the exact posterior, over ordered pairs (of
neural networks with estimated evidence, whose runs take half an hour of one busy core);
`soft_error` the same of the expectation at the last alpha (proposition 1). `graphs` counts different graphs, `ess` is
the effective number of particles of DiBS+. `noise` is the edge error of as many independent exact draws.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.inference.dibs import Estimator, default_settings
from dagpost.metrics import auroc, expected_shd, negative_log_likelihood

RESULTS = Path(__file__).parent / "results" / "samplers.csv"
JOBS = {
    "5-bge": ("bge", 5, ("own", "exact")),
    "5-linear": ("linear", 5, ("own", "exact")),
    "5-mlp": ("mlp", 5, ("own", "exact")),
    "20-bge": ("bge", 20, ("own",)),
    "20-linear": ("linear", 20, ("own",)),
}
MODELS: dict[str, dp.Model] = {"bge": dp.BGe(), "linear": dp.LinearGaussian(), "mlp": dp.MlpGaussian()}
GRADIENTS = 1000
"""Gradients of each particle, also for neural networks, whose default is 3,000."""
SAMPLERS = ("svgd", "sgld", "hmc")


def edge_error(marginals: np.ndarray, exact: np.ndarray) -> float:
    """Mean absolute difference over ordered pairs."""
    d = len(exact)
    return float(np.abs(marginals - exact).sum() / (d * (d - 1)))


def measure(job: str, number: int, particles: int) -> list[dict[str, Any]]:
    """Run every sampler on one data set."""
    name, d, estimators = JOBS[job]
    model = MODELS[name]
    sim = dp.simulate("mlp" if name == "mlp" else "linear", nodes=d, observations=100, seed=100 + number)
    exact = dp.exact(sim.train, model, draws=1000) if d == 5 else None
    rows = []
    for which in estimators:
        for sampler in SAMPLERS:
            options: dict[str, Any] = {"sampler": sampler, "moves": 0, "collapsed": name == "bge"}
            if which == "exact":
                options["estimator"] = Estimator("exact")
            settings = default_settings(model, d, 100, **options)
            evaluations = 1 if settings.chain is None else settings.chain.evaluations
            options["steps"] = round(GRADIENTS / evaluations)
            began = time.perf_counter()
            post = dp.fit(sim.train, model, method="dibs", particles=particles, seed=number, progress=False, **options)
            seconds = time.perf_counter() - began
            plus = post.weighted("posterior")
            row = {
                "job": job, "set": number, "sampler": sampler, "estimator": f"{which} ({settings.estimator.kind})",
                "gradients": options["steps"] * evaluations,
                "particles": particles, "cyclic": post.info["cyclic"],
                "graphs": len(np.unique(post.graphs.reshape(len(post), -1), axis=0)),
                "ess": float(1 / np.sum(plus.weights**2)),
                "eshd": expected_shd(post, sim.graph), "auroc": auroc(post, sim.graph),
                "nll": negative_log_likelihood(post, sim.test),
                "plus_eshd": expected_shd(plus, sim.graph), "plus_auroc": auroc(plus, sim.graph),
                "plus_nll": negative_log_likelihood(plus, sim.test), "seconds": seconds,
            }  # fmt: skip
            if exact is not None:
                truth = exact.edge_marginals
                soft = post.latent_expectation(lambda graph: graph, samples=200)
                draws = exact.sample(particles, seed=number)
                row |= {
                    "edge_error": edge_error(post.edge_marginals, truth), "soft_error": edge_error(soft.mean, truth),
                    "plus_error": edge_error(plus.edge_marginals, truth),
                    "noise": edge_error(draws.mean(axis=0), truth),
                }  # fmt: skip
            rows.append(row)
            print(" ".join(f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()), flush=True)
    return rows


SHOWN = (
    "edge_error", "plus_error", "soft_error", "noise", "eshd", "plus_eshd", "auroc", "plus_auroc", "nll", "plus_nll",
    "graphs", "ess", "cyclic",
)  # fmt: skip


def table(results: pd.DataFrame) -> str:
    """Means over data sets, as Markdown."""
    means = results.groupby(["job", "estimator", "sampler"], sort=False)[list(SHOWN)].mean()
    lines = ["| " + " | ".join(["problem", "estimator", "sampler", *SHOWN]) + " |", "|" + " --- |" * (3 + len(SHOWN))]
    for names, row in means.iterrows():
        cells = ["" if pd.isna(v) else f"{v:.3f}" if abs(v) < 1 else f"{v:.1f}" for v in row]
        lines.append("| " + " | ".join([*map(str, names), *cells]) + " |")  # type: ignore[arg-type]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--particles", type=int, default=50)
    parser.add_argument("--show", action="store_true", help="print the table of the results that are there")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = pd.read_csv(options.out) if options.out.exists() else pd.DataFrame(columns=["job"])
    if options.show:
        print(table(results))
        return
    results = results[~results["job"].isin(options.jobs)]
    for job in options.jobs:
        small = JOBS[job][1] == 5
        for number in range(options.sets if small else min(options.sets, 3)):
            rows = measure(job, number, options.particles if small else 30)
            results = pd.concat([results, pd.DataFrame(rows).round(4)], ignore_index=True)
            results.to_csv(options.out, index=False)
    print(table(results))


if __name__ == "__main__":
    main()
