"""`dagpost show` prints the edges of a finished run; `dagpost report` writes it as a page, as text and as a figure."""

from __future__ import annotations

import warnings
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dagpost.errors import InputError, printable, whole_number
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import prepare
from dagpost.interfaces.cli.output import (
    NEXT,
    PAGE,
    POSTERIOR,
    REPORT_FIGURE,
    REPORT_TEXT,
    as_json,
    emit,
    output_folder,
    read_posterior,
    read_summary,
    saved_ranking,
    say,
    target_lines,
    write,
)

if TYPE_CHECKING:
    from dagpost.posterior import Posterior

REPORT_EXAMPLES = """Examples:

\b
  dagpost report run
  dagpost report run --data cells.csv --overwrite    with causal effects, whatever the model
"""


def report(
    run: o.Run,
    data: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="The fitted table, for causal effects [where it was, if it is unchanged]"),
    ] = None,
    interventions: o.Interventions = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Write report.html, report.txt and report.png into the folder of a run.

    report.html is a self-contained interactive page that works offline. The figure, report.png, needs matplotlib
    (`dagpost[report]`).
    """
    summary = read_summary(run)
    if interventions is not None and data is None:
        raise InputError("--interventions describes the rows of --data: give that table as well")
    prepare()
    from dagpost.report import has_matplotlib, html_report, png_report, text_report

    with output_folder(run, (PAGE, REPORT_TEXT, REPORT_FIGURE), overwrite) as folder:
        post = read_posterior(run, summary)
        if post is not None and data is not None:
            post = post.with_data(data, interventions)
        elif post is not None:
            post = with_its_table(post, summary)
        written, ranking = [], None
        if post is not None:
            ranking = saved_ranking(folder, post.record.provenance.data_hash)
            write(folder / PAGE, html_report(post, {**summary, "next": ranking}))
            written.append(PAGE)
        else:
            say(f"no {PAGE}: {POSTERIOR} is missing; `dagpost fit` writes it")
        write(folder / REPORT_TEXT, "\n".join([text_report(summary).rstrip("\n"), *ranking_lines(ranking)]) + "\n")
        written.append(REPORT_TEXT)
        if has_matplotlib():
            write(folder / REPORT_FIGURE, png_report(summary, post))
            written.append(REPORT_FIGURE)
        else:
            say(f"no {REPORT_FIGURE}: matplotlib is not installed: pip install 'dagpost[report]'")
    say(f"written to {printable(folder)}: {', '.join(written)}", quiet)


def with_its_table(post: Posterior, summary: dict[str, Any]) -> Posterior:
    """Return the posterior with the table that it was fitted to, if that is still in its place and unchanged."""
    source = summary.get("source") or {}
    if not source or not Path(source["table"]).is_file():
        return post
    with suppress(InputError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return post.with_data(source["table"], source["interventions"])
    return post


SHOW_EXAMPLES = """Examples:

\b
  dagpost show run
  dagpost show run --top 10 --min-probability 0.5
  dagpost show run --json | jq -r '.[] | [.cause, .effect] | @tsv'
"""


def show(
    run: o.Run,
    top: Annotated[int, typer.Option(help="Maximum number of edges.")] = 20,
    min_probability: Annotated[float, typer.Option(help="Leave out less probable edges.")] = 0.05,
    json: o.Json = False,
) -> None:
    """Print the pairs of columns that are most probably joined, each with the direction of its edge."""
    whole_number("--top", top, least=1)
    if not 0 <= min_probability <= 1:
        raise InputError(f"--min-probability {min_probability}: give a number from 0 to 1")
    summary = read_summary(run)
    pairs = [p for p in summary.get("pairs") or pairs_of(summary["edges"]) if p["adjacent"] >= min_probability]
    text = pair_table(pairs[:top], len(pairs), summary)
    own = saved_ranking(Path(run), summary.get("info", {}).get("data_hash")) if not json else None
    emit(as_json(pairs[:top]) if json else "\n".join([text, *target_lines(summary), *ranking_lines(own)]))


def ranking_lines(ranking: dict[str, Any] | None) -> list[str]:
    """Return a line with the sentence of a saved ranking of experiments; none without one."""
    return [] if ranking is None else [f"next experiment ({NEXT}): {printable(ranking['sentence'])}"]


def pairs_of(edges: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the pairs of a summary that lists edges alone, as those of the first version do."""
    import numpy as np

    from dagpost.posterior.pairs import ranked_pairs

    names = list(dict.fromkeys(edge[end] for edge in edges for end in ("cause", "effect")))
    probabilities = np.zeros((len(names), len(names)))
    for edge in edges:
        probabilities[names.index(edge["cause"]), names.index(edge["effect"])] = edge["probability"]
    out = [
        {
            "cause": names[pair.cause], "effect": names[pair.effect],
            "probability": float(probabilities[pair.cause, pair.effect]),
            "adjacent": pair.adjacency, "direction": pair.share if pair.adjacency else 0.5,
        }
        for pair in ranked_pairs(probabilities)
    ]  # fmt: skip
    return sorted(out, key=lambda pair: (-pair["adjacent"], -pair["probability"]))


def pair_table(pairs: list[dict[str, Any]], total: int, summary: dict[str, Any]) -> str:
    """Return a table for the terminal, of `total` pairs in all; markup and control characters in names are escaped."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from dagpost.posterior.pairs import LEAST_SHARE

    table = Table(box=box.SIMPLE_HEAD)
    for heading in ("cause", "", "effect"):
        table.add_column(heading, overflow="fold")
    table.add_column("joined", justify="right")
    table.add_column("direction", justify="right")
    table.add_column("sign", justify="center")
    for pair in pairs:
        arrow = "--" if pair["direction"] < LEAST_SHARE else "->"
        numbers = (f"{pair['adjacent']:.3f}", f"{pair['direction']:.2f}", pair.get("sign") or "")
        table.add_row(*map(Text, (printable(pair["cause"]), arrow, printable(pair["effect"]), *numbers)))
    console = Console(color_system=None)
    with console.capture() as captured:
        console.print(table)
    count = f"{len(pairs)} of {total} pairs shown" if total > len(pairs) else f"{total} pair{'s' * (total != 1)}"
    key = "joined: probability of an edge either way; direction: share of cause -> effect in it, -- where it is open"
    told = summary.get("info", {})
    sentences = [printable(told[name]) for name in ("verdict", "model_fit") if told.get(name)]
    return "\n".join([captured.get().rstrip(), f"{count}; {key}.", *sentences])
