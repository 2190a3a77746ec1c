"""dibs-lib and dagpost side by side: same data sets, same machine, one run.

    python benchmarks/dibs_lib.py --settings linear-20 bge-20 --sets 10 [--their-steps 3000] [--out results.csv]

For each setting it prints, as medians over data sets: time of a step, total time with and without compiling,
E-SHD and AUROC of DiBS and DiBS+, the time dagpost needs to reach dibs-lib's quality, and the ratios. Quality is
reached by the smallest share of the default steps and moves, with its own annealing, whose medians over the same data
sets are at least as good: E-SHD of DiBS and of DiBS+ no larger, AUROC of DiBS no smaller. Runs on a GPU where JAX finds
one. `--moves 0` shows DiBS without the Metropolis moves that our defaults add for BGe and linear models.

dibs-lib takes hours for some settings on a CPU. `--their-steps 60` measures its time of a step only and scales it to
3,000 steps; `--quality FILE` then takes its E-SHD and AUROC from a table that this command wrote elsewhere (on a GPU,
say) with `--out`: the same data sets are made from the same seeds, and the scaled time is marked with a star.
"""

from __future__ import annotations

import argparse
import time
import warnings

import jax
import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.errors import WeightingWarning
from dagpost.graphs import is_acyclic
from dagpost.inference.dibs import default_settings, infer
from dagpost.models import as_model
from dagpost.posterior import Posterior
from dagpost.studies.dibs_lib import as_posterior, sampler

SETTINGS = ["linear-20", "linear-50", "linear-100", "mlp-20", "mlp-50", "mlp-100", "bge-20", "bge-50", "bge-100"]
THEIR_STEPS = 3000


REPORTED = 50_000  # first seed of the data sets that are reported; `tune.py` has its own


def simulated(name: str, d: int, seed: int, rows: int = 100) -> dp.Simulation:
    """ER graphs with 2d edges; linear weights shifted by 0.5 as dibs-lib generates them."""
    shift = 0.0 if name == "mlp" else 0.5
    return dp.simulate(name, nodes=d, observations=rows, seed=seed, weight_shift=shift, interventional_sets=0)


def scores(post: Posterior, truth: np.ndarray) -> dict[str, float]:
    with warnings.catch_warnings():  # particles of `dibs` that ended with moves keep their equal weights
        warnings.simplefilter("ignore", WeightingWarning)
        plus = post.weighted("posterior")
    return {
        "shd": dp.metrics.expected_shd(post, truth),
        "shd+": dp.metrics.expected_shd(plus, truth),
        "auroc": dp.metrics.auroc(post, truth),
        "auroc+": dp.metrics.auroc(plus, truth),
    }


# ---- dibs-lib


def their_method(name: str, sim: dp.Simulation, beta: float = 1.0, shift: float = 0.5):
    """dibs-lib with the published settings on the training data."""
    return sampler(sim.train.values, as_model(name), "erdos-renyi", beta, shift)


def their_particles(method, name: str, particles: int, steps: int, seed: int):
    """Graphs and parameters after exactly `steps` steps."""
    result = method.sample(key=jax.random.PRNGKey(seed), n_particles=particles, steps=steps)
    jax.block_until_ready(result)
    return (result, ()) if name == "bge" else result


def theirs(name: str, sim: dp.Simulation, particles: int, steps: int, seed: int) -> dict[str, float]:
    method = their_method(name, sim)
    timings = []
    for _ in range(2 if seed == 0 else 1):  # the first run compiles; the first data set tells how long that takes
        started = time.perf_counter()
        graphs, theta = their_particles(method, name, particles, steps, seed)
        timings.append(time.perf_counter() - started)
        if timings[0] > 30:
            break  # compiling is a small part of a long run
    out = {"time": timings[-1] if seed == 0 else np.nan, "with_compiling": timings[0], "steps": steps}
    if steps == THEIR_STEPS:
        out |= scores(their_posterior(name, sim, np.asarray(graphs) > 0, theta), sim.graph)
    return out


def their_posterior(name: str, sim: dp.Simulation, graphs: np.ndarray, theta) -> Posterior:
    """Their particles as a Posterior; where no particle is a DAG, all of them as the empty graph."""
    graphs = graphs if is_acyclic(graphs).any() else np.zeros_like(graphs)
    return as_posterior(sim.train, as_model(name), "erdos-renyi", graphs, theta)


# ---- dagpost

BUDGETS = (0.03, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0)  # shares of the default steps and of the default moves


CHANGES: dict[str, int] = {}  # to the defaults, from the command line


