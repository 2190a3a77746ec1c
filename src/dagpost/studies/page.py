"""A page from a template: text with expressions over the committed tables, in the syntax of Jinja.

    {{ mean("linear-20", "shd", graphs="erdos-renyi", method="dibs") }}           a number
    {% set p = paired("bge-20", "shd", ("dibs", "dibs-lib"), graphs="scale-free") %}
    {{ p["dibs"] }} and {{ p["dibs-lib"] }} ({{ p.errors }} standard errors)      on the same networks
    {% do check(p["dibs"] > p["dibs-lib"]) %}                                     fails unless it holds
    {% do everywhere("lower", "mlp-20", "shd", "dibs", ("m-mc3", "g-mc3")) %}     on both kinds of graphs

Functions are the methods of `numbers.Tables` and the tables of `comparisons`.

Pages with generated parts, renewed by `dagpost study --page`.

* `<!-- study NAME -->` to `<!-- end NAME -->`: the table and figure of a study. A study that has results and no block
  gets a section at the end, unless the page has tables alone.
* `<!-- table NAME -->` to `<!-- end NAME -->`: a table of `comparisons.BLOCKS`.
* A page that begins with `<!-- generated from FILE … -->` is written anew from that template in the folder of results,
  where numbers in the text are expressions (`template.py`). The rest of any other page is left alone.
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
from dagpost.studies.experiments.methods import AS_PUBLISHED as BASELINES
from dagpost.studies.experiments.methods import MOVES_PER_NODE
from dagpost.studies.experiments.sachs import MINIBATCH
from dagpost.studies.numbers import Number, Paired, Tables
from dagpost.studies.study import Study
from dagpost.studies.tables import AS_PUBLISHED

NUMBERS = ("mean", "median", "sd", "runs", "paper", "share", "paired", "measured")
TABLES = ("comparison", "agreement", "disagreeing", "beside_paper", "missing_runs", "everywhere")
PLACE = "<template>"
"""What Jinja calls the file of a template that is a string."""

AS_IT_IS = ("#", "|", "    ", "<", "```", "!")
"""How a block begins that is not a paragraph: headings, tables, code, marks, pictures."""


def render(template: Path, tables: Tables) -> str:
    """The page that a template makes of the tables; an error names its line."""
    try:
        import jinja2
        from jinja2.sandbox import SandboxedEnvironment
    except ImportError:
        raise InputError(
            f"{printable(template)}: templates need jinja2: pip install 'dagpost[dev]' brings it"
        ) from None
    environment = SandboxedEnvironment(
        undefined=jinja2.StrictUndefined, extensions=["jinja2.ext.do"], finalize=_printed, keep_trailing_newline=True,
        trim_blocks=True,
    )  # fmt: skip
    environment.globals = vocabulary(tables)
    environment.filters["digits"] = lambda value, digits: Number(value, digits)
    try:
        return refilled(environment.from_string(template.read_text(encoding="utf-8")).render())
    except (InputError, jinja2.TemplateError) as error:
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == PLACE]
        line = getattr(error, "lineno", None) or (lines[-1] if lines else "?")
        raise InputError(f"{printable(template)}, line {line}: {error}") from error


def vocabulary(tables: Tables) -> dict[str, Any]:
    """What a template can name."""
    return {
        "check": check,
        "FILE_ORDER": AS_PUBLISHED,
        "STEPS": comparisons.PUBLISHED_STEPS,
        "MINIBATCH": MINIBATCH,
        "MOVES_PER_NODE": MOVES_PER_NODE,
        "SIGNIFICANCE": BASELINES["bootstrap-pc"]["significance"],
        "LARGEST_RHAT": LARGEST_RHAT,
        **{name: getattr(tables, name) for name in NUMBERS},
        **{name: partial(getattr(comparisons, name), tables) for name in TABLES},
    }


def refilled(text: str) -> str:
    """Paragraphs and list items with lines of at most 120 characters; anything else as it is.

    >>> refilled("a\\nb\\n\\n* c\\n  d\\n* e\\n")
    'a b\\n\\n* c d\\n* e\\n'
    """
    parts = []
    for block in re.split(r"\n{2,}", text.strip("\n")):
        if not block.startswith(AS_IT_IS):
            items = re.split(r"\n(?=\* )", block)
            block = "\n".join(_filled(" ".join(item.split())) for item in items)
        parts.append(block)
    return "\n\n".join(parts) + "\n"


def _filled(item: str) -> str:
    return textwrap.fill(
        item, 120, subsequent_indent="  " * item.startswith("* "), break_long_words=False, break_on_hyphens=False
    )


def check(holds: bool) -> str:
    """Nothing, or an error: what the text says beside it is not so."""
    if not holds:
        raise InputError("a comparison does not hold: see what the sentence beside it says, and change it")
    return ""


def _printed(value: Any) -> Any:
    """Numbers as they print themselves, tables without their last newline; a bare float has no digits to print with."""
    if isinstance(value, str):
        return value.rstrip("\n")
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, Paired) or (isinstance(value, float) and not isinstance(value, Number)):
        raise InputError(f"{value!r} has no format: pass a float through `| digits(1)`, take a mean of paired numbers")
    return value


MARK = re.compile(r"<!-- study ([\w-]+) -->\n.*?<!-- end \1 -->\n", re.DOTALL)
TABLE_MARK = re.compile(r"<!-- table ([\w-]+) -->\n.*?<!-- end \1 -->\n", re.DOTALL)
GENERATED = re.compile(r"\A<!-- generated from ([\w./-]+)\b.*?-->\n+", re.DOTALL)


def renew_page(page: str | os.PathLike[str], results: str | os.PathLike[str]) -> list[str]:
    """Write the page anew from the files of all finished studies; returns the names of these."""
    path = Path(page)
    if not path.is_file():
        raise InputError(f"{printable(path)}: no such page: give the path of a Markdown file")
    text = path.read_text(encoding="utf-8")
    renewed, there = renewed_text(text, Path(results), path.parent)
    if renewed != text:
        write_atomically(path, renewed.encode(), overwrite=True)
    return there


def renewed_text(text: str, folder: Path, beside: Path) -> tuple[str, list[str]]:
    """What a page in the folder `beside` is to say, and the names of the studies that have results."""
    tables = Tables(folder)
    if head := GENERATED.match(text):
        if not (folder / head[1]).is_file():
            raise InputError(f"{printable(folder / head[1])}: no such template, which the page says it is made from")
        text = head[0] + render(folder / head[1], tables)
    there = [name for name in STUDIES if (folder / name / MARKDOWN).is_file()]
    marked = set(MARK.findall(text))
    with_tables = TABLE_MARK.sub(lambda m: table_block(m[1], tables), text)
    renewed = MARK.sub(lambda m: block(m[1], folder, beside) if m[1] in there else m[0], with_tables)
    if marked or not TABLE_MARK.search(text):
        for name in there:
            if name not in marked:
                renewed += f"\n## {STUDIES[name].title}\n\n{block(name, folder, beside)}"
    return renewed, there


def table_block(name: str, tables: Tables) -> str:
    """A table of `comparisons` between its marks."""
    if name not in BLOCKS:
        raise InputError(f"<!-- table {name} -->: {nearest(name, BLOCKS)}")
    return f"<!-- table {name} -->\n\n{BLOCKS[name](tables)}\n<!-- end {name} -->\n"


def block(name: str, results: Path, beside: Path) -> str:
    """Everything generated of one study: what it is, its table, its figure, and where they come from."""
    study, folder = STUDIES[name], results / name
    parts = [_about(study), (folder / MARKDOWN).read_text(encoding="utf-8").rstrip()]
    if (folder / FIGURE).is_file():
        shown = Path(os.path.relpath(folder / FIGURE, beside)).as_posix()
        parts.append(f"![{study.title}]({shown})")
    if (folder / PROVENANCE).is_file():
        parts.append(origin(json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))))
    return f"<!-- study {name} -->\n" + "\n\n".join(parts) + f"\n<!-- end {name} -->\n"


def _about(study: Study) -> str:
    numbers = "" if study.published else " The paper shows this as a plot, without numbers."
    return f"Paper: {study.source}. {study.shows}{numbers}"


def origin(record: dict[str, Any]) -> str:
    """One paragraph: command, how much of it is finished, versions, hardware, time."""
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
    """Those that a reader asks for; the record holds more of them."""
    return f"dagpost {v['dagpost']}, JAX {v['jax']}, Python {v['python']}"


def _machine(h: dict[str, Any]) -> str:
    device = "" if h["device"] == "cpu" else f", {h['device']}"
    return f"{h['processor']}, {h['cores']} cores{device} ({h['tasks']} tasks)"
