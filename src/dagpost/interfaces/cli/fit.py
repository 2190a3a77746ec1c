"""From a table to a folder of results: what `fit` and `exact` have in common.

`dagpost fit`: a posterior from a table.

`dagpost exact`: the posterior itself, for few columns.
"""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from dagpost import __version__
from dagpost.errors import InputError, printable
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.messages import as_json, emit, say
from dagpost.interfaces.cli.options import prepare, settings
from dagpost.interfaces.cli.output import PAGE, RESULTS, output_folder, save, write

CHANGES = {
    "units": "--raw-units",
    "model": "--model bge | mlp, --noise 0.1",
    "noise": "--noise 0.1",
    "prior": "--prior scale-free | uniform",
    "method": "--method exact | dibs | …",
    "rows": "--interventions FILE_OR_COLUMN",
    "columns": "leave them out of the table",
}
"""How to change what was assumed."""

WATCHED = ("auto", "dibs", "dibs-paper")
"""Methods that a callback can look at."""

CHECKPOINT = "checkpoint"
"""Folder inside the output folder that a stopped run leaves."""


WORTH_SAYING = 5.0
"""Seconds of compiling from which on a run mentions them."""


@dataclass(frozen=True)
class Request:
    """What was asked for; None where nothing was."""

    table: str
    model: str | None
    prior: str | None
    method: str | None
    noise: float | None
    raw_units: bool | None
    interventions: str | None
    set_: list[str] | None
    out: str
    overwrite: bool
    quiet: bool
    json: bool
    accelerator: str | None
    seed: int
    resume: bool = False
    checkpoint_every: float | None = None
    report: bool = False
    given: dict[str, Any] = field(default_factory=dict)
    """Further arguments of `dagpost.fit`; those that are None are left to it."""
    watch: bool = False


def infer(request: Request) -> None:
    """Read, assume, infer, write, say."""
    wanted = settings(request.set_)
    if request.watch and request.quiet:
        raise InputError("--watch and --quiet contradict each other: leave one of them out")
    prepare(request.accelerator)
    from dagpost.data import as_dataset
    from dagpost.inference.fit import fit
    from dagpost.inference.history import History
    from dagpost.interfaces.defaults import assume

    data = as_dataset(request.table, interventions=request.interventions)
    assumed = assume(
        data,
        request.model,
        request.prior,
        request.method,
        noise=request.noise,
        standardise=None if request.raw_units is None else not request.raw_units,
        model_settings=wanted["model"],
        prior_settings=wanted["prior"],
    )
    options = {k: v for k, v in request.given.items() if v is not None} | wanted["method"]
    if request.quiet:
        options["progress"] = False
    files = (*RESULTS, PAGE) if request.report else RESULTS
    with output_folder(request.out, files, request.overwrite) as folder:
        options |= _checkpoints(request, assumed.method, folder)
        say(f"{printable(Path(request.table).name)}: {data!r}"[:300], request.quiet)
        say(explained(assumed.said), request.quiet)
        history = History()
        began = time.perf_counter()
        try:
            with looking_on(assumed, history, request.watch) as looks:
                post = fit(
                    assumed.data, assumed.model, assumed.prior, assumed.method, seed=request.seed, **looks | options
                )  # fmt: skip
        except KeyboardInterrupt as stop:
            say(f"dagpost: {_how_to_go_on(options)}", request.quiet)
            if hasattr(stop, "exit_code"):  # it saved its state first
                raise typer.Exit(stop.exit_code) from None  # type: ignore[attr-defined]
            raise
        seconds = time.perf_counter() - began
        summary = summarised(post, request, assumed, seconds)
        if len(history):
            summary["evolution"] = history.summary(post.names)
        text = described(summary)
        written = save(post, folder, summary, text)
        shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
        if request.report:
            from dagpost.report import html_report

            write(folder / PAGE, html_report(post, summary))
            written.append(PAGE)
    say(text, request.quiet)
    say(f"written to {printable(folder)}: {', '.join(written)}; look with `dagpost show {folder}`", request.quiet)
    if request.json:
        emit(as_json(summary))


