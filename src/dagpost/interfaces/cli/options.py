"""Options that several commands share, and what commands set up before the library loads.

The setup chooses the caches of compiled code and the accelerator; both must be set before JAX is used.
"""

from __future__ import annotations

import json
import os
from typing import Annotated, Any

import typer

from dagpost._util.compiled import user_cache
from dagpost.errors import InputError, nearest


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


def words(*known: str) -> Any:
    """Return a completion function that offers these words."""
    return lambda incomplete: [w for w in known if w.startswith(incomplete)]


Table = Annotated[
    str, typer.Argument(help="Table (.csv, .tsv, .xlsx, .parquet, .feather) with column names in its first row.")
]
Run = Annotated[str, typer.Argument(help="Output folder of `dagpost fit` or `dagpost exact`.")]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        help=f"{', '.join(MODELS)} [bge; bdeu for categories, copula for several kinds]",
        autocompletion=words(*MODELS),
    ),
]
PriorName = Annotated[
    str | None, typer.Option("--prior", help=f"{', '.join(PRIORS)} [unknown-density]", autocompletion=words(*PRIORS))
]
MethodName = Annotated[
    str | None, typer.Option("--method", help=f"{', '.join(METHODS)} [auto]", autocompletion=words(*METHODS))
]
Sampler = Annotated[
    str | None,
    typer.Option(help=f"DiBS: what moves its particles, {', '.join(SAMPLERS)} [svgd]", autocompletion=words(*SAMPLERS)),
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
    str | None, typer.Option(help="cpu or gpu [gpu if JAX finds one]", autocompletion=words(*ACCELERATORS))
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Setting of the method; model.NAME for the model, prior.NAME for the prior; repeatable.",
    ),
]


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
