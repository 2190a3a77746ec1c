"""Output of the commands: messages on standard error, results on standard output, and the folder and summary of a run.

A closed pipe is not an error. The folder is checked before the run and locked during it; files are written whole or not
at all.
"""

from __future__ import annotations

import json
import math
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dagpost import __version__, errors
from dagpost._util.files import try_lock, write_atomically
from dagpost.errors import InputError, printable

if TYPE_CHECKING:
    from dagpost.inference.defaults import Assumptions
    from dagpost.posterior import Posterior

OWN_WARNINGS = tuple(kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Warning))
"""Warning classes of dagpost, which are addressed to users."""

OVERRIDES = {
    "units": "--raw-units",
    "model": "--model linear | additive | gp | mlp | bdeu | copula, --noise 0.1",
    "noise": "--noise 0.1",
    "prior": "--prior erdos-renyi | scale-free | uniform",
    "method": "--method exact | dibs | …",
    "rows": "--interventions FILE_OR_COLUMN",
    "columns": "--kinds NAME=KIND",
    "missing": "--missing drop",
}
"""Command-line options that replace a default, by topic of `Assumptions.messages`."""


def say(text: str, quiet: bool = False) -> None:
    """Print a message on standard error, unless `quiet`."""
    if not quiet:
        with suppress(BrokenPipeError):
            print(text, file=sys.stderr, flush=True)


def print_error(text: str) -> None:
    """Print an error as one line on standard error."""
    say("dagpost: error: " + " ".join(text.split()))


def emit(text: str) -> None:
    """Print a result on standard output; ignore a reader that has closed the pipe."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def pair_text(pair: Mapping[str, Any]) -> str:
    """Return a pair of nodes with its direction, or with a line where the direction is open."""
    cause, effect = (errors.printable(pair[end]) for end in ("cause", "effect"))
    from dagpost.posterior.pairs import LEAST_SHARE

    sign = f", effect {pair['sign']}" if pair.get("sign") else ""
    if pair["direction"] < LEAST_SHARE:
        return f"{cause} -- {effect}  (direction open, {pair['direction']:.2f} for ->{sign})"
    return f"{cause} -> {effect}  ({pair['direction']:.2f} for this direction{sign})"


def as_json(value: Any) -> str:
    """Return the value as strict JSON; infinities and NaN become null."""
    return json.dumps(_plain(value), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Return the value as dicts, lists and scalars that JSON can hold."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if hasattr(value, "tolist"):  # NumPy numbers and arrays
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, int | str | bool | None) else str(value)


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print dagpost's own warnings as single lines without a source location, each text once."""
    seen: set[str] = set()
    show_other = warnings.showwarning

    def show(message, category, filename, lineno, file=None, line=None):
        if not issubclass(category, OWN_WARNINGS):
            show_other(message, category, filename, lineno, file, line)
        elif str(message) not in seen:
            seen.add(str(message))
            say(f"dagpost: warning: {message}")

    with warnings.catch_warnings():
        for category in OWN_WARNINGS:
            warnings.simplefilter("always", category)
        warnings.showwarning = show
        yield


POSTERIOR, EDGES, SUMMARY, TEXT = "posterior.nc", "edges.csv", "summary.json", "summary.txt"
RESULTS = (POSTERIOR, EDGES, SUMMARY, TEXT)
PAGE, REPORT_TEXT, REPORT_FIGURE = "report.html", "report.txt", "report.png"
NEXT, NEXT_FIGURE = "next.json", "next.png"
DERIVED = (PAGE, REPORT_TEXT, REPORT_FIGURE, NEXT, NEXT_FIGURE)
"""Files that `dagpost report` and `dagpost next` make of a run."""
LOCK = ".dagpost.lock"
CHECKPOINT = "checkpoint"
"""Folder inside the output folder that holds the state of a stopped run."""


