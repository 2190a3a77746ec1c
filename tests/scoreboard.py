"""The robustness scoreboard: what survives kills, full disks and damaged files.

    python -m tests.scoreboard [--kills 200] [--processes 10] [--workers 2]

Kills are real (SIGKILL at a random moment of the run), resumed in a new process and compared bit for bit with a run
that nobody disturbed. Processes are forked from one that has imported the library and computed nothing.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import dagpost as dp
from dagpost import atomic
from dagpost.checkpoints import Checkpoint, State
from tests.digests import digest
from tests.faults import OF_ONE_WRITE, Failing, flipped, truncated

JOBS: dict[str, dict[str, Any]] = {
    "mc3": {"model": "bge", "method": "mc3", "particles": 1500, "burn_in": 20_000, "thin": 2_000},
    "dibs": {"model": "linear", "method": "dibs", "particles": 6, "steps": 600, "collapsed": False},
    "auto": {"model": "bge", "method": "auto", "particles": 6, "steps": 60, "draws": 200, "precision": 0.01},
}
ROTATION = ("mc3", "mc3", "mc3", "dibs", "auto")  # which job a trial takes
PROCESSES = multiprocessing.get_context("forkserver")


# ---- runs in processes of their own


def work(job: str, folder: str | None, pipe: Any) -> None:
    """Run a job, from where it was left if it has a folder; say when it begins, then how it ended."""
    warnings.simplefilter("ignore")
    sim = dp.simulate("linear", nodes=8, observations=100, seed=1, interventional_sets=0)
    kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 0.02, "resume": True}
    pipe.send("begun")
    began = time.perf_counter()
    post = dp.fit(sim.train, seed=7, progress=False, **JOBS[job], **kept)
    pipe.send((digest(post), time.perf_counter() - began))


def run(job: str, folder: str | None = None, kill_after: float | None = None) -> tuple[str, float] | None:
    """Digest and seconds of a job; None if it was killed before its end."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=work, args=(job, folder, theirs))
    process.start()
    theirs.close()
    try:
        if ours.recv() == "begun" and kill_after is not None:
            ended = ours.poll(kill_after)
            process.kill()
            return ours.recv() if ended else None
        return ours.recv()
    except EOFError:
        return None
    finally:
        process.join()


def killed_and_resumed(kills: int, workers: int, rng: np.random.Generator) -> str:
    trials = [(ROTATION[t % len(ROTATION)], rng.random()) for t in range(kills)]
    whole = {job: (run(job), run(job))[1] for job in {job for job, _ in trials}}  # the second finds everything compiled

    def trial(plan: tuple[str, float]) -> tuple[bool, bool]:
        job, share = plan
        expected = whole[job]
        assert expected is not None
        with tempfile.TemporaryDirectory() as folder:
            ended = run(job, folder, kill_after=share * expected[1])
            left = Checkpoint(folder).exists
            resumed = run(job, folder)
        return resumed is not None and resumed[0] == expected[0], ended is None and left

    with ThreadPoolExecutor(workers) as pool:
        results = []
        for number, result in enumerate(pool.map(trial, trials), start=1):
            results.append(result)
            print(f"\r{number} of {kills} kills", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    same, halfway = (sum(column) for column in zip(*results))
    return f"{same} of {kills} bit-identical ({halfway} of them resumed from a state halfway)"


def same_seed(processes: int, workers: int) -> str:
    with ThreadPoolExecutor(workers) as pool:
        found = {job: list(pool.map(lambda _, job=job: run(job), range(processes))) for job in JOBS}
    distinct = {
        job: len({result[0] if result else n for n, result in enumerate(results)}) for job, results in found.items()
    }
    return ", ".join(f"{job}: {count} hash{'es' * (count > 1)}" for job, count in distinct.items())


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
    PROCESSES.set_forkserver_preload(["dagpost.methods", "dagpost.simulation", "tests.digests"])
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
                lambda: killed_and_resumed(options.kills, options.workers, rng),
            ),
        ]
        for name, measure in rows:
            print(f"{name:52} {measure()}", flush=True)


if __name__ == "__main__":
    main()
