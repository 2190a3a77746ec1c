"""How the defaults of `method="dibs"` were chosen: a grid over settings, on data sets that no benchmark reports.

    python benchmarks/tune.py --model linear --nodes 20 --steps 500 1000 --rate 0.01 0.02 --alpha-end 10 20 40

Prints, for every combination, medians over data sets (seeds 1000 and up): time, E-SHD and AUROC of DiBS and DiBS+, and
how many of the particles were cyclic. `TUNED` in `dagpost/dibs/presets.py` holds what was chosen.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np

import dagpost as dp
from dagpost.dibs import Linear, RmsProp, default_settings, infer
from dagpost.models import as_model


def one(name: str, d: int, rows: int, seed: int, particles: int, settings) -> list[float]:
    shift = 0.0 if name == "mlp" else 0.5
    sim = dp.simulate(name, nodes=d, observations=rows, seed=1000 + seed, weight_shift=shift, interventional_sets=0)
    started = time.perf_counter()
    post = infer(sim.train, as_model(name), dp.ErdosRenyi(), settings, particles=particles, seed=seed, progress=False)
    took = time.perf_counter() - started
    plus = post.weighted("posterior")
    shd = [dp.metrics.expected_shd(p, sim.graph) for p in (post, plus)]
    auroc = [dp.metrics.auroc(p, sim.graph) for p in (post, plus)]
    return [took, *shd, *auroc, post.info["cyclic"], post.expected_edges, sim.graph.sum()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["bge", "linear", "mlp"], required=True)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--observations", type=int, default=100)
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--particles", type=int, default=30)
    for name in ("steps", "rate", "alpha-end", "beta-end", "bandwidth-z", "bandwidth-theta"):
        parser.add_argument(f"--{name}", type=int if name == "steps" else float, nargs="+", default=[None])
    options = parser.parse_args()
    model = as_model(options.model)
    grid = itertools.product(
        options.steps, options.rate, options.alpha_end, options.beta_end, options.bandwidth_z, options.bandwidth_theta
    )
    print("steps   rate  alpha    beta  bw_z  bw_theta |  time  E-SHD     +  AUROC     +  cyclic  edges (true)")
    for steps, rate, alpha_end, beta_end, bandwidth_z, bandwidth_theta in grid:
        base = default_settings(model, options.nodes, options.observations, **({"steps": steps} if steps else {}))
        changes = {
            "steps": base.steps,
            "optimiser": RmsProp(rate) if rate else None,
            "alpha": Linear(alpha_end / base.steps) if alpha_end else None,
            "beta": Linear(beta_end / base.steps) if beta_end else None,
            "bandwidth_z": bandwidth_z,
            "bandwidth_theta": bandwidth_theta,
        }
        chosen = {k: v for k, v in changes.items() if v is not None}
        used = default_settings(model, options.nodes, options.observations, **chosen)
        table = np.array(
            [
                one(options.model, options.nodes, options.observations, s, options.particles, used)
                for s in range(options.sets)
            ]
        )
        took, shd, shd_plus, auroc, auroc_plus, cyclic, edges, true = np.median(table, axis=0)
        print(
            f"{used.steps:>5}{used.optimiser.rate:>7.3f}{used.alpha.slope * used.steps:>7.0f}"
            f"{used.beta.slope * used.steps:>8.0f}{used.bandwidth_z:>6.0f}{used.bandwidth_theta:>10.0f} |"
            f"{took:>6.2f}{shd:>7.1f}{shd_plus:>6.1f}{auroc:>7.3f}{auroc_plus:>6.3f}{cyclic:>8.1f}"
            f"{edges:>7.1f} ({true:.1f})",
            flush=True,
        )


if __name__ == "__main__":
    main()