@contextmanager
def output_folder(path: str | os.PathLike[str], files: Iterable[str], overwrite: bool) -> Iterator[Path]:
    """Yield the folder, created if necessary and locked by this process; a failed run leaves no new folder behind.

    Raises `InputError` if it is not writable, is locked, or holds one of `files` without `overwrite`.
    """
    folder = Path(path)
    missing = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise InputError(f"{_shown(folder)} is a file: give a folder with --out") from None
    except OSError as error:
        raise InputError(
            f"{_shown(folder)}: cannot be created ({error.strerror}): give another folder with --out"
        ) from None
    try:
        with _lock(folder):
            existing = [name for name in files if (folder / name).exists()]
            if existing and not overwrite:
                raise InputError(
                    f"{_shown(folder / existing[0])} exists already: give another folder with --out, or --overwrite"
                )
            yield folder
    finally:
        for created in missing:
            with suppress(OSError):  # not empty: the run succeeded
                created.rmdir()


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Lock the folder for this process; the system releases the lock when the process ends, however it ends."""
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(
            f"{_shown(folder)}: cannot be written to ({error.strerror}): give another folder with --out"
        ) from None
    try:
        if not try_lock(handle) or os.fstat(handle).st_nlink == 0:  # or its holder removed it between our two calls
            who = os.read(handle, 20).decode(errors="replace").strip() or "unknown"
            raise InputError(
                f"{_shown(folder)}: another dagpost (process {printable(who)}) is writing there: "
                "wait for it, or give another folder with --out"
            )
        os.ftruncate(handle, 0)
        os.write(handle, str(os.getpid()).encode())
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def write(path: Path, content: str | bytes) -> None:
    """Write a file atomically, replacing an existing one."""
    data = content.encode() if isinstance(content, str) else content
    try:
        write_atomically(path, data, overwrite=True)
    except OSError as error:
        raise InputError(f"{_shown(path)}: {error.strerror or error}") from None


def save(post: Posterior, folder: Path, summary: dict[str, Any], text: str) -> list[str]:
    """Write the results and return their file names; the summary comes last, so that a folder with one is complete."""
    try:
        post.save(folder / POSTERIOR, overwrite=True)
        post.export(folder / EDGES, overwrite=True)
    except OSError as error:
        raise InputError(f"{_shown(folder)}: {error.strerror or error}") from None
    write(folder / TEXT, text)
    write(folder / SUMMARY, as_json(summary))
    return list(RESULTS)


def remove_derived(folder: Path) -> list[str]:
    """Remove what was made of the run that a folder held before; return the names of these files."""
    removed = [name for name in DERIVED if (folder / name).exists()]
    for name in removed:
        try:
            (folder / name).unlink()
        except OSError as error:
            raise InputError(f"{_shown(folder / name)}: cannot be removed ({error.strerror}): remove it") from None
    return removed


def read_summary(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the summary of a finished run; raise an error if there is none, or it is damaged."""
    path = Path(folder) / SUMMARY
    if not Path(folder).is_dir():
        raise InputError(f"{_shown(Path(folder))}: no such folder: create one with `dagpost fit data.csv --out FOLDER`")
    if not path.is_file():
        cure = "run `dagpost fit`"
        if (Path(folder) / CHECKPOINT).exists():
            cure = "it was stopped: repeat its `dagpost fit` command with --resume"
        raise InputError(f"{_shown(Path(folder))} holds no finished run ({SUMMARY} is missing): {cure}")
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
        for edge in summary["edges"]:
            if not (isinstance(edge["cause"], str) and isinstance(edge["effect"], str)):
                raise TypeError
            if not 0 <= edge["probability"] <= 1:
                raise ValueError
        if {e[k] for e in summary["edges"] for k in ("cause", "effect")} - set(summary["names"]):
            raise ValueError
    except (ValueError, TypeError, KeyError, UnicodeDecodeError):
        raise InputError(f"{_shown(path)} is damaged: run `dagpost fit` again with --overwrite") from None
    return summary


def read_posterior(folder: str | os.PathLike[str], summary: dict[str, Any]) -> Posterior | None:
    """Return the posterior of a finished run; None if its file is missing."""
    path = Path(folder) / POSTERIOR
    if not path.is_file():
        return None
    from dagpost.posterior import load

    post = load(path)
    if list(post.names) != summary["names"]:
        raise InputError(
            f"{_shown(path)} and {SUMMARY} belong to different runs: run `dagpost fit` again with --overwrite"
        )
    return post


def saved_ranking(folder: Path, data_hash: str | None) -> dict[str, Any] | None:
    """Return what `dagpost next --save` wrote; None, with a message, if it is damaged or of other data."""
    if not (folder / NEXT).is_file():
        return None
    try:
        found = json.loads((folder / NEXT).read_text(encoding="utf-8"))
        if found["data_hash"] != data_hash or not found["experiments"]:
            raise ValueError
        for row in found["experiments"]:
            _ = row["experiment"] + row["sets"], float(row["gain"]), float(row["error"])
        _ = found["sentence"] + found["bound"]
    except (ValueError, TypeError, KeyError, AttributeError, OSError):
        say(f"{printable(folder / NEXT)} is damaged or of another run: left out; write it with `dagpost next --save`")
        return None
    return found


