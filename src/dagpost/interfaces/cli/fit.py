"""`dagpost fit` and `dagpost exact`: from a table to a folder of results.

Both commands gather their options in a `FitOptions` and hand it to `run_fit`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dagpost.errors import InputError, printable
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import parse_settings, prepare
from dagpost.interfaces.cli.output import (
    CHECKPOINT,
    PAGE,
    RESULTS,
    as_json,
    assumptions_text,
    emit,
    output_folder,
    remove_derived,
    save,
    say,
    summarise,
    summary_text,
    write,
)
from dagpost.interfaces.cli.resuming import checkpoint_arguments, is_unfinished, resume_command, resume_hint
from dagpost.interfaces.cli.tables import TableOptions, columns_text, takes_table

if TYPE_CHECKING:
    from dagpost.inference.defaults import Assumptions
    from dagpost.inference.history import History

WITH_CALLBACK = ("auto", "dibs", "dibs-paper")
"""Methods that take a callback."""


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """Options of `dagpost fit` and `dagpost exact`; None where the user gave nothing.

    Attributes
    ----------
    table
        Path of the table.
    model, prior, method, noise
        As in `dagpost.inference.defaults.assume`.
    raw_units
        Whether to keep the units of the columns.
    reading
        How to read the table.
    settings
        Values of `--set`, as "NAME=VALUE".
    seed
        Random seed.
    out, overwrite
        Output folder, and whether to replace results in it.
    resume, checkpoint_every
        Whether to continue a stopped run, and the seconds between checkpoints.
    accelerator
        "cpu" or "gpu".
    report, watch, quiet, json
        Whether to write report.html, show the run live, print no messages, print the summary as JSON.
    fit_arguments
        Further arguments of `dagpost.fit`; those that are None are left to its defaults.
    """

    table: str
    model: str | None
    prior: str | None
    method: str | None
    noise: float | None
    raw_units: bool | None
    reading: TableOptions
    settings: list[str] | None
    seed: int
    out: str
    overwrite: bool
    resume: bool = False
    checkpoint_every: float | None = None
    accelerator: str | None = None
    report: bool
    watch: bool = False
    quiet: bool
    json: bool
    fit_arguments: dict[str, Any]


def run_fit(options: FitOptions) -> None:
    """Read the table, infer the posterior, write the results and print a summary."""
    settings = parse_settings(options.settings)
    if options.watch and options.quiet:
        raise InputError("--watch and --quiet contradict each other: leave one of them out")
    prepare(options.accelerator)
    from dagpost.data.missing import missing_problems
    from dagpost.data.values import raise_problems
    from dagpost.inference.defaults import assume
    from dagpost.inference.dibs.samplers import as_chain
    from dagpost.inference.fit import METHODS, fit
    from dagpost.inference.history import History

    arguments = {k: v for k, v in options.fit_arguments.items() if v is not None} | settings["method"]
    as_chain(arguments.get("sampler", "svgd"))  # a wrong name is told before a large table is read
    method = METHODS.get(options.method or "auto")
    draws_cells = method is None or method.kind.takes_missing
    data = options.reading.read(options.table, options.quiet, "keep" if draws_cells else None)
    raise_problems(missing_problems(data, None if draws_cells else f"the method {options.method!r}"))
    assumptions = assume(
        data,
        options.model,
        options.prior,
        options.method,
        noise=options.noise,
        standardise=None if options.raw_units is None else not options.raw_units,
        model_settings=settings["model"],
        prior_settings=settings["prior"],
    )
    if options.quiet:
        arguments["progress"] = False
    files = (*RESULTS, PAGE) if options.report else RESULTS
    goes_on = options.resume and (Path(options.out) / CHECKPOINT).exists()
    with output_folder(options.out, files, options.overwrite or goes_on) as folder:
        arguments |= checkpoint_arguments(
            assumptions.method, folder, options.resume, options.overwrite, options.checkpoint_every
        )
        say(f"{printable(Path(options.table).name)}: {data!r}"[:300], options.quiet)
        say(columns_text(assumptions.data), options.quiet)
        say(assumptions_text(assumptions), options.quiet)
        history = History()
        began = time.perf_counter()
        try:
            with _callback_arguments(assumptions, history, options.watch) as callback:
                post = fit(
                    assumptions.data,
                    assumptions.model,
                    assumptions.prior,
                    assumptions.method,
                    seed=options.seed,
                    on_interrupt="answer",
                    **callback | arguments,
                )
        except KeyboardInterrupt as stop:
            say(f"dagpost: {resume_hint(arguments)}", options.quiet)
            if hasattr(stop, "exit_code"):  # the method saved its state before it raised
                raise typer.Exit(stop.exit_code) from None  # type: ignore[attr-defined]
            raise
        seconds = time.perf_counter() - began
        post = post.with_record(assumptions={**post.record.assumptions, **assumptions.messages})
        summary = summarise(post, Path(options.table).name, assumptions, options.seed, seconds)
        source = {"table": str(Path(options.table).absolute()), "interventions": options.reading.interventions}
        summary["source"] = source
        if len(history):
            summary["evolution"] = history.summary(post.names)
        text = summary_text(summary)
        if removed := remove_derived(folder):
            say(f"removed, as made of the run before: {', '.join(removed)}", options.quiet)
        written = save(post, folder, summary, text)
        unfinished = is_unfinished(post) and (folder / CHECKPOINT).exists()
        if not unfinished:
            shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
        if options.report:
            from dagpost.report import html_report

            write(folder / PAGE, html_report(post, summary))
            written.append(PAGE)
    say(text, options.quiet)
    say(f"written to {printable(folder)}: {', '.join(written)}; view with `dagpost show {folder}`", options.quiet)
    if unfinished:
        say(f"to go on: {resume_command(post)}", options.quiet)
    if options.json:
        emit(as_json(summary))


@contextmanager
def _callback_arguments(assumptions: Assumptions, history: History, watch: bool) -> Iterator[dict[str, Any]]:
    """Yield the arguments of `fit` that record its history and, with `watch`, show it live; none without a callback."""
    takes_callback = assumptions.method in WITH_CALLBACK
    if not watch:
        yield {"callback": history} if takes_callback else {}
        return
    if not takes_callback:
        say(f"--watch: method {assumptions.method!r} has no particles to show; showing its progress only")
        yield {}
        return
    from dagpost.interfaces.cli.watch import live_view

    with live_view(assumptions.data.names) as view:
        yield {"callback": CallbackPair(history, view), "every": view.every, "progress": False}


@dataclass(frozen=True)
class CallbackPair:
    """A callback that calls two callbacks in turn."""

    first: Any
    second: Any

    def __call__(self, snapshot: Any) -> None:
        self.first(snapshot)
        self.second(snapshot)


FIT_EXAMPLES = """Examples:

