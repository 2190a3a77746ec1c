"""Pages with generated parts, renewed by `dagpost study --page`.

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
from pathlib import Path
from typing import Any

from dagpost._util.atomic import write_atomically
from dagpost.errors import InputError, nearest, printable
from dagpost.studies.collect import FIGURE, MARKDOWN, PROVENANCE
from dagpost.studies.comparisons import BLOCKS
from dagpost.studies.declared import STUDIES
from dagpost.studies.numbers import Tables
from dagpost.studies.study import Study
from dagpost.studies.template import render

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