def _shown(path: Path) -> str:
    """Return the path without characters that a terminal would interpret."""
    return printable(path)


LONG_COMPILING = 5.0
"""Seconds of compiling from which on the summary mentions them."""


def summarise(post: Posterior, table: str, assumptions: Assumptions, seed: int, seconds: float) -> dict[str, Any]:
    """Return the content of summary.json."""
    from dagpost.report.content import sign_of_pairs
    from dagpost.report.wide import LISTED, is_wide

    info, most = dict(post.info), post.nodes**2
    if is_wide(post):  # edges.csv and posterior.nc hold the rest
        most = LISTED
        if "edge_errors" in info:
            info["edge_errors"] = []
    signs, pairs = sign_of_pairs(post), post.pair_table().head(most).to_dict("records")
    return {
        "dagpost": __version__,
        "table": table,
        "rows": assumptions.data.observations,
        "names": list(post.names),
        "columns": assumptions.data.column_lines(),
        "model": repr(assumptions.model),
        "prior": repr(assumptions.prior),
        "method": assumptions.method,
        "seed": seed,
        "standardised": assumptions.data.scaling is not None,
        "assumed": dict(post.record.assumptions),
        "graphs": len(post),
        "expected_edges": post.expected_edges,
        "seconds": round(seconds, 3),
        "info": info,
        "pairs": [{**pair, "sign": signs.get((pair["cause"], pair["effect"]))} for pair in pairs],
        "edges": post.edge_table().head(most).to_dict("records"),
        "targets": [] if post.record.targets is None else post.targets().head(most).to_dict("records"),
    }


def summary_text(summary: dict[str, Any], top: int = 12) -> str:
    """Return the summary in a few lines, with the `top` pairs most probably joined."""
    likely = [pair for pair in summary["pairs"] if pair["adjacent"] >= 0.5]
    lines = [
        f"{summary['graphs']} graphs on {len(summary['names'])} nodes by {summary['method']} "
        f"in {summary['seconds']:.1f} s; {summary['expected_edges']:.1f} edges expected, "
        f"{len(likely)} pair{'s' * (len(likely) != 1)} more probably joined than not"
    ]
    lines += [f"  {pair['adjacent']:.3f}  {pair_text(pair)}" for pair in likely[:top]]
    if len(likely) > top:
        lines.append(f"  … and {len(likely) - top} more")
    lines += target_lines(summary)
    if "verdict" in summary["info"]:
        lines.append(str(summary["info"]["verdict"]))
    if summary["info"].get("model_fit"):
        lines.append(str(summary["info"]["model_fit"]))
    compiling = summary["info"].get("compiling", 0.0)
    if compiling >= LONG_COMPILING:
        lines.append(f"Compiling took {compiling:.0f} s of this; time limits exclude it, and later runs compile less.")
    return "\n".join(lines)


LIKELY_TARGET = 0.5
"""Least probability of a target that is listed."""


def target_lines(summary: dict[str, Any]) -> list[str]:
    """Return a line for each condition with the nodes that it more probably changes than not."""
    nodes: dict[str, list[str]] = {}
    for entry in summary.get("targets") or ():
        likely = nodes.setdefault(entry["condition"], [])
        if entry["probability"] >= LIKELY_TARGET:
            likely.append(f"{printable(entry['node'])} ({entry['probability']:.3f})")
    order = (summary["info"].get("targets") or {}).get("conditions", nodes)
    return [
        f"  condition {printable(label)} changes: {', '.join(nodes.get(label) or ['nothing more probably than not'])}"
        for label in order
    ]


def assumptions_text(assumptions: Assumptions) -> str:
    """Return the defaults in use, and the options that change them."""
    other = {"model": "--set model.equivalent_sample_size=10"} if assumptions.model.categorical else {}
    if assumptions.model.latent:
        other = {"units": "--model bge | linear | …", "model": "--kinds NAME=KIND, --model bge | …", "method": "none"}
    lines = [f"  {topic:8} {text}  [{(OVERRIDES | other)[topic]}]" for topic, text in assumptions.messages.items()]
    return "\n".join(["assumptions, with the options that change them in brackets:", *lines])
