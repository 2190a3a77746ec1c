"""Options that say what a table is: how its file is read, and which rows are of which time, series or experiment.

They are declared once, as fields of `TableOptions`; `takes_table` gives them to a command.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from dagpost._util.files import TABLE_KINDS, existing_file
from dagpost.errors import InputError, TableWarning, printable
from dagpost.interfaces.cli.options import Interventions, words
from dagpost.interfaces.cli.output import say

if TYPE_CHECKING:
    from dagpost.data import Dataset

Sep = Annotated[str | None, typer.Option(help="Separator of the columns: a character, tab or whitespace [found out]")]
Decimal = Annotated[str | None, typer.Option(help="Decimal sign, . or , [found out]")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the text, such as latin-1 [found out]")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="Whether the first row names the columns, where it holds numbers."),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="Column to leave out; 'constant' or 'duplicate' for all such; repeatable."),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=KIND",
        help="Kind of a column: continuous, count, categorical, ordinal or binary, or its levels in order, "
        "low<mid<high [found out from its cells]; repeatable.",
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help='Kinds of columns (.toml): lines such as smoker = "categorical", dose = "low<mid<high".'
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        help="drop: leave out rows with missing values; keep: draw such cells with the graphs [auto: keep]",
        autocompletion=words("drop", "keep"),
    ),
]
MissingValues = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="Further marks of missing cells, such as '-999,unknown' [?, NA, None, …]"),
]
Lags = Annotated[
    int | None, typer.Option(help="1: rows are in the order of time; join each with the one before it [no order]")
]
Series = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --lags: column that names the series of a row [one series]")
]
Conditions = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="Column that names the experiment of each row; which nodes it changes is learnt (empty or none: nothing "
        "was done)",
    ),
]
TargetsKnown = Annotated[
    str | None,
    typer.Option(
        help="unknown: conditions may change any node; known: those of --interventions alone [unknown]",
        autocompletion=words("unknown", "known"),
    ),
]
Change = Annotated[
    str | None,
    typer.Option(
        help="What a condition does to a node: soft: new parameters; hard: no more parents [soft]",
        autocompletion=words("soft", "hard"),
    ),
]
TargetProbability = Annotated[
    float | None, typer.Option(help="Prior probability that a condition changes a node [0.1]")
]
Observational = Annotated[str | None, typer.Option(metavar="LABEL", help="Condition that changes nothing.")]
MostChanges = Annotated[int | None, typer.Option(help="Most conditions that may change one node [all]")]


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """Options of every command that reads a table; None where the user gave nothing."""

    interventions: Interventions = None
    sep: Sep = None
    decimal: Decimal = None
    encoding: Encoding = None
    header: Header = None
    drop: Drop = None
    missing: Missing = None
    missing_values: MissingValues = None
    kinds: Kinds = None
    columns: Columns = None
    lags: Lags = None
    series: Series = None
    conditions: Conditions = None
    targets: TargetsKnown = None
    change: Change = None
    target_probability: TargetProbability = None
    observational: Observational = None
    most_changes: MostChanges = None

    def read(self, table: str, quiet: bool, missing: str | None = None) -> Dataset:
        """Return the table, and print what reading found out and left out.

        Parameters
        ----------
        table
            Path of the table.
        quiet
            Whether to print nothing.
        missing
            What to do about missing cells unless the user says it.
        """
        from dagpost.data import as_dataset

        names = ("interventions", "sep", "decimal", "encoding", "header", "drop", "lags", "series", "conditions")
        given = {name: getattr(self, name) for name in names}
        kinds = parse_kinds(self.kinds, self.columns)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TableWarning)  # their texts are among the notes
            data = as_dataset(
                table, missing=self.missing or missing, kinds=kinds, missing_values=parse_list(self.missing_values),
                **given,
            )  # fmt: skip
        for note in data.notes:
            say(f"{printable(Path(table).name)}: {note}", quiet)
        return data

    @property
    def targets_of_conditions(self) -> dict[str, Any] | str | None:
        """The argument `targets` of `dagpost.fit`; None if nothing was said."""
        return parse_targets(
            self.targets, self.change, self.target_probability, self.observational, self.most_changes
        )  # fmt: skip


def takes_table(command: Callable[..., None]) -> Callable[..., None]:
    """Return the command with the fields of `TableOptions` as options, in place of its argument `reading`."""
    hints = get_type_hints(TableOptions, include_extras=True)
    own = [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
        )
        for field in fields(TableOptions)
    ]
    signature, options = inspect.signature(command, eval_str=True), []
    for parameter in signature.parameters.values():
        options += own if parameter.name == "reading" else [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)]

    @wraps(command)
    def run(**given: Any) -> None:
        existing_file(given["table"], "table", TABLE_KINDS)  # said before the libraries load
        reading = TableOptions(**{option.name: given.pop(option.name) for option in own})
        command(reading=reading, **given)

    run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    run.__annotations__ = {option.name: option.annotation for option in options}
    return run


def parse_kinds(given: list[str] | None, columns: str | None) -> dict[str, Any] | None:
    """Return the kinds of columns from `--columns` and `--kinds`, which goes first; None without either.

    >>> parse_kinds(["smoker=categorical"], None)
    {'smoker': 'categorical'}
    """
    from dagpost.data.kinds import read_kinds

    out = {} if columns is None else read_kinds(columns)
    for text in given or ():
        name, equals, kind = text.rpartition("=")
        if not equals or not name:
            raise InputError(f"--kinds {printable(text)}: write NAME=KIND, such as smoker=categorical")
        out[name] = kind.strip()
    return out or None


def parse_list(text: str | None) -> list[str] | None:
    """Return the entries of a list separated by commas; None without one.

    >>> parse_list("-999, ?")
    ['-999', '?']
    """
    return None if text is None else [entry.strip() for entry in text.split(",") if entry.strip()]


def parse_targets(
    targets: str | None, change: str | None, probability: float | None, observational: str | None, most: int | None
) -> dict[str, Any] | str | None:
    """Return the argument `targets` of `dagpost.fit`; None if nothing was said.

    >>> parse_targets("known", "hard", None, None, None)
    {'probability': 0.0, 'change': 'hard'}
    """
    if targets not in (None, "unknown", "known"):
        return targets  # an error that suggests a word
    given = {"probability": probability, "change": change, "observational": observational, "most": most}
    if targets == "known":
        if probability is not None:
            raise InputError("--targets known and --target-probability contradict each other: leave one of them out")
        given["probability"] = 0.0
    fields = {name: value for name, value in given.items() if value is not None}
    return fields or targets


MOST_LINES = 40
"""Columns that are described in a line each."""


def columns_text(data: Dataset) -> str:
    """Return one line about each of the first columns, and a count of the others."""
    lines = [f"  {line}" for line in data.column_lines()]
    if len(lines) > MOST_LINES:
        rest = data.kinds[MOST_LINES:]
        counts = ", ".join(f"{rest.count(kind)} {kind}" for kind in dict.fromkeys(rest))
        lines[MOST_LINES:] = [f"  … and {counts} more"]
    return "\n".join(["columns (--kinds NAME=KIND changes what they are taken as):", *lines])
