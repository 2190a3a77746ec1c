"""`dagpost fit`: a posterior from a table."""

from __future__ import annotations

from typing import Annotated

import typer

from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.inference import Request, infer

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
