"""How the defaults of `method="dibs"` were chosen: a grid over settings, on data sets that no benchmark reports.

    python benchmarks/tune.py --model bge --nodes 20 --steps 1000 2000 --bandwidth-z 2 8 20 --reheat-to 10 20

Prints, for every combination, medians over data sets (seeds 1000 and up): time, E-SHD and AUROC of DiBS and DiBS+, and
how many of the particles were cyclic. `dagpost/dibs/presets.py` holds what was chosen, docs/defaults.md the reasons.
"""

from __future__ import annotations

import argparse
import itertools
import time
from dataclasses import replace

import numpy as np
from dibs_lib import scores, simulated

import dagpost as dp
from dagpost.inference.dibs import Linear, Reheated, RmsProp, Settings, default_settings, infer
from dagpost.models import Model, as_model


def one(name: str, d: int, rows: int, seed: int, particles: int, settings) -> list[float]:
    sim = simulated(name, d, 1000 + seed, rows)
    started = time.perf_counter()
    post = infer(sim.train, as_model(name), dp.ErdosRenyi(), settings, particles=particles, seed=seed, progress=False)
    took = time.perf_counter() - started
    return [took, *scores(post, sim.graph).values(), post.info["cyclic"], post.expected_edges, sim.graph.sum()]


def variant(model: Model, d: int, rows: int, changes: dict[str, float]) -> Settings:
    """The defaults with some of them changed; temperatures by the value that they end with."""
    chosen = {k: v for k, v in changes.items() if v is not None}
    base = default_settings(model, d, rows, **{k: chosen[k] for k in ("steps", "moves") if k in chosen})
    out = base
    if "rate" in chosen:
        out = replace(out, optimiser=RmsProp(chosen["rate"]))
    if "samples" in chosen:
        out = replace(out, estimator=replace(base.estimator, samples=int(chosen["samples"])))
    if "beta_end" in chosen:
        out = replace(out, beta=Linear(chosen["beta_end"] / base.steps))
    if isinstance(base.alpha, Reheated):
        alpha = replace(base.alpha, last=chosen.get("alpha_end", base.alpha.last))
        quarter = max(1, round(base.steps / chosen.get("cycles", 4)))
        out = replace(out, alpha=replace(alpha, low=chosen.get("reheat_to", alpha.low), first=quarter, cycle=quarter))
    elif "alpha_end" in chosen:
        out = replace(out, alpha=Linear(chosen["alpha_end"] / base.steps))
    return replace(out, **{k: chosen[k] for k in ("bandwidth_z", "bandwidth_theta") if k in chosen})


TUNABLE = (
    "steps", "rate", "samples", "alpha_end", "beta_end", "reheat_to", "cycles", "bandwidth_z", "bandwidth_theta",
    "moves",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=["bge", "linear", "mlp"], required=True)
    parser.add_argument("--nodes", type=int, default=20)
    parser.add_argument("--observations", type=int, default=100)
    parser.add_argument("--sets", type=int, default=4)
    parser.add_argument("--particles", type=int, default=30)
    for name in TUNABLE:
        flag = "--" + name.replace("_", "-")
        parser.add_argument(
            flag, type=int if name in ("steps", "samples", "moves") else float, nargs="+", default=[None]
        )
    options = parser.parse_args()
    model = as_model(options.model)
    print("  time  E-SHD     +  AUROC     +  cyclic  edges (true)  changes")
    for values in itertools.product(*(getattr(options, name) for name in TUNABLE)):
        changes = dict(zip(TUNABLE, values))
        used = variant(model, options.nodes, options.observations, changes)
        table = [
            one(options.model, options.nodes, options.observations, s, options.particles, used)
            for s in range(options.sets)
        ]
        took, shd, shd_plus, auroc, auroc_plus, cyclic, edges, true = np.median(table, axis=0)
        told = ", ".join(f"{k} {v:g}" for k, v in changes.items() if v is not None) or "none: the defaults"
        print(
            f"{took:>6.2f}{shd:>7.1f}{shd_plus:>6.1f}{auroc:>7.3f}{auroc_plus:>6.3f}{cyclic:>8.1f}"
            f"{edges:>7.1f} ({true:.1f})  {told}",
            flush=True,
        )


if __name__ == "__main__":
    main()
