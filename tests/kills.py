"""Kills at random moments: real processes, real SIGKILL, resumed in a new process and compared bit for bit.

Starting a process costs more than the run it is killed in, so each one serves three times: it resumes, fresh, what was
left of the process before it; then it runs the job once undisturbed, which says how long that takes here and now with
everything compiled; then it begins a run of its own and is killed at a uniformly random moment of it.
"""

from __future__ import annotations

import multiprocessing
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import dagpost as dp
from dagpost.inference.checkpoints import Checkpoint
from tests.digests import digest

JOBS: dict[str, dict[str, Any]] = {
    "mc3": {"model": "bge", "method": "mc3", "particles": 1500, "burn_in": 20_000, "thin": 200},
    "dibs": {"model": "linear", "method": "dibs", "particles": 6, "steps": 2000, "collapsed": False},
    "auto": {
        "model": "bge", "method": "auto", "particles": 4, "steps": 100, "draws": 50, "precision": 0.03,
        "max_moves": 400_000,
    },
}  # fmt: skip
"""MCMC; DiBS over graphs and parameters; DiBS without parameters and then MCMC."""

TABLE = np.random.default_rng(1).normal(size=(100, 8)) @ (np.eye(8) + np.eye(8, k=1) + np.eye(8, k=3))

PROCESSES = multiprocessing.get_context("forkserver")


class Killed(NamedTuple):
    """What became of one trial."""

    job: str
    same: bool
    halfway: bool
    """Whether there was a state to go on from."""


def fitted(job: str, folder: str | Path | None) -> str:
    """The digest of a job's posterior, which a folder may hold the beginning of."""
    kept = {} if folder is None else {"checkpoint": folder, "checkpoint_every": 0.02, "resume": True}
    return digest(dp.fit(TABLE, seed=7, progress=False, **JOBS[job], **kept))


def undisturbed(job: str, pipe: Any) -> None:
    """Send the digest of a job that keeps no state."""
    warnings.simplefilter("ignore")
    pipe.send(fitted(job, None))


def resume_and_be_killed(left: str | None, mine: str, job: str, pipe: Any) -> None:
    """Send the digest of the resumed job; digest and seconds of a whole one; then whatever there is time for."""
    warnings.simplefilter("ignore")
    pipe.send(None if left is None else fitted(job, left))
    with tempfile.TemporaryDirectory() as scratch:
        fitted(job, None)
        began = time.perf_counter()
        pipe.send((fitted(job, scratch), time.perf_counter() - began))
    pipe.send(fitted(job, mine))


def start(target: Callable[..., None], *arguments: Any) -> tuple[Any, Any]:
    """A process and the end of a pipe that it sends to."""
    ours, theirs = PROCESSES.Pipe()
    process = PROCESSES.Process(target=target, args=(*arguments, theirs), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def run(job: str) -> str:
    """The digest of a job in a process of its own."""
    process, pipe = start(undisturbed, job)
    try:
        return pipe.recv()
    finally:
        process.join()


def heard(pipe: Any) -> Any:
    """What a process sends next; None if it died first."""
    try:
        return pipe.recv()
    except EOFError:
        return None


def killed_and_resumed(job: str, shares: list[float], expected: str, done: Callable[[Killed], None]) -> None:
    """One kill after each share of the time a run takes; a run that ends before its kill is tried again."""
    with tempfile.TemporaryDirectory() as parent:
        left: str | None = None
        waiting = [*shares]
        while waiting or left:
            mine = tempfile.mkdtemp(dir=parent)
            halfway = left is not None and Checkpoint(left).exists
            process, pipe = start(resume_and_be_killed, left, mine, job)
            try:
                resumed = heard(pipe)
                if left:
                    done(Killed(job, resumed == expected, halfway))
                    left = None
                if not waiting:
                    return
                whole, seconds = heard(pipe) or (None, 0.0)
                if whole != expected:
                    raise AssertionError(
                        f"{job}: an undisturbed run that saves its state differs from one that does not"
                    )
                if not pipe.poll(waiting[0] * seconds):
                    left = mine
                    waiting.pop(0)
                elif heard(pipe) != expected:
                    raise AssertionError(f"{job}: an undisturbed run failed")
            finally:
                process.kill()
                process.join()


def shared_out(count: int, parts: int, rng: np.random.Generator) -> list[tuple[str, list[float]]]:
    """Random moments, spread evenly over the jobs, those of each job in some parts that can run side by side."""
    places = [(job, part) for job in JOBS for part in range(parts)]
    return [(job, rng.random(len(range(k, count, len(places)))).tolist()) for k, (job, _) in enumerate(places)]
