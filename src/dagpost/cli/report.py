"""`dagpost report`: a finished run as text and as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dagpost.cli import options as o
from dagpost.cli.messages import say
from dagpost.cli.output import POSTERIOR, output_folder, read_summary, write

EXAMPLES = """Examples:

\b
  dagpost report run
  dagpost report run --overwrite
"""

TEXT, FIGURE = "report.txt", "report.png"


def report(run: o.Run, overwrite: o.Overwrite = False, quiet: o.Quiet = False) -> None:
    """Write report.txt and report.png into the folder of a run; the figure needs matplotlib (`dagpost[report]`)."""
    summary = read_summary(run)
    from dagpost.report import drawn, has_matplotlib, text_report

    with output_folder(run, (TEXT, FIGURE), overwrite) as folder:
        write(folder / TEXT, text_report(summary))
        written = [TEXT]
        if has_matplotlib():
            write(folder / FIGURE, drawn(summary, _posterior(folder)))
            written.append(FIGURE)
        else:
            say(f"no {FIGURE}: matplotlib is not installed; pip install 'dagpost[report]' brings it")
    say(f"written to {folder}: {', '.join(written)}", quiet)


def _posterior(folder: Path) -> Any:
    """The posterior of the run, for what its summary does not hold; None where it was deleted."""
    from dagpost.posterior import load

    return load(folder / POSTERIOR) if (folder / POSTERIOR).exists() else None