@contextmanager
def looking_on(assumed: Any, history: Any, watch: bool) -> Iterator[dict[str, Any]]:
    """The options of a method that can be looked at: its course is recorded, and shown where that is asked for."""
    watched = assumed.method in WATCHED
    if not watch:
        yield {"callback": history} if watched else {}
        return
    if not watched:
        say(f"--watch: method {assumed.method!r} has no particles to look at; showing its progress alone")
        yield {}
        return
    from dagpost.interfaces.cli.watch import watching

    with watching(assumed.data.names) as view:
        yield {"callback": Both(history, view), "every": view.every, "progress": False}


@dataclass(frozen=True)
class Both:
    """Two callbacks in one."""

    first: Any
    second: Any

    def __call__(self, snapshot: Any) -> None:
        self.first(snapshot)
        self.second(snapshot)


def _checkpoints(request: Request, method: str, folder: Path) -> dict[str, Any]:
    """The arguments that let a stopped run go on, where the method knows them."""
    if method == "exact":
        if request.resume or request.checkpoint_every is not None:
            raise InputError(f"method {method!r} keeps no checkpoints here: leave out --resume and --checkpoint-every")
        return {}
    state = folder / CHECKPOINT
    if state.exists() and not request.resume:
        if not request.overwrite:
            raise InputError(f"{printable(folder)} holds a run that was stopped: go on with --resume, or --overwrite")
        shutil.rmtree(state)
    options: dict[str, Any] = {"checkpoint": state, "resume": request.resume}
    if request.checkpoint_every is not None:
        options["checkpoint_every"] = request.checkpoint_every
    return options


def _how_to_go_on(options: dict[str, Any]) -> str:
    if "checkpoint" not in options or not options["checkpoint"].exists():
        return "nothing was written."
    arguments = [a for a in sys.argv[1:] if a != "--resume"]
    return "go on with: " + shlex.join(["dagpost", *arguments, "--resume"])


def explained(said: dict[str, str] | Any) -> str:
    """What was assumed, and how to change it."""
    lines = [f"  {what:8} {text}  [{CHANGES[what]}]" for what, text in said.items()]
    return "\n".join(["assumed, since nothing else was said:", *lines])


def summarised(post: Any, request: Request, assumed: Any, seconds: float) -> dict[str, Any]:
    """The result as plain values; infinities as None."""
    table = post.edge_table()
    return {
        "dagpost": __version__,
        "table": Path(request.table).name,
        "rows": assumed.data.observations,
        "names": list(post.names),
        "model": repr(assumed.model),
        "prior": repr(assumed.prior),
        "method": assumed.method,
        "seed": request.seed,
        "standardised": assumed.data.scaling is not None,
        "assumed": dict(assumed.said),
        "graphs": len(post),
        "expected_edges": post.expected_edges,
        "seconds": round(seconds, 3),
        "info": dict(post.info),
        "edges": [
            {"cause": c, "effect": e, "probability": p}
            for c, e, p in zip(table.cause, table.effect, table.probability.tolist())
        ],
    }


def described(summary: dict[str, Any], top: int = 12) -> str:
    """The result in a few lines."""
    likely = [e for e in summary["edges"] if e["probability"] >= 0.5]
    lines = [
        f"{summary['graphs']} graphs on {len(summary['names'])} nodes by {summary['method']} "
        f"in {summary['seconds']:.1f} s; {summary['expected_edges']:.1f} edges expected, "
        f"{len(likely)} more probable than not"
    ]
    lines += [f"  {e['probability']:.3f}  {printable(e['cause'])} -> {printable(e['effect'])}" for e in likely[:top]]
    if len(likely) > top:
        lines.append(f"  … and {len(likely) - top} more")
    if "verdict" in summary["info"]:
        lines.append(str(summary["info"]["verdict"]))
    compiling = summary["info"].get("compiling", 0.0)
    if compiling >= WORTH_SAYING:
        lines.append(f"Compiling took {compiling:.0f} s of this; no time limit counts it, and later runs need less.")
    return "\n".join(lines)


