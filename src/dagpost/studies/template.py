"""A page from a template: text with expressions over the committed tables, in the syntax of Jinja.

    {{ mean("linear-20", "shd", graphs="erdos-renyi", method="dibs") }}           a number
    {% set p = paired("bge-20", "shd", ("dibs", "dibs-lib"), graphs="scale-free") %}
    {{ p["dibs"] }} and {{ p["dibs-lib"] }} ({{ p.errors }} standard errors)      on the same networks
    {% do check(p["dibs"] > p["dibs-lib"]) %}                                     fails unless it holds
    {% do everywhere("lower", "mlp-20", "shd", "dibs", ("m-mc3", "g-mc3")) %}     on both kinds of graphs

Functions are the methods of `numbers.Tables` and the tables of `comparisons`.
"""

from __future__ import annotations

import re
import textwrap
import traceback
from functools import partial
from pathlib import Path
from typing import Any

from dagpost.errors import InputError, printable
from dagpost.inference.mcmc.diagnostics import LARGEST_RHAT
from dagpost.studies import comparisons
from dagpost.studies.declared.methods import AS_PUBLISHED as BASELINES
from dagpost.studies.declared.methods import MOVES_PER_NODE
from dagpost.studies.declared.sachs import MINIBATCH
from dagpost.studies.labels import AS_PUBLISHED
from dagpost.studies.numbers import Number, Paired, Tables

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
