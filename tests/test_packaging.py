"""What a user gets besides the source: a wheel, an image, a citation, a notebook."""

import json
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import dagpost as dp

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("hatchling") is None, reason="hatchling is not installed; `make wheel` fetches it")
def test_the_wheel_works_on_its_own():
    done = subprocess.run([sys.executable, ROOT / "tests" / "wheel.py"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f": dagpost {dp.__version__}, " in done.stdout.splitlines()[-1]


def test_the_image_copies_what_there_is():
    """`make image` builds it where docker runs."""
    text = (ROOT / "Dockerfile").read_text()
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().split() if line.startswith("!")}
    copied = {word for line in re.findall(r"^COPY (.*)$", text, re.MULTILINE) for word in line.split()[:-1]}
    assert copied == kept and all((ROOT / name).exists() for name in copied)
    assert 'ENTRYPOINT ["dagpost"]' in text


def test_the_citation_is_of_this_version():
    text = (ROOT / "CITATION.cff").read_text()
    fields = dict(re.findall(r"^([\w-]+): (.+)$", text, re.MULTILINE))
    assert fields["version"] == dp.__version__ and fields["title"] == "dagpost" and fields["license"] == "MIT"
    assert f'version = "{dp.__version__}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.name)
def test_a_notebook_runs(path, monkeypatch, capsys):
    """Cell by cell, and what the last line of a cell shows has a picture in HTML where it is one of our results."""
    monkeypatch.chdir(path.parent)
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4 and all(cell.get("outputs", []) == [] for cell in notebook["cells"])
    if find_spec("nbclient") and find_spec("nbformat") and find_spec("ipykernel"):
        import nbclient  # pyright: ignore[reportMissingImports]
        import nbformat  # pyright: ignore[reportMissingImports]

        read = nbformat.read(path, as_version=4)
        nbclient.NotebookClient(read, timeout=300, kernel_name="python3").execute()
        shown = [
            o.data["text/html"] for c in read.cells for o in c.get("outputs", []) if "text/html" in o.get("data", {})
        ]
        assert len(shown) == 3
        return
    scope, shown = {}, []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            code = "".join(cell["source"])
            exec(compile(code, str(path), "exec"), scope)
            last = code.splitlines()[-1]
            if last.isidentifier() or last.startswith("post.effect("):
                shown.append(getattr(eval(last, scope), "_repr_html_", lambda: None)())
    assert sum(html is not None and "<table" in html for html in shown) == 3
    assert "graph [" in capsys.readouterr().out
