"""Stopped runs: where their state is kept, and the command that goes on."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagpost.errors import InputError, printable
from dagpost.interfaces.cli.output import CHECKPOINT

if TYPE_CHECKING:
    from dagpost.posterior import Posterior


def checkpoint_arguments(
    method: str, folder: Path, resume: bool, overwrite: bool, every: float | None
) -> dict[str, Any]:
    """Return the arguments of `fit` that save and resume its state; none for a method without checkpoints."""
    if method == "exact":
        if resume or every is not None:
            raise InputError(f"method {method!r} keeps no checkpoints: leave out --resume and --checkpoint-every")
        return {}
    state = folder / CHECKPOINT
    if state.exists() and not resume:
        if not overwrite:
            raise InputError(f"{printable(folder)} holds a stopped run: continue it with --resume, or use --overwrite")
        shutil.rmtree(state)
    arguments: dict[str, Any] = {"checkpoint": state, "resume": resume}
    if every is not None:
        arguments["checkpoint_every"] = every
    return arguments


def resume_hint(arguments: dict[str, Any]) -> str:
    """Return how to continue a stopped run."""
    if "checkpoint" not in arguments or not arguments["checkpoint"].exists():
        return "nothing was written."
    return f"resume with: {resume_command()}"


def is_unfinished(post: Posterior) -> bool:
    """Return whether a limit or Ctrl-C ended the run, and its state can be continued."""
    verdict, diagnostics = post.record.verdict, post.record.diagnostics
    return diagnostics is not None and diagnostics.ended_by == "limit" and not (verdict and verdict.trusted)


def resume_command(post: Posterior | None = None) -> str:
    """Return the command that continues this run; with four times the time where a limit ended it."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    limit = None if post is None else post.record.provenance.options.get("time_limit")
    if limit is not None:
        for n, word in enumerate(words):
            if word == "--time-limit":
                del words[n : n + 2]
                break
        words = [word for word in words if not word.startswith("--time-limit=")]
        words += ["--time-limit", f"{4 * limit:g}"]
    return shlex.join(["dagpost", *words, "--resume"])
