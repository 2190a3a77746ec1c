"""What a command sets up before the heavy parts load: caches of compiled code, and the accelerator.

Options that several commands share, and their words.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from dagpost.errors import InputError, nearest


def prepare(accelerator: str | None = None) -> None:
    """Caches that make a second run skip compilation; the accelerator that was asked for, or an error."""
    use_caches()
    use_accelerator(accelerator)


def cache_folder() -> Path | None:
    """`$XDG_CACHE_HOME/dagpost` or `~/.cache/dagpost`; None where neither can be written to."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = Path(base) / "dagpost"
    return folder if _writable(folder) else None


def use_caches() -> None:
    """Keep what numba and XLA compile; without a folder to keep it in, compile every time."""
    folder = cache_folder()
    package = Path(__file__).parents[1]
    if "NUMBA_CACHE_DIR" not in os.environ and not _writable(package / "__pycache__"):
        os.environ["NUMBA_CACHE_DIR"] = str(folder / "numba" if folder else Path(tempfile.gettempdir()) / "dagpost")
    if folder is None or "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    import jax

    jax.config.update("jax_compilation_cache_dir", str(folder / "xla"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def compile_quickly() -> None:
    """Little is optimised, which halves the time of compiling: for runs so small that compiling is most of them."""
    if "xla_backend_optimization_level" not in (flags := os.environ.get("XLA_FLAGS", "")):
        os.environ["XLA_FLAGS"] = f"{flags} --xla_backend_optimization_level=0".strip()


def use_accelerator(name: str | None) -> None:
    """Compute on it, or say that it is not there."""
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


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


MODELS = ("linear", "bge", "mlp")
PRIORS = ("erdos-renyi", "scale-free", "uniform")
METHODS = (
    "auto", "dibs", "dibs-paper", "exact", "mc3", "m-mc3", "g-mc3", "bootstrap-pc", "bootstrap-ges",
)  # fmt: skip
ACCELERATORS = ("cpu", "gpu")


def _words(*words: str) -> Any:
    """Completion: the words that begin like what was typed."""
    return lambda incomplete: [w for w in words if w.startswith(incomplete)]


Table = Annotated[str, typer.Argument(help="Table (.csv, .tsv, .parquet); its first row names the columns.")]
Run = Annotated[str, typer.Argument(help="Folder that `dagpost fit` wrote.")]
ModelName = Annotated[
    str | None, typer.Option("--model", help=f"{', '.join(MODELS)} [linear]", autocompletion=_words(*MODELS))
]
PriorName = Annotated[
    str | None, typer.Option("--prior", help=f"{', '.join(PRIORS)} [erdos-renyi]", autocompletion=_words(*PRIORS))
]
MethodName = Annotated[
    str | None, typer.Option("--method", help=f"{', '.join(METHODS)} [auto]", autocompletion=_words(*METHODS))
]
Noise = Annotated[float | None, typer.Option(help="Known noise variance of every node; learnt if left out.")]
RawUnits = Annotated[
    bool | None, typer.Option("--raw-units/--standardise", help="Keep units, or standardise columns [standardise]")
]
Interventions = Annotated[
    str | None,
    typer.Option(
        metavar="FILE_OR_COLUMN",
        help="Column that names the nodes intervened on in each row (several with ';'), or a file with such a column "
        "or a 0/1 mask.",
    ),
]
Knowledge = Annotated[str | None, typer.Option(metavar="FILE", help="What is known of the graph (.toml).")]
Draws = Annotated[int, typer.Option(help="Graphs in the posterior.")]
Seed = Annotated[int, typer.Option(help="Fixes every random number.")]
Out = Annotated[str, typer.Option(metavar="FOLDER", help="Where results go.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace results that are there already.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no messages; warnings and errors remain.")]
Report = Annotated[bool, typer.Option("--report", help="Write report.html as well, an interactive page.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on standard output.")]
Accelerator = Annotated[
    str | None, typer.Option(help="cpu or gpu [whichever is there]", autocompletion=_words(*ACCELERATORS))
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the method, model.NAME of the model, prior.NAME of the prior; may be repeated.",
    ),
]


def settings(given: list[str] | None) -> dict[str, dict[str, Any]]:
    """`--set` by what it is a setting of.

    >>> settings(["thin=10", "model.alpha_w=30"])
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
