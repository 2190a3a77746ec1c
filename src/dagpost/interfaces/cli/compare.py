"""`dagpost compare`: models side by side on one table."""

from __future__ import annotations

from typing import Annotated

import typer

from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import prepare
from dagpost.interfaces.cli.output import as_json, emit, say
from dagpost.interfaces.cli.tables import TableOptions, columns_text, takes_table

COMPARE_EXAMPLES = """Examples:

\b
  dagpost compare cells.csv                               bge, linear and additive; bdeu for categories
  dagpost compare cells.csv --model bge --model gp --folds 3
  dagpost compare weekly.csv --lags 1 --series patient    which model predicts a row from the one before it
  dagpost compare cells.csv --json --quiet | jq '.models[0]'
"""

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help=f"{', '.join(o.MODELS)}; repeatable [bge, linear, additive; bdeu for categories]"),
]


@takes_table
def compare(
    table: o.Table,
    *,
    model: Models = None,
    prior: o.PriorName = None,
    method: o.MethodName = None,
    folds: Annotated[int, typer.Option(help="Parts of the rows, each of which is held out once.")] = 5,
    time_limit: Annotated[float, typer.Option(help="Seconds of each fit, one for each fold and model.")] = 30.0,
    reading: TableOptions,
    seed: o.Seed = 0,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Compare models on one table: which predicts held-out rows best, and how much evidence each has."""
    prepare()
    from dagpost.comparison import compare as run

    data = reading.read(table, quiet)
    say(columns_text(data), quiet)
    found = run(
        data, model or None, prior, method or "auto", folds=folds, seed=seed, time_limit=time_limit,
        targets=reading.targets_of_conditions, progress=False if quiet else None,
    )  # fmt: skip
    if json:
        rows = found.table.reset_index().to_dict("records")
        emit(as_json({"best": found.best, "sentence": found.sentence, "models": rows}))
    else:
        emit(repr(found))
