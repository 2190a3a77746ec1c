"""Options that several commands share, and what commands set up before the library loads.

The setup chooses the caches of compiled code and the accelerator; both must be set before JAX is used.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dagpost._util.compiled import user_cache
from dagpost.errors import InputError, TableWarning, nearest, printable
from dagpost.interfaces.cli.output import say

if TYPE_CHECKING:
    from dagpost.data import Dataset


def prepare(accelerator: str | None = None) -> None:
    """Set up caches, so that a second run skips compilation, and the accelerator; raise an error if it is missing."""
    use_caches()
    use_accelerator(accelerator)


def use_caches() -> None:
    """Let XLA cache what it compiles, as numba does; without a writable folder it compiles in every run."""
    folder = user_cache()
    if folder is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def compile_quickly() -> None:
    """Make XLA optimise little, which halves compile time; for runs so small that compiling dominates."""
    if "xla_backend_optimization_level" not in (flags := os.environ.get("XLA_FLAGS", "")):
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_optimization_level=0".strip()


def use_accelerator(name: str | None) -> None:
    """Let JAX compute on "cpu" or "gpu"; raise an error if it is missing. None leaves the choice to JAX."""
    if name is None:
        return
    if name not in ("cpu", "gpu"):
        raise InputError(f"--accelerator {name}: {nearest(name, ('cpu', 'gpu'))}")
    import jax

    if name == "cpu":
        jax.config.update("jax_platforms", "cpu")
        return
    try:
        jax.devices("gpu")
    except RuntimeError:
        raise InputError(
            "--accelerator gpu: JAX sees no GPU here: install jax[cuda12], or leave the option out to use the CPU"
        ) from None


MODELS = ("bge", "linear", "additive", "gp", "mlp", "bdeu", "copula")
PRIORS = ("unknown-density", "erdos-renyi", "scale-free", "uniform")
METHODS = (
    "auto", "dibs", "dibs-paper", "exact", "mc3", "m-mc3", "g-mc3", "bootstrap-pc", "bootstrap-ges",
)  # fmt: skip
SAMPLERS = ("svgd", "sgld", "hmc")
ACCELERATORS = ("cpu", "gpu")


def _words(*words: str) -> Any:
    """Return a completion function that offers these words."""
    return lambda incomplete: [w for w in words if w.startswith(incomplete)]


Table = Annotated[
    str, typer.Argument(help="Table (.csv, .tsv, .xlsx, .parquet, .feather) with column names in its first row.")
]
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
        autocompletion=_words("drop", "keep"),
    ),
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
        autocompletion=_words("unknown", "known"),
    ),
]
Change = Annotated[
    str | None,
    typer.Option(
        help="What a condition does to a node: soft: new parameters; hard: no more parents [soft]",
        autocompletion=_words("soft", "hard"),
    ),
]
TargetProbability = Annotated[
    float | None, typer.Option(help="Prior probability that a condition changes a node [0.1]")
]
Observational = Annotated[str | None, typer.Option(metavar="LABEL", help="Condition that changes nothing.")]
MostChanges = Annotated[int | None, typer.Option(help="Most conditions that may change one node [all]")]
Run = Annotated[str, typer.Argument(help="Output folder of `dagpost fit` or `dagpost exact`.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help=f"{', '.join(MODELS)} [bge; bdeu for categories, copula for several kinds]",
        autocompletion=_words(*MODELS),
    ),
]
PriorName = Annotated[
    str | None, typer.Option("--prior", help=f"{', '.join(PRIORS)} [unknown-density]", autocompletion=_words(*PRIORS))
]
MethodName = Annotated[
    str | None, typer.Option("--method", help=f"{', '.join(METHODS)} [auto]", autocompletion=_words(*METHODS))
]
Sampler = Annotated[
    str | None,
    typer.Option(
        help=f"DiBS: what moves its particles, {', '.join(SAMPLERS)} [svgd]", autocompletion=_words(*SAMPLERS)
    ),
]
Noise = Annotated[float | None, typer.Option(help="Known noise variance of every node [learnt]")]
RawUnits = Annotated[
    bool | None,
    typer.Option("--raw-units/--standardise", help="Keep units, or standardise columns [standardise]"),
]
Interventions = Annotated[
    str | None,
    typer.Option(
        metavar="FILE_OR_COLUMN",
        help="Column that names the nodes intervened on in each row (separated by ';'), or a file with such a column "
        "or a 0/1 mask.",
    ),
]
Knowledge = Annotated[str | None, typer.Option(metavar="FILE", help="Prior knowledge of the graph (.toml).")]
Draws = Annotated[int, typer.Option(help="Graphs drawn from the posterior (auto, exact).")]
Seed = Annotated[int, typer.Option(help="Random seed.")]
Out = Annotated[str, typer.Option(metavar="FOLDER", help="Output folder.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace existing results.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no messages, only warnings and errors.")]
Report = Annotated[bool, typer.Option("--report", help="Also write report.html, an interactive page.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Accelerator = Annotated[
    str | None, typer.Option(help="cpu or gpu [gpu if JAX finds one]", autocompletion=_words(*ACCELERATORS))
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Setting of the method; model.NAME for the model, prior.NAME for the prior; repeatable.",
    ),
]


def read_data(table: str, interventions: str | None, reading: Mapping[str, Any], quiet: bool) -> Dataset:
    """Return the table, and print what reading found out and left out.

    Parameters
    ----------
    table, interventions
        Path of the table; column or file that names the nodes intervened on.
    reading
        Options of `dagpost.read_table`.
    quiet
        Whether to print nothing.
    """
    from dagpost.data import as_dataset

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # their texts are among the notes
        data = as_dataset(table, interventions=interventions, **reading)
    for note in data.notes:
        say(f"{printable(Path(table).name)}: {note}", quiet)
    return data


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


def parse_settings(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """Return the values of `--set` by owner: method, model or prior.

    >>> parse_settings(["thin=10", "model.alpha_w=30"])
    {'method': {'thin': 10}, 'model': {'alpha_w': 30}, 'prior': {}}
    """
    out: dict[str, dict[str, Any]] = {"method": {}, "model": {}, "prior": {}}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set {text}: write NAME=VALUE")
        owner, dot, own = name.strip().partition(".")
        if not dot:
            owner, own = "method", owner
        if owner not in out or not own:
            raise InputError(f"--set {text}: settings begin with 'model.', 'prior.' or nothing")
        try:
            out[owner][own.replace("-", "_")] = json.loads(value)
        except json.JSONDecodeError:
            out[owner][own.replace("-", "_")] = value
    return out