\b
  dagpost fit cells.csv                                   with defaults, which are printed
  dagpost fit cells.csv --interventions target --out run2  a column names the intervened nodes
  dagpost fit cells.csv --conditions drug                  which nodes each drug acts on is learnt
  dagpost fit weekly.csv --lags 1 --series patient         a time series: edges from one row to the next
  dagpost fit cells.csv --report                          also write run/report.html
  dagpost fit cells.csv --model bge --time-limit 60
  dagpost fit cells.csv --workers 8                       chains in 8 processes; --cluster for other machines
  dagpost fit cells.csv --watch                           edges, cycles and temperatures, live
  dagpost fit cells.csv --model linear --noise 0.1 --raw-units    the paper's linear model
  dagpost fit cells.csv --method dibs --particles 50 --set bandwidth_z=2
  dagpost fit cells.csv --method dibs --sampler sgld       Langevin chains in place of SVGD
  dagpost fit cells.csv --quiet --json | jq '.edges[:5]'
"""


@takes_table
def fit(
    table: o.Table,
    *,
    model: o.ModelName = None,
    prior: o.PriorName = None,
    method: o.MethodName = None,
    noise: o.Noise = None,
    raw_units: o.RawUnits = None,
    reading: TableOptions,
    knowledge: o.Knowledge = None,
    particles: Annotated[int, typer.Option(help="DiBS particles, MCMC samples or bootstrap resamples.")] = 30,
    draws: o.Draws = 1000,
    steps: Annotated[int | None, typer.Option(help="DiBS steps [depends on size and model]")] = None,
    sampler: o.Sampler = None,
    seed: o.Seed = 0,
    precision: Annotated[
        float | None, typer.Option(help="auto: target standard error of edge probabilities [0.01]")
    ] = None,
    max_moves: Annotated[
        int | None,
        typer.Option(help="auto: maximum MCMC moves [300 million for 20 columns, 1.9 billion for 50]"),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            help="Maximum seconds, without compiling; inf for no limit [120 for the chains of auto, unless --precision "
            "or --max-moves is given]. A seed does not fix the result of a run that a limit ended."
        ),
    ] = None,
    set_: o.Settings = None,
    out: o.Out = "run",
    overwrite: o.Overwrite = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped run.")] = False,
    checkpoint_every: Annotated[float | None, typer.Option(help="Seconds between checkpoints.")] = None,
    accelerator: o.Accelerator = None,
    workers: Annotated[int | None, typer.Option(help="auto: processes for its chains [threads of one]")] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="auto: Dask scheduler whose workers run its chains.")
    ] = None,
    report: o.Report = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show edges, cycles and temperatures during the run.")] = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Infer which columns cause which others: a posterior over causal graphs.

    Writes edges.csv, summary.json, summary.txt and posterior.nc to the output folder. By default columns are
    standardised and their noise is learnt; all assumptions are printed.
    """
    fit_arguments = {
        "knowledge": knowledge, "particles": particles, "draws": draws, "steps": steps, "precision": precision,
        "sampler": sampler, "max_moves": max_moves, "time_limit": time_limit, "workers": workers, "cluster": cluster,
        "targets": reading.targets_of_conditions,
    }  # fmt: skip
    run_fit(
        FitOptions(
            table=table, model=model, prior=prior, method=method, noise=noise, raw_units=raw_units,
            reading=reading, settings=set_, seed=seed, out=out, overwrite=overwrite,
            resume=resume, checkpoint_every=checkpoint_every, accelerator=accelerator, report=report, watch=watch,
            quiet=quiet, json=json, fit_arguments=fit_arguments,
        )
    )  # fmt: skip


