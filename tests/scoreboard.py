"""The robustness scoreboard: what survives kills, full disks and damaged files.

    python -m tests.scoreboard [--kills 200] [--processes 10] [--workers 2]

Processes are forked from one that has imported the library and computed nothing; `tests.kills` says how they are
killed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import dagpost as dp
from dagpost.inference.checkpoints import Checkpoint, State
from tests.faults import OF_ONE_WRITE, Failing, flipped, truncated
from tests.kills import JOBS, PROCESSES, Killed, killed_and_resumed, run, shared_out

# ---- runs in processes of their own


def kill_row(count: int, workers: int, rng: np.random.Generator) -> str:
    results: list[Killed] = []

    def done(trial: Killed) -> None:
        results.append(trial)
        print(f"\r{len(results)} of {count} kills", end="", file=sys.stderr, flush=True)

    expected = {job: run(job) for job in JOBS}
    with ThreadPoolExecutor(workers) as pool:
        plans = shared_out(count, workers, rng)
        trials = [pool.submit(killed_and_resumed, job, shares, expected[job], done) for job, shares in plans]
        for trial in trials:
            trial.result()
    print(file=sys.stderr)
    of_jobs = ", ".join(f"{sum(r.job == job for r in results)} {job}" for job in JOBS)
    same, halfway = sum(r.same for r in results), sum(r.halfway for r in results)
    return f"{same} of {count} bit-identical ({of_jobs}; {halfway} went on from a state halfway)"


def same_seed(processes: int, workers: int) -> str:
    with ThreadPoolExecutor(workers) as pool:
        found = {job: set(pool.map(lambda _, job=job: run(job), range(processes))) for job in JOBS}
    return ", ".join(f"{job}: {len(digests)} hash{'es' * (len(digests) > 1)}" for job, digests in found.items())


# ---- files


def state(number: int) -> State:
    return State({"x": np.full(1000, float(number))}, {"number": number})


def loaded(folder: str) -> int | None:
    found = Checkpoint(folder).load()
    if found is None or (found.arrays["x"] != found.facts["number"]).any():
        return None
    return found.facts["number"]


def failing_calls() -> str:
    """Both ways: one call fails, or everything from it on, as when a process dies there."""
    good = total = 0
    for at in range(OF_ONE_WRITE):
        for onwards in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                checkpoint = Checkpoint(folder)
                checkpoint.save(state(0))
                checkpoint.save(state(1))
                vars(atomic)["os"] = Failing(at, onwards)
                try:
                    checkpoint.save(state(2))
                except OSError:
                    total += 1
                finally:
                    vars(atomic)["os"] = os
                good += loaded(folder) in (1, 2)
    return f"a state loads after {good} of {total}"


def damaged(times: int, harm: Callable[..., bytes], rng: np.random.Generator) -> str:
    """Harm the newer of two states: the older one must load."""
    noticed = 0
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Checkpoint(folder)
        checkpoint.save(state(0))
        checkpoint.save(state(1))
        newest = Path(folder) / "state-1"
        content = newest.read_bytes()
        for _ in range(times):
            newest.write_bytes(harm(content, rng))
            noticed += loaded(folder) == 0
    return f"{noticed} of {times} noticed, the state before loads"


def damaged_posteriors(times: int, harm: Callable[..., bytes], rng: np.random.Generator) -> str:
    """Harm a saved posterior: loading must fail, with an error that says why."""
    save, load = getattr(dp.Posterior, "save", None), getattr(dp, "load", None)
    if save is None or load is None:
        return "posteriors are not saved yet"
    sim = dp.simulate("bge", nodes=4, observations=30, seed=1, interventional_sets=0)
    noticed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "posterior.nc"
        save(dp.exact(sim.train, "bge"), path)
        content = path.read_bytes()
        for _ in range(times):
            path.write_bytes(harm(content, rng))
            try:
                load(path)
            except dp.InputError:
                noticed += 1
    return f"{noticed} of {times} refused"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    warnings.simplefilter("ignore")
    # a fork of a process that has only imported is safe: nothing has been started yet
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    PROCESSES.set_forkserver_preload(["dagpost.inference.fit", "tests.kills"])
    with tempfile.TemporaryDirectory() as cache:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", cache)
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        rows: list[tuple[str, Callable[[], str]]] = [
            ("failure injected at every write, fsync and rename", failing_calls),
            ("1,000 byte flips of checkpoints", lambda: damaged(1000, flipped, rng)),
            ("200 truncations of checkpoints", lambda: damaged(200, truncated, rng)),
            ("1,000 byte flips of posterior files", lambda: damaged_posteriors(1000, flipped, rng)),
            ("200 truncations of posterior files", lambda: damaged_posteriors(200, truncated, rng)),
            (f"same seed, {options.processes} processes", lambda: same_seed(options.processes, options.workers)),
            (
                f"kill -9 at {options.kills} random moments, then resume",
                lambda: kill_row(options.kills, options.workers, rng),
            ),
        ]
        for name, measure in rows:
            print(f"{name:52} {measure()}", flush=True)


if __name__ == "__main__":
    main()
