"""`dagpost report`: a finished run as an interactive page, as text and as a figure."""

from __future__ import annotations

from typing import Annotated

import typer

from dagpost.errors import InputError, printable
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.environment import prepare
from dagpost.interfaces.cli.messages import say
from dagpost.interfaces.cli.output import PAGE, POSTERIOR, output_folder, read_posterior, read_summary, write

REPORT_EXAMPLES = """Examples:

\b
  dagpost report run
  dagpost report run --data cells.csv --overwrite    with causal effects, whatever the model
"""

TEXT, FIGURE = "report.txt", "report.png"


def report(
    run: o.Run,
    data: Annotated[
        str | None, typer.Option(metavar="TABLE", help="The table that was fitted: some models need it for effects.")
    ] = None,
    interventions: o.Interventions = None,
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
) -> None:
    """Write report.html, report.txt and report.png into the folder of a run.

    report.html is one interactive page that needs nothing else and no network. The figure, report.png, needs
    matplotlib (`dagpost[report]`).
    """
    summary = read_summary(run)
    if interventions is not None and data is None:
        raise InputError("--interventions says which rows of --data were intervened on: give that table as well")
    prepare()
    from dagpost.report import drawn, has_matplotlib, html_report, text_report

    with output_folder(run, (PAGE, TEXT, FIGURE), overwrite) as folder:
        post = read_posterior(run, summary)
        if post is not None and data is not None:
            post = post.with_data(data, interventions)
        written = []
        if post is not None:
            write(folder / PAGE, html_report(post, summary))
            written.append(PAGE)
        else:
            say(f"no {PAGE}: {POSTERIOR} is missing; `dagpost fit` writes it")
        write(folder / TEXT, text_report(summary))
        written.append(TEXT)
        if has_matplotlib():
            write(folder / FIGURE, drawn(summary, post))
            written.append(FIGURE)
        else:
            say(f"no {FIGURE}: matplotlib is not installed; pip install 'dagpost[report]' brings it")
    say(f"written to {printable(folder)}: {', '.join(written)}", quiet)