def ours(name: str, sim: dp.Simulation, particles: int, seed: int, share: float = 1.0) -> dict[str, float]:
    model = as_model(name)
    d, rows = sim.train.nodes, sim.train.observations
    settings = default_settings(model, d, rows, **CHANGES)
    if share < 1:
        fewer = {"steps": max(1, round(share * settings.steps)), "moves": round(share * settings.moves)}
        settings = default_settings(model, d, rows, **fewer)
    started = time.perf_counter()
    post = infer(sim.train, model, dp.ErdosRenyi(), settings, particles=particles, seed=seed, progress=False)
    return {"time": time.perf_counter() - started, "steps": settings.steps, **scores(post, sim.graph)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=["linear-20"])
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--particles", type=int, default=30)
    parser.add_argument("--their-steps", type=int, default=THEIR_STEPS)
    parser.add_argument("--their-sets", type=int, help="data sets that dibs-lib runs on; all unless told")
    parser.add_argument("--only", choices=["dibs-lib", "dagpost"], help="one of the two alone")
    parser.add_argument("--first-seed", type=int, default=REPORTED, help="1000: the data sets of tune.py")
    parser.add_argument("--shares", type=float, nargs="+", default=BUDGETS, help="of the default run, to try in turn")
    parser.add_argument("--no-reach", action="store_true", help="leave out the time to reach dibs-lib's quality")
    parser.add_argument("--no-default", action="store_true", help="leave out the default run of dagpost")
    parser.add_argument("--quality", help="table with dibs-lib's E-SHD and AUROC, written by --out elsewhere")
    parser.add_argument("--out", help="write one row for each run")
    parser.add_argument("--moves", type=int, help="Metropolis moves after DiBS in place of the default; 0: none")
    options = parser.parse_args()
    if options.moves is not None:
        CHANGES["moves"] = options.moves
    print(f"{jax.devices()[0].device_kind}, JAX {jax.__version__}, dagpost {dp.__version__}, M = {options.particles}")
    quality = pd.read_csv(options.quality) if options.quality else None
    rows: list[dict] = []
    for setting in options.settings:
        name, d = setting.split("-")
        simulations = [simulated(name, int(d), options.first_seed + number) for number in range(options.sets)]
        for number, sim in enumerate(simulations):
            label = {"setting": setting, "set": number}
            if options.only != "dagpost" and number < (options.their_sets or options.sets):
                found = theirs(name, sim, options.particles, options.their_steps, number)
                rows.append({**label, "library": "dibs-lib", **found})
            if options.only != "dibs-lib" and not options.no_default:
                full = [ours(name, sim, options.particles, number) for _ in range(2 if number == 0 else 1)]
                rows.append({**label, "library": "dagpost", **full[-1], "with_compiling": full[0]["time"]})
            print(".", end="", flush=True)
        print()
        table = pd.DataFrame([r for r in rows if r["setting"] == setting])
        source = table if quality is None else quality[quality.setting == setting]
        wanted = source[source.library == "dibs-lib"]
        their_total = _print(setting, table, source)
        if not (options.no_reach or options.only) and "shd" in wanted and wanted.shd.notna().any():
            reached = _reach(
                name, simulations, options.particles, options.shares, wanted[["shd", "shd+", "auroc"]].median()
            )
            _print_reached(reached, their_total)
            if reached is not None:
                rows += [{"setting": setting, "library": "reach", **row} for row in reached.to_dict("records")]
        if options.out:
            pd.DataFrame(rows).to_csv(options.out, index=False)


def _reach(
    name: str, simulations: list[dp.Simulation], particles: int, shares: list[float], wanted: pd.Series
) -> pd.DataFrame | None:
    """The runs of the shortest budget that is at least as good in the median; times without compiling."""
    for share in shares:
        ours(name, simulations[0], particles, 0, share)
        table = pd.DataFrame([{"set": n, **ours(name, sim, particles, n, share)} for n, sim in enumerate(simulations)])
        found = table[["shd", "shd+", "auroc"]].median()
        if found.shd <= wanted.shd and found["shd+"] <= wanted["shd+"] and found.auroc >= wanted.auroc:
            return table
    return None


def _print(setting: str, table: pd.DataFrame, source: pd.DataFrame) -> float:
    """The table of one setting; returns dibs-lib's total time."""

    def median(library: str, column: str, source: pd.DataFrame = table) -> float:
        part = source[source.library == library]
        return float(part[column].median()) if column in part and len(part) else float("nan")

    scaled = median("dibs-lib", "steps") != THEIR_STEPS
    their_step = median("dibs-lib", "time") / median("dibs-lib", "steps")
    their_total = their_step * THEIR_STEPS
    print(f"\n{setting}: medians over {table.set.nunique()} data sets")
    print(
        f"{'':10}{'ms/step':>9}{'steps':>7}{'total s':>10}{'compile s':>10}{'E-SHD':>8}{'/ +':>7}{'AUROC':>8}{'/ +':>7}"
    )
    for library, total in (("dibs-lib", their_total), ("dagpost", median("dagpost", "time"))):
        where = source if library == "dibs-lib" else table
        steps = THEIR_STEPS if library == "dibs-lib" else median(library, "steps")
        extra = median(library, "with_compiling") - median(library, "time")
        star = "*" if library == "dibs-lib" and scaled else " "
        print(
            f"{library:10}{1e3 * total / steps:>9.2f}{steps:>7.0f}{total:>9.2f}{star}{extra:>10.1f}"
            f"{median(library, 'shd', where):>8.1f}{median(library, 'shd+', where):>7.1f}"
            f"{median(library, 'auroc', where):>8.3f}{median(library, 'auroc+', where):>7.3f}"
        )
    print(f"ratio of total times {their_total / median('dagpost', 'time'):.0f}", flush=True)
    return their_total


def _print_reached(reached: pd.DataFrame | None, their_total: float) -> None:
    if reached is None:
        print("dibs-lib's quality is not reached")
        return
    middle = reached.time.median()
    print(
        f"dibs-lib's quality reached in {middle:.2f} s ({reached.steps.median():.0f} steps; E-SHD "
        f"{reached.shd.median():.1f} / {reached['shd+'].median():.1f}, AUROC {reached.auroc.median():.3f}): "
        f"ratio {their_total / middle:.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main()
