"""`dagpost compare`: models side by side on one table."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dagpost._util.files import TABLE_KINDS, existing_file
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import columns_text, parse_kinds, prepare, read_data
from dagpost.interfaces.cli.output import as_json, emit, say

COMPARE_EXAMPLES = """Examples:

\b
  dagpost compare cells.csv                               bge, linear and additive; bdeu for categories
  dagpost compare cells.csv --model bge --model gp --folds 3
  dagpost compare cells.csv --json --quiet | jq '.models[0]'
"""

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help=f"{', '.join(o.MODELS)}; repeatable [bge, linear, additive; bdeu for categories]"),
]


def compare(
    table: o.Table,
    model: Models = None,
    prior: o.PriorName = None,
    method: o.MethodName = None,
    folds: Annotated[int, typer.Option(help="Parts of the rows, each of which is held out once.")] = 5,
    time_limit: Annotated[float, typer.Option(help="Seconds of each fit, one for each fold and model.")] = 30.0,
    interventions: o.Interventions = None,
    sep: o.Sep = None,
    decimal: o.Decimal = None,
    encoding: o.Encoding = None,
    header: o.Header = None,
    drop: o.Drop = None,
    missing: o.Missing = None,
    kinds: o.Kinds = None,
    columns: o.Columns = None,
    seed: o.Seed = 0,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Compare models on one table: which predicts held-out rows best, and how much evidence each has."""
    existing_file(table, "table", TABLE_KINDS)
    prepare()
    from dagpost.comparison import compare as run

    reading: dict[str, Any] = dict(
        sep=sep, decimal=decimal, encoding=encoding, header=header, drop=drop, missing=missing,
        kinds=parse_kinds(kinds, columns),
    )  # fmt: skip
    data = read_data(table, interventions, reading, quiet)
    say(columns_text(data), quiet)
    found = run(
        data, model or None, prior, method or "auto", folds=folds, seed=seed, time_limit=time_limit,
        progress=False if quiet else None,
    )  # fmt: skip
    if json:
        rows = found.table.reset_index().to_dict("records")
        emit(as_json({"best": found.best, "sentence": found.sentence, "models": rows}))
    else:
        emit(repr(found))
