"""Pages with generated parts, updated by `dagpost study --page`.

* `<!-- study NAME -->` to `<!-- end NAME -->`: the table and figure of a study. A study that has results and no block
  gets a section at the end, unless the page has `table` blocks only.
* `<!-- table NAME -->` to `<!-- end NAME -->`: a table of `comparisons.BLOCKS`.
* A page that begins with `<!-- generated from FILE … -->` is rendered from that template in the folder of results. The
  rest of any other page is left alone.

A template is text with Jinja expressions over the committed tables:

    {{ mean("linear-20", "shd", graphs="erdos-renyi", method="dibs") }}           a number
    {% set p = paired("bge-20", "shd", ("dibs", "dibs-lib"), graphs="scale-free") %}
    {{ p["dibs"] }} and {{ p["dibs-lib"] }} ({{ p.errors }} standard errors)      on the same networks
    {% do check(p["dibs"] > p["dibs-lib"]) %}                                     fails unless it holds
    {% do everywhere("lower", "mlp-20", "shd", "dibs", ("m-mc3", "g-mc3")) %}     on both kinds of graphs

Its functions are the methods of `numbers.Tables` and the tables of `comparisons`.
"""

from __future__ import annotations

import json
import os
import re
import textwrap
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from dagpost._util.files import write_atomically
from dagpost.errors import InputError, nearest, printable
from dagpost.inference.mcmc.diagnostics import LARGEST_RHAT
from dagpost.studies import comparisons
from dagpost.studies.collect import FIGURE, MARKDOWN, PROVENANCE
from dagpost.studies.comparisons import BLOCKS
from dagpost.studies.experiments import STUDIES
from dagpost.studies.experiments.fitting import AS_PUBLISHED as BASELINES
from dagpost.studies.experiments.fitting import MOVES_PER_NODE, NONLINEAR_SECONDS
from dagpost.studies.experiments.sachs import MINIBATCH
from dagpost.studies.numbers import Number, Paired, Tables
from dagpost.studies.study import Study
from dagpost.studies.tables import AS_PUBLISHED

TABLE_METHODS = ("mean", "median", "sd", "runs", "paper", "share", "paired", "measured")
"""Methods of `Tables` that templates can call."""
COMPARISONS = ("comparison", "agreement", "disagreeing", "beside_paper", "missing_runs", "everywhere")
"""Functions of `comparisons` that templates can call."""
TEMPLATE_FILE = "<template>"
"""File name that Jinja gives a template that is a string."""

VERBATIM = ("#", "|", "    ", "<", "```", "!")
"""Beginnings of blocks that are not paragraphs: headings, tables, code, comments, pictures."""


def render(template: Path, tables: Tables) -> str:
    """Return the page that a template makes of the tables.

    Parameters
    ----------
    template
        Path of the template.
    tables
        Committed tables.

    Raises
    ------
    InputError
        If an expression fails or a check does not hold; names the line of the template.
    """
    try:
        import jinja2
        from jinja2.sandbox import SandboxedEnvironment
    except ImportError:
        raise InputError(f"{printable(template)}: templates need jinja2: pip install 'dagpost[dev]'") from None
    environment = SandboxedEnvironment(
        undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do"], finalize=_format_value,
        keep_trailing_newline=True, trim_blocks=True,
    )  # fmt: skip
    environment.globals = vocabulary(tables)
    environment.filters["digits"] = lambda value, digits: Number(value, digits)
    try:
        return rewrap(environment.from_string(template.read_text(encoding="utf-8")).render())
    except (InputError, jinja2.TemplateError) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == TEMPLATE_FILE]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else "?")
        raise InputError(f"{printable(template)}, line {line}: {error}") from error


def vocabulary(tables: Tables) -> dict[str, Any]:
    """Return the functions and constants that a template can use."""
    return {
        "check": check,
        "FILE_ORDER": AS_PUBLISHED,
        "STEPS": comparisons.PUBLISHED_STEPS,
        "MINIBATCH": MINIBATCH,
        "MOVES_PER_NODE": MOVES_PER_NODE,
        "NONLINEAR_SECONDS": round(NONLINEAR_SECONDS),
        "SIGNIFICANCE": BASELINES["bootstrap-pc"]["significance"],
        "LARGEST_RHAT": LARGEST_RHAT,
        **{name: getattr(tables, name) for name in TABLE_METHODS},
        **{name: partial(getattr(comparisons, name), tables) for name in COMPARISONS},
    }


def rewrap(text: str) -> str:
    """Wrap paragraphs and list items to lines of at most 120 characters; leave other blocks alone.

    >>> rewrap("a\\nb\\n\\n* c\\n  d\\n* e\\n")
    'a b\\n\\n* c d\\n* e\\n'
    """
    parts = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if not block.startswith(VERBATIM):
            items = re.split(r"\n(?=\* )", block)
            block = "\n".join(_wrap(" ".join(item.split())) for item in items)
        parts.append(block)
    return "\n\n".join(parts) + "\n"


def _wrap(item: str) -> str:
    """Return a paragraph or list item wrapped to 120 characters."""
    return textwrap.fill(
        item, 120, subsequent_indent="  " * item.startswith("* "), break_long_words=False, break_on_hyphens=False
    )


