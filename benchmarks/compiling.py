"""How long does compiling take at each level of optimisation, and how fast is what comes out? On a CPU.

    python benchmarks/compiling.py [--nodes 12 20] [--models bge linear mlp] [--rows 100]

The sketch that `auto` starts from (a quarter of DiBS's default steps, 30 particles; of the MLP 60 steps): seconds of
the first run, which compiles, and of the fastest of two others. A process of its own for each level: XLA reads its
flags once.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time

LEVELS = {"0": "--xla_backend_optimization_level=0", "1 (ours)": "", "3 (JAX's)": "--xla_backend_optimization_level=3"}


def measure(model_name: str, nodes: int, rows: int) -> None:
    import dagpost as dp
    from dagpost.inference.auto import DIBS_SHARE
    from dagpost.inference.dibs import default_settings, infer
    from dagpost.models import as_model
    from dagpost.priors import as_prior

    model, prior = as_model(model_name), as_prior("erdos-renyi")

    def seconds(nodes: int, seed: int, **options: int) -> float:
        data = dp.simulate(model_name, nodes=nodes, observations=rows, seed=nodes, interventional_sets=0).train
        settings = default_settings(model, nodes, rows, **options)
        began = time.perf_counter()
        infer(data, model, prior, settings, particles=30, seed=seed, method="auto", progress=False)
        return time.perf_counter() - began

    steps = 60 if model_name == "mlp" else round(DIBS_SHARE * default_settings(model, nodes, rows).steps)
    moves = {} if model_name == "mlp" else {"moves": 0}
    seconds(4, 0, steps=2, **moves)  # what is compiled once for all sizes
    first, *others = (seconds(nodes, seed, steps=steps, **moves) for seed in range(3))
    print(f"first {first:6.2f} s, then {min(others):6.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[12, 20])
    parser.add_argument("--models", nargs="+", default=["bge", "linear", "mlp"])
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--here", action="store_true", help="measure in this process, with the flags it has")
    options = parser.parse_args()
    if options.here:
        measure(options.models[0], options.nodes[0], options.rows)
        return
    for model in options.models:
        for nodes in options.nodes:
            for level, flag in LEVELS.items():
                own = ["--here", "--models", model, "--nodes", str(nodes), "--rows", str(options.rows)]
                environment = {**os.environ, "XLA_FLAGS": flag, "JAX_PLATFORMS": "cpu"}
                found = subprocess.run(
                    [sys.executable, __file__, *own], env=environment, capture_output=True, text=True, check=True
                )
                print(f"{model:6} d {nodes:>3} level {level:9}: {found.stdout.strip()}", flush=True)


if __name__ == "__main__":
    main()
