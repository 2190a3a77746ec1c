"""Numerical evidence of any model on the CPU and on the device that JAX uses: the same numbers, and how fast?

    python benchmarks/evidence_devices.py [--nodes 10] [--families 512]

The model is that of examples/own_model.py, linear with Laplace noise; families have up to four parents. A device takes
them in batches, a CPU one by one in threads. Prints the largest difference of two log evidences, beside the largest
error that they claim, and families a second of each without compiling.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import jax
import numpy as np

import dagpost as dp
from dagpost.models.family_evidence import QUICK
from dagpost.models.numerical import LaplaceEvidence

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
from own_model import LaplaceLinear


def timed(evidence: LaplaceEvidence, families: list) -> float:
    """Return the seconds of all families; the first batch, which compiles, comes before."""
    evidence.fill(families[: evidence.batch])
    evidence.known.clear()
    began = time.perf_counter()
    evidence.fill(families)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=10)
    parser.add_argument("--families", type=int, default=512)
    asked = parser.parse_args()
    model = LaplaceLinear()
    sim = dp.simulate(nodes=asked.nodes, observations=200, model=model, seed=0, interventional_sets=0)
    stats = model.summarise(sim.train)
    rng, families = np.random.default_rng(0), {}
    while len(families) < asked.families:
        node, row = int(rng.integers(asked.nodes)), np.zeros(asked.nodes, dtype=bool)
        others = np.delete(np.arange(asked.nodes), node)
        row[rng.choice(others, rng.integers(5), replace=False)] = True
        families[node, row.tobytes()] = (node, row, QUICK)
    wanted, found = list(families.values()), []
    for device in dict.fromkeys([jax.devices("cpu")[0], jax.devices()[0]]):
        with jax.default_device(device):
            evidence = LaplaceEvidence(model, stats)
            if device.platform == "cpu":
                evidence.batch = 1
            seconds = timed(evidence, wanted)
        print(f"{device.device_kind}: {len(wanted) / seconds:,.0f} families a second", flush=True)
        found.append(np.array([evidence.known[key][:2] for key in families]))
    apart = np.abs(found[0] - found[-1])[:, 0].max()
    print(f"largest difference {apart:.2g}, largest error claimed {found[0][:, 1].max():.2g}")


if __name__ == "__main__":
    main()