def check(holds: bool) -> str:
    """Return an empty string; raise an error if a comparison that the text states does not hold."""
    if not holds:
        raise InputError("a comparison does not hold: correct the sentence beside it")
    return ""


def _format_value(value: Any) -> Any:
    """Return the value of an expression as the page shows it; raise an error for a float without digits."""
    if isinstance(value, str):
        return value.rstrip("\n")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Paired) or (isinstance(value, float) and not isinstance(value, Number)):
        raise InputError(f"{value!r} has no format: use `| digits(1)` for a float, and one method of paired numbers")
    return value


STUDY_MARK = re.compile(r"<!-- study ([\w-]+) -->\n.*?<!-- end \1 -->\n", re.DOTALL)
TABLE_MARK = re.compile(r"<!-- table ([\w-]+) -->\n.*?<!-- end \1 -->\n", re.DOTALL)
GENERATED = re.compile(r"\A<!-- generated from ([\w./-]+)\b.*?-->\n+", re.DOTALL)


def update_page(page: str | os.PathLike[str], results: str | os.PathLike[str]) -> list[str]:
    """Update the generated parts of a page.

    Parameters
    ----------
    page
        Markdown file.
    results
        Folder of results.

    Returns
    -------
    list of str
        Names of the studies that have results.
    """
    path = Path(page)
    if not path.is_file():
        raise InputError(f"{printable(path)}: no such page: give the path of a Markdown file")
    text = path.read_text(encoding="utf-8")
    updated, with_results = update_text(text, Path(results), path.parent)
    if updated != text:
        write_atomically(path, updated.encode(), overwrite=True)
    return with_results


def update_text(text: str, folder: Path, page_folder: Path) -> tuple[str, list[str]]:
    """Return the updated text of a page in `page_folder`, and the names of the studies that have results."""
    tables = Tables(folder)
    if head := GENERATED.match(text):
        if not (folder / head[1]).is_file():
            raise InputError(f"{printable(folder / head[1])}: no such template: correct the first line of the page")
        text = head[0] + render(folder / head[1], tables)
    with_results = [name for name in STUDIES if (folder / name / MARKDOWN).is_file()]
    marked = set(STUDY_MARK.findall(text))
    with_tables = TABLE_MARK.sub(lambda m: table_block(m[1], tables), text)
    updated = STUDY_MARK.sub(
        lambda m: study_block(m[1], folder, page_folder) if m[1] in with_results else m[0], with_tables
    )
    if marked or not TABLE_MARK.search(text):
        for name in with_results:
            if name not in marked:
                updated += f"\n## {STUDIES[name].title}\n\n{study_block(name, folder, page_folder)}"
    return updated, with_results


def table_block(name: str, tables: Tables) -> str:
    """Return a table of `comparisons.BLOCKS` between its marks."""
    if name not in BLOCKS:
        raise InputError(f"<!-- table {name} -->: {nearest(name, BLOCKS)}")
    return f"<!-- table {name} -->\n\n{BLOCKS[name](tables)}\n<!-- end {name} -->\n"


def study_block(name: str, results: Path, page_folder: Path) -> str:
    """Return the generated part about one study: description, table, figure and provenance, between its marks."""
    study, folder = STUDIES[name], results / name
    parts = [_description(study), (folder / MARKDOWN).read_text(encoding="utf-8").rstrip()]
    if (folder / FIGURE).is_file():
        link = Path(os.path.relpath(folder / FIGURE, page_folder)).as_posix()
        parts.append(f"![{study.title}]({link})")
    if (folder / PROVENANCE).is_file():
        parts.append(provenance_text(json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))))
    return f"<!-- study {name} -->\n" + "\n\n".join(parts) + f"\n<!-- end {name} -->\n"


def _description(study: Study) -> str:
    """Return what a study shows, and where it is in the paper."""
    numbers = "" if study.published else " The paper shows this as a plot, without numbers."
    return f"Paper: {study.source}. {study.shows}{numbers}"


def provenance_text(record: dict[str, Any]) -> str:
    """Return a paragraph with the command, the share of finished tasks, versions, hardware and times."""
    machines = "; ".join(_machine(h) for h in record["hardware"])
    versions = "; ".join(dict.fromkeys(_versions(v) for v in record["versions"]))
    done = "all" if record["finished"] == record["tasks"] else f"{record['finished']} of {record['tasks']}"
    times = ", ".join(f"{name} {seconds:g} s" for name, seconds in record["mean_seconds_of_a_task"].items())
    return (
        f"`{record['command']}`, {done} tasks; seeds {record['seeds']}; {versions}; {machines}. "
        f"Mean time of a task, on the core or the share of a GPU that it had: {times}; "
        f"{record['hours_of_computing']:g} hours in all."
    )


def _versions(v: dict[str, Any]) -> str:
    """Return the most important versions; the record holds more."""
    return f"dagpost {v['dagpost']}, JAX {v['jax']}, Python {v['python']}"


def _machine(h: dict[str, Any]) -> str:
    """Return processor, cores and GPU of a machine, and its number of tasks."""
    device = "" if h["device"] == "cpu" else f", {h['device']}"
    return f"{h['processor']}, {h['cores']} cores{device} ({h['tasks']} tasks)"
