"""`njit`, numba's compiler with a cache that lasts: compiled code is kept until a compiled file changes.

Numba checks only the file of a function, so it would miss a change in a function that was inlined from another file,
and recompile after an edited docstring. Here the stamp of the cache is a hash of the syntax trees, without docstrings,
of all files that are compiled.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Self

import numba
from numba.core import config, event

from dagpost._util.progress import is_shown

PACKAGE = Path(__file__).parents[1]
LOCATORS = "CACHE_LOCATOR_CLASSES"
"""Setting of numba: where to look for the folder of the cache."""


def njit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function in nopython mode and cache the result; `options` are those of `numba.njit`.

    Parameters
    ----------
    function
        Function to compile; None returns a decorator.
    options
        Options of `numba.njit`.

    Returns
    -------
    Callable
        The compiled function.
    """
    if function is None:
        return partial(njit, **options)
    usual = getattr(config, LOCATORS, "")
    setattr(config, LOCATORS, usual or _locators())
    try:
        return numba.njit(cache=True, **options)(function)
    finally:
        setattr(config, LOCATORS, usual)


@cache
def _locators() -> str:
    """Return the value of `LOCATORS`: ours where there is a folder to write to, and what numba does by itself."""
    ours = [f"{__name__}.CacheLocator"] if cache_folder() is not None else []
    usual = ["UserProvided", "InTree", "UserWide", "IPython", "Zip"]
    return ",".join([*ours, *(f"{name}CacheLocator" for name in usual)])


class CacheLocator:
    """Where numba caches a function of this package, and when that is outdated: numba's locator interface."""

    def __init__(self, file: str):
        self._py_file = file  # numba's warnings name it
        self._module = ".".join(Path(file).with_suffix("").relative_to(PACKAGE).parts)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Self | None:
        """Return the locator of a function, None for one of another package."""
        return cls(file) if Path(file).is_relative_to(PACKAGE) else None

    def ensure_cache_path(self) -> None:
        """Create the folder; when it is new, what older code of this installation left is deleted."""
        folder = Path(self.get_cache_path())
        if not folder.exists():
            shutil.rmtree(folder.parent, ignore_errors=True)
            folder.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        """Return the folder: one for each installation, and in it one for the code, since numba fails to read its index
        if a class that it names has moved."""
        installation = hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:12]
        return str(Path(cache_folder() or tempfile.gettempdir()) / f"dagpost-{installation}" / source_stamp()[:12])

    def get_source_stamp(self) -> str:
        """Return the value that changes with the compiled files."""
        return source_stamp()

    def get_disambiguator(self) -> str:
        """Return what tells functions of the same name apart: their module."""
        return self._module


@cache
def cache_folder() -> Path | None:
    """Return `$NUMBA_CACHE_DIR`, or `numba` in the user's cache folder; None if it is not writable."""
    given, folder = os.environ.get("NUMBA_CACHE_DIR"), user_cache()
    chosen = Path(given) if given else None if folder is None else folder / "numba"
    return chosen if chosen is not None and is_writable(chosen) else None


def user_cache() -> Path | None:
    """Return `$XDG_CACHE_HOME/dagpost` or `~/.cache/dagpost`; None if it is not writable."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / "dagpost"
    return folder if is_writable(folder) else None


def is_writable(folder: Path) -> bool:
    """Return whether files can be created in the folder, which is created if necessary."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def compiled_files() -> list[Path]:
    """Return the files of the package with compiled functions."""
    return [path for path in sorted(PACKAGE.rglob("*.py")) if b"@njit" in path.read_bytes()]


@cache
def source_stamp() -> str:
    """Return a hash of the code of all compiled files; docstrings, comments and formatting do not count."""
    code = [(str(path.relative_to(PACKAGE)), _without_docstrings(path.read_text("utf-8"))) for path in compiled_files()]
    return hashlib.sha256(repr(code).encode()).hexdigest()


def _without_docstrings(source: str) -> str:
    """Return the syntax tree of a file as text, without strings that stand alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [line for line in body if not _is_docstring(line)]  # pyright: ignore
    return ast.dump(tree)


def _is_docstring(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant) and isinstance(line.value.value, str)


@contextmanager
def announced(seconds: int, show: bool | None = None) -> Iterator[None]:
    """Context that says on standard error, when numba begins to compile, that this happens once and how long it takes.

    Parameters
    ----------
    seconds
        Roughly how long.
    show
        Whether to say it; None says it only if standard error is a terminal.
    """
    if not is_shown(show):
        yield
        return

    class Announcement(event.Listener):
        said = False

        def on_start(self, event: object) -> None:
            if not self.said:
                self.said = True
                print(
                    f"compiling (first run only), about {seconds} s; later runs start at once",
                    file=sys.stderr,
                    flush=True,
                )

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Announcement()):
        yield
