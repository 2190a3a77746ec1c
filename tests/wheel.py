"""Build a wheel, install it into an empty folder without its dependencies, and use it from there.

    python tests/wheel.py

Dependencies come from the environment that runs this. Without hatchling in it, pip fetches it to build.
"""

from __future__ import annotations

import os
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
        call(*pip, "install", "--no-deps", "--no-index", "--target", target, wheel)
        environment = {**os.environ, "PYTHONPATH": str(target)}
        version = call(sys.executable, "-c", CHECK, target, cwd=empty, env=environment)
        told = call(target / "bin" / "dagpost", "--version", cwd=empty, env=environment)
        assert told == f"dagpost {version}", told
        assert call(sys.executable, "-m", "dagpost", "--version", cwd=empty, env=environment) == told
        print(f"{wheel.name}: {told}")


if __name__ == "__main__":
    main()
