"""Every example runs as a person would run it, and prints what it promises."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
PROMISED = {
    "own_model.py": ["held-out log likelihood"],
    "four_node_table.py": ["x1 -> x3, x3 <- x2", "G2*"],
    "figures.py": ["sachs.png: Edges", "evolution.png"],
    "first_session.py": ["consensus:", "bit for bit: True"],
    "sachs_demo.py": ["DiBS alone", "largest difference from the exact probability", "does the model fit?"],
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "path",
    [pytest.param(p, marks=pytest.mark.long) if p.name == "figures.py" else p for p in EXAMPLES],  # as docs/figures.md
    ids=lambda p: p.name,
)
def test_example_runs(path):
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for text in PROMISED[path.name]:
        assert text in done.stdout


SOURCE = Path(__file__).parents[1] / "src"
DOCUMENTED = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text()
]


SLOW = (
    "dagpost.posterior.posterior",
    "dagpost.posterior.sample",
    "dagpost.inference.dibs.inference",
    "dagpost.models.copula",
    "dagpost.models.gaussian_process",
    "dagpost.inference.bootstrap.pc",
)
"""Modules with examples that take seconds; what they show is tested elsewhere."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in DOCUMENTED])
def test_docstring_examples(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
