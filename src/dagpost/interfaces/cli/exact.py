"""`dagpost exact`: the posterior itself, for few columns."""

from __future__ import annotations

from typing import Annotated

import typer

from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.inference import Request, infer

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
