"""`dagpost next`: which experiment to make next, from a finished run."""

from __future__ import annotations

import io
from typing import Annotated, Any

import typer

from dagpost.errors import InputError, printable
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import prepare
from dagpost.interfaces.cli.output import (
    NEXT,
    NEXT_FIGURE,
    POSTERIOR,
    as_json,
    emit,
    output_folder,
    read_posterior,
    read_summary,
    say,
    write,
)
from dagpost.interfaces.cli.report import with_its_table

NEXT_EXAMPLES = """Examples:

\b
  dagpost next run                                   every column, about the graph
  dagpost next run --about PKC pjnk --rows 50        about one effect
  dagpost next run --candidate PKA --candidate "PKC;PIP2" --value PKA=900
  dagpost next run --pairs --budget 3 --save         three experiments on pairs; kept for `dagpost report`
"""

SEPARATOR = ";"
"""Separates nodes that are set at once."""


def next_experiment(
    run: o.Run,
    candidate: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Column to set, several at once with ';' between them; repeatable [all]"),
    ] = None,
    pairs: Annotated[bool, typer.Option("--pairs", help="All pairs of columns as candidates.")] = False,
    about: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="CAUSE EFFECT", help="Information about this effect [about the graph]"),
    ] = None,
    budget: Annotated[int, typer.Option(help="Number of experiments to choose, one after the other.")] = 1,
    rows: Annotated[int, typer.Option(help="Rows of each experiment.")] = 10,
    value: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="What a column is set to; repeatable [one standard deviation above its mean, or its last level]",
        ),
    ] = None,
    outcomes: Annotated[int, typer.Option(help="Simulated outcomes of each experiment.")] = 256,
    draws: Annotated[
        int, typer.Option(help="Draws of parameters, for effects and models without closed forms.")
    ] = 1000,
    data: Annotated[
        str | None, typer.Option(metavar="TABLE", help="The fitted table [where it was, if it is unchanged]")
    ] = None,
    interventions: o.Interventions = None,
    seed: o.Seed = 0,
    save: Annotated[
        bool,
        typer.Option("--save", help=f"Also write {NEXT} and {NEXT_FIGURE} into the folder; the report shows them."),
    ] = False,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Rank interventions by the information that they are expected to give, and choose the next experiments."""
    summary = read_summary(run)
    if interventions is not None and data is None:
        raise InputError("--interventions describes the rows of --data: give that table as well")
    if pairs and candidate:
        raise InputError("--pairs and --candidate exclude each other: give one of them")
    prepare()
    from dagpost.design import next_experiment as rank
    from dagpost.posterior.parameters import has_theta

    post = read_posterior(run, summary)
    if post is None:
        raise InputError(f"{printable(run)}: {POSTERIOR} is missing; `dagpost fit` writes it")
    post = with_its_table(post, summary) if data is None else post.with_data(data, interventions)
    if post.data is None and not has_theta(post):
        raise InputError("the fitted table is not where it was, or has changed: give it with --data TABLE")
    found = rank(
        post, "pairs" if pairs else _candidates(candidate, post.names), budget, about=about, rows=rows,
        values=_values(value, post), outcomes=outcomes, draws=draws, seed=seed, progress=False if quiet else None,
    )  # fmt: skip
    plain = {**found.plain(), "data_hash": post.record.provenance.data_hash}
    if save:
        _save(run, found, as_json(plain), overwrite, quiet)
    emit(as_json(plain) if json else repr(found))


def _candidates(given: list[str] | None, names: tuple[str, ...]) -> list[Any] | None:
    """Return the candidates, several names at once where they are joined; a name may hold the separator itself."""
    if not given:
        return None
    return [text if text in names else tuple(part.strip() for part in text.split(SEPARATOR)) for text in given]


def _values(given: list[str] | None, post: Any) -> dict[str, float | str]:
    """Return the values by name of column: numbers, or levels of a categorical one."""
    out: dict[str, float | str] = {}
    for text in given or ():
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise InputError(f"--value {printable(text)}: write NAME=VALUE, such as dose=2.5")
        if post.levels[post.index(name)]:
            out[name] = value
            continue
        try:
            out[name] = float(value)
        except ValueError:
            raise InputError(f"--value {printable(text)}: give a number") from None
    return out


def _save(run: str, found: Any, text: str, overwrite: bool, quiet: bool) -> None:
    """Write the ranking, and its figure where matplotlib is installed."""
    from dagpost import plot
    from dagpost.plot.canvas import has_matplotlib

    written = [NEXT]
    with output_folder(run, (NEXT, NEXT_FIGURE), overwrite) as folder:
        if has_matplotlib():
            out = io.BytesIO()
            plot.experiments(found).figure.savefig(out, format="png", dpi=110)  # type: ignore[union-attr]
            write(folder / NEXT_FIGURE, out.getvalue())
            written.append(NEXT_FIGURE)
        write(folder / NEXT, text)
    say(f"written to {printable(run)}: {', '.join(written)}", quiet)
