"""The blocks of a Markdown page: what the documentation tests run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

PART = re.compile(
    r"^<!-- test: (?P<order>setup|skip)(?P<said>.*?)-->"
    r"|^(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=fence)$",
    re.DOTALL | re.MULTILINE,
)


class Block(NamedTuple):
    """One block to run; `language` is "python", "sh", "toml" …, or "setup" for hidden code."""

    language: str
    code: str
    line: int
    skipped: bool = False


def blocks(text: str) -> list[Block]:
    """Hidden code and fenced blocks in order; a reason is needed to skip one."""
    out: list[Block] = []
    skip = False
    for part in PART.finditer(text):
        line = text.count("\n", 0, part.start()) + 1
        if part["order"] == "setup":
            out.append(Block("setup", part["said"].strip() + "\n", line))
        elif part["order"] == "skip":
            assert re.match(r" because \w+", part["said"]), f"line {line}: say why"
            skip = True
        else:
            out.append(Block(part["language"], part["code"], line, skip))
            skip = False
    assert not skip, "a test: skip without a block after it"
    return out


class Command(NamedTuple):
    """A line of a shell block, without its comment, and whether its output goes into a pipe."""

    words: list[str]
    piped: bool


def commands(code: str) -> list[Command]:
    """The commands of a shell block; lines that end in a backslash go on."""
    out = []
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words:
            end = words.index("|") if "|" in words else len(words)
            out.append(Command(words[:end], end < len(words)))
    return out