FIT_EXAMPLES = """Examples:

\b
  dagpost fit cells.csv                                   assume what is usual, and say so
  dagpost fit cells.csv --interventions target --out run2  a column names what was intervened on
  dagpost fit cells.csv --report                          and a page to look at: run/report.html
  dagpost fit cells.csv --model bge --time-limit 60
  dagpost fit cells.csv --watch                           edges, cycles and temperatures, live
  dagpost fit cells.csv --model linear --noise 0.1 --raw-units    the paper's linear model
  dagpost fit cells.csv --method dibs --particles 50 --set bandwidth_z=2
  dagpost fit cells.csv --quiet --json | jq '.edges[:5]'
"""


def fit(
    table: o.Table,
    model: o.ModelName = None,
    prior: o.PriorName = None,
    method: o.MethodName = None,
    noise: o.Noise = None,
    raw_units: o.RawUnits = None,
    interventions: o.Interventions = None,
    knowledge: o.Knowledge = None,
    particles: Annotated[int, typer.Option(help="DiBS particles, MCMC samples or resamples.")] = 30,
    draws: o.Draws = 1000,
    steps: Annotated[int | None, typer.Option(help="Steps of DiBS [by size and model]")] = None,
    seed: o.Seed = 0,
    precision: Annotated[float | None, typer.Option(help="auto: wanted standard error of an edge [0.004]")] = None,
    max_moves: Annotated[
        int | None, typer.Option(help="auto: most MCMC moves [300 million for 20 columns, 1.9 billion for 50]")
    ] = None,
    time_limit: Annotated[
        float | None, typer.Option(help="Seconds of the whole run, compiling excepted; a seed then fixes less.")
    ] = None,
    set_: o.Settings = None,
    out: o.Out = "run",
    overwrite: o.Overwrite = False,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a stopped run was.")] = False,
    checkpoint_every: Annotated[float | None, typer.Option(help="Seconds between checkpoints.")] = None,
    accelerator: o.Accelerator = None,
    report: o.Report = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show edges, cycles and temperatures while it runs.")] = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Infer which column drives which: a posterior over causal graphs.

    Writes edges.csv, summary.json, summary.txt and posterior.nc to the output folder. Without further options the
    columns are standardised, their noise is learnt, and what was assumed is printed.
    """
    given = {
        "knowledge": knowledge, "particles": particles, "draws": draws, "steps": steps, "precision": precision,
        "max_moves": max_moves, "time_limit": time_limit,
    }  # fmt: skip
    infer(
        Request(
            table, model, prior, method, noise, raw_units, interventions, set_, out, overwrite, quiet, json,
            accelerator, seed, resume, checkpoint_every, report, given, watch,
        )
    )  # fmt: skip


EXACT_EXAMPLES = """Examples:

\b
  dagpost exact cells.csv --out exact
  dagpost exact cells.csv --model bge --prior uniform --json
"""


def exact(
    table: o.Table,
    model: o.ModelName = None,
    prior: o.PriorName = None,
    noise: o.Noise = None,
    raw_units: o.RawUnits = None,
    interventions: o.Interventions = None,
    knowledge: o.Knowledge = None,
    draws: o.Draws = 1000,
    seed: o.Seed = 0,
    memory_limit: Annotated[float | None, typer.Option(help="GiB [what is free]")] = None,
    set_: o.Settings = None,
    out: o.Out = "run",
    overwrite: o.Overwrite = False,
    report: o.Report = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """The exact posterior, without sampling error: up to about 16 columns, models bge and linear.

    Assumes and writes what `dagpost fit` does.
    """
    given = {"knowledge": knowledge, "draws": draws, "memory_limit": memory_limit}
    infer(
        Request(
            table, model, prior, "exact", noise, raw_units, interventions, set_, out, overwrite, quiet, json,
            None, seed, report=report, given=given,
        )
    )  # fmt: skip
