"""Everything the documentation shows runs as written, in a folder that holds nothing but `examples/`."""

import inspect
import json
import re
import shutil
import tomllib
import warnings

import pytest

import dagpost as dp
from dagpost.inference.history import History
from dagpost.interfaces.cli import main
from dagpost.interfaces.cli import options as environment
from tests.documentation import PAGES, ROOT, Block, blocks, commands

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SHELL, CODE = ("sh", "bash", "console"), ("python", "setup")
DATA = ("",)  # shown, not run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as a clean clone has it, and no caches outside it."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(environment, "use_caches", lambda: None)
    if (matplotlib := pytest.importorskip("matplotlib", reason="figures need the report extra")) is not None:
        matplotlib.use("Agg")
    yield tmp_path
    from matplotlib import pyplot

    pyplot.close("all")


def stopped(out: str) -> None:
    """A run into this folder that Ctrl-C ended half-way."""
    seen = History.__call__

    def interrupted(self, snapshot):
        seen(self, snapshot)
        if len(self) + len(self.chains) == 3:
            raise KeyboardInterrupt

    History.__call__ = interrupted
    try:
        arguments = ["--model", "bge", "--precision", "0.02", "--out", out]
        assert main(["fit", "examples/tables/cells.csv", *arguments]) != 0
    finally:
        History.__call__ = seen


def run(*words, capsys=None, piped=False):
    """One command of a shell block."""
    program, *rest = map(str, words)
    if program == "dagpost":
        code = main(rest)
        said = capsys.readouterr() if capsys else None
        assert code == 0, f"dagpost {' '.join(rest)}: exit code {code}\n{said and said.err}"
        if piped:
            assert said is not None and json.loads(said.out)
    elif program == "make":
        assert rest and set(rest) <= TARGETS, f"make {rest}: known are {sorted(TARGETS)}"
    elif program == "pip":
        assert rest[0] == "install"
        for extras in re.findall(r"\[(.*?)\]", " ".join(rest)):
            assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    elif program == "python":
        assert (ROOT / rest[0]).is_file(), f"no such program: {rest[0]}"
    elif program == "git":
        assert rest[0] == "clone"
    else:
        assert program == "cd", f"nobody checks `{program}`"


def perform(block: Block, page, namespace, capsys) -> None:
    if block.language in CODE:
        code = compile("\n" * block.line + block.code, str(page), "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what a person would be told, and go on
            exec(code, namespace)
    elif block.language in SHELL:
        for command in commands(block.code):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                run(*command.words, capsys=capsys, piped=command.piped)
    elif block.language == "toml":
        tomllib.loads(block.code)
    else:
        assert block.language in DATA, f"{page.name}, line {block.line}: who runs {block.language!r}?"


def named(page):
    return str(page.relative_to(ROOT))


@pytest.mark.slow
@pytest.mark.parametrize("page", [p for p in PAGES if "```" in p.read_text()], ids=named)
def test_the_blocks_of_a_page_run(page, folder, capsys):
    namespace = {"__name__": "__page__", "run": run, "stopped": stopped}
    for block in blocks(page.read_text(encoding="utf-8")):
        if not block.skipped:
            perform(block, page, namespace, capsys)


def test_the_collector_sees_blocks_comments_and_pipes():
    shown = "a\n```python\nx = 1\n```\n<!-- test: skip because it is slow -->\n```sh\nmake x\n```\n"
    python, shell, setup = blocks(shown + "<!-- test: setup\ny = 2\n-->\n")
    assert python == Block("python", "x = 1\n", 2) and setup.code == "y = 2\n"
    assert shell.skipped and not python.skipped
    with pytest.raises(AssertionError, match="say why"):
        blocks("<!-- test: skip -->\n```sh\n```\n")
    first, second = commands("dagpost show a --json | jq '.[]'  # why\n# only this\nmake \\\n  test")
    assert first.words == ["dagpost", "show", "a", "--json"] and first.piped
    assert second.words == ["make", "test"] and not second.piped
    for wrong in (["make", "nonsense"], ["pip", "install", "dagpost[nonsense]"], ["rm", "-r"], ["python", "no.py"]):
        with pytest.raises(AssertionError):
            run(*wrong)


def test_every_public_name_is_in_the_reference():
    text = "\n".join(p.read_text() for p in (ROOT / "docs" / "reference").glob("*.md"))
    there = set(re.findall(r"^::: dagpost(?:\.\w+)*\.(\w+)$", text, re.MULTILINE))
    missing = {*dp.__all__, *dp.plot.__all__} - there - {"__version__"}
    assert not missing, f"not in docs/reference: {sorted(missing)}"


MAIN = [
    dp.fit, dp.exact, dp.load, dp.simulate, dp.sachs, dp.sachs_graph, dp.read_table, dp.read_conditions, dp.Knowledge,
    dp.Dataset, dp.History, dp.StructureLearner, dp.BGe, dp.LinearGaussian, dp.ErdosRenyi, dp.Posterior.edge_table,
    dp.Posterior.effect, dp.Posterior.weighted, dp.Posterior.edge_intervals, dp.Posterior.consensus_graph,
    dp.Posterior.parents_of, dp.Posterior.expectation, dp.Posterior.predict, dp.plot.graph, dp.metrics.expected_shd,
    dp.metrics.auroc,
]  # fmt: skip


@pytest.mark.parametrize("thing", MAIN, ids=lambda t: t.__qualname__)
def test_main_docstrings_have_examples(thing):
    assert ">>>" in (inspect.getdoc(thing) or ""), f"{thing.__qualname__} shows no example"


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{named(page)}: no {target}"
