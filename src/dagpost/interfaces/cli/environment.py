"""What a command sets up before the heavy parts load: caches of compiled code, and the accelerator."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