EXACT_EXAMPLES = """Examples:

\b
  dagpost exact cells.csv --out exact
  dagpost exact cells.csv --model bge --prior uniform --json
"""


@takes_table
def exact(
    table: o.Table,
    *,
    model: o.ModelName = None,
    prior: o.PriorName = None,
    noise: o.Noise = None,
    raw_units: o.RawUnits = None,
    reading: TableOptions,
    knowledge: o.Knowledge = None,
    draws: o.Draws = 1000,
    seed: o.Seed = 0,
    memory_limit: Annotated[float | None, typer.Option(help="Memory in GiB [free memory]")] = None,
    set_: o.Settings = None,
    out: o.Out = "run",
    overwrite: o.Overwrite = False,
    report: o.Report = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Compute the exact posterior: up to 16 columns without sampling error, up to about 23 by independent draws.

    Has the defaults of `dagpost fit` and writes the same files.
    """
    fit_arguments = {
        "knowledge": knowledge, "draws": draws, "memory_limit": memory_limit,
        "targets": reading.targets_of_conditions,
    }  # fmt: skip
    run_fit(
        FitOptions(
            table=table, model=model, prior=prior, method="exact", noise=noise, raw_units=raw_units,
            reading=reading, settings=set_, seed=seed, out=out, overwrite=overwrite,
            report=report, quiet=quiet, json=json, fit_arguments=fit_arguments,
        )
    )  # fmt: skip
