"""Build a wheel, install it with its dependencies into a new virtual environment, and use it from there.

    python tests/wheel.py

Versions are those of constraints.txt. Where the package index cannot be reached, the wheel is installed into an empty
folder without dependencies, which then come from the environment that runs this: a missing one goes unseen, and the
last line says so. Without hatchling in that environment, pip fetches it to build.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = """
import dagpost as dp, pathlib, sys
assert pathlib.Path(dp.__file__).is_relative_to(sys.argv[1]), dp.__file__
assert dp.sachs(condition="anti-CD3/CD28").observations == 853  # the bundled table is there
from dagpost.report.page import page_script, resource
assert page_script() and resource("html/page.html") and resource("vendor/cytoscape.min.js")
print(dp.__version__)
"""


def call(*arguments: str | Path, **options) -> str:
    done = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, **options)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


def main() -> None:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    offline = ["--no-build-isolation", "--no-index"] if find_spec("hatchling") else []
    with tempfile.TemporaryDirectory() as folder:
        wheels, target, empty = (Path(folder) / name for name in ("wheels", "target", "empty"))
        empty.mkdir()
        call(*pip, "wheel", ROOT, "--no-deps", "--wheel-dir", wheels, *offline)
        (wheel,) = wheels.glob("dagpost-*.whl")
        python, how = new_environment(target, wheel), "in a new environment with its dependencies"
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if python is None:
            python, how = Path(sys.executable), "without its dependencies: the package index cannot be reached"
            shutil.rmtree(target, ignore_errors=True)
            call(*pip, "install", "--no-deps", "--no-index", "--target", target, wheel)
            environment["PYTHONPATH"] = str(target)
        within = {"cwd": empty, "env": environment}
        version = call(python, "-c", CHECK, target, **within)
        command = target / "bin" / "dagpost"
        told = call(command, "--version", **within)
        assert told == f"dagpost {version}", told
        assert call(python, "-m", "dagpost", "--version", **within) == told
        # a is a cause of b, and the third column of neither
        rows = ["a,b,c"] + [f"{x},{2 * x + 0.1 * (7 * x % 5)},{(3 * x) % 11}" for x in range(40)]
        (empty / "table.csv").write_text("\n".join(rows) + "\n")
        call(command, "exact", "table.csv", "--out", "run", "--quiet", **within)
        pairs = json.loads(call(command, "show", "run", "--json", **within))
        assert {pairs[0]["cause"], pairs[0]["effect"]} == {"a", "b"} and pairs[0]["adjacent"] > 0.99, pairs
        print(f"{wheel.name}: {told}, {how}")


def new_environment(target: Path, wheel: Path) -> Path | None:
    """Return the interpreter of a virtual environment with the wheel; None where pip cannot reach the index."""
    call(sys.executable, "-m", "venv", target)
    python = target / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--retries", "1", "--timeout", "10"]
    try:  # one small package, without its dependencies
        call(*pip, "download", "--no-deps", "--dest", target / "reached", "opt_einsum", "-c", ROOT / "constraints.txt")
    except SystemExit as error:
        print(f"no new environment: {str(error).strip().splitlines()[-1]}")
        return None
    call(*pip, "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    return python


if __name__ == "__main__":
    main()
