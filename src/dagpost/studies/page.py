"""The page of results: text written by people, tables put between marks by `dagpost study --page`.

A block begins with `<!-- study NAME -->` and ends with `<!-- end NAME -->`; what is between is written anew from the
files of that study. A study that has results and no block gets a section at the end.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from dagpost.atomic import write_atomically
from dagpost.errors import InputError, printable
from dagpost.studies.collect import FIGURE, MARKDOWN, PROVENANCE
from dagpost.studies.declared import STUDIES
from dagpost.studies.study import Study

MARK = re.compile(r"<!-- study ([\w-]+) -->\n.*?<!-- end \1 -->\n", re.DOTALL)


def renew_page(page: str | os.PathLike[str], results: str | os.PathLike[str]) -> list[str]:
    """Write the tables of all finished studies into the page; returns their names."""
    path, folder = Path(page), Path(results)
    if not path.is_file():
        raise InputError(f"{printable(path)}: no such page: give the path of a Markdown file")
    text = path.read_text(encoding="utf-8")
    there = [name for name in STUDIES if (folder / name / MARKDOWN).is_file()]
    marked = set(MARK.findall(text))
    renewed = MARK.sub(lambda m: block(m[1], folder, path.parent) if m[1] in there else m[0], text)
    for name in there:
        if name not in marked:
            study = STUDIES[name]
            renewed += f"\n## {study.title}\n\n{block(name, folder, path.parent)}"
    if renewed != text:
        write_atomically(path, renewed.encode(), overwrite=True)
    return there


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
