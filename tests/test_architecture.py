"""The house has one direction of flow: each part imports only from the parts above it."""

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.mutants import MUTANTS

SOURCE = Path(__file__).parents[1] / "src" / "dagpost"

ORDER = [
    "errors", "typing", "_util", "graphs", "data", "priors", "models", "simulation", "posterior", "inference",
    "metrics", "comparison", "design", "plot", "report", "studies", "interfaces", "__main__",
]  # fmt: skip


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported_rooms(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import in line {node.lineno}"
            modules = [node.module or ""]
            if node.module == "dagpost":
                modules = [f"dagpost.{alias.name}" for alias in node.names if alias.name != "__version__"]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            if module == "dagpost" or module.startswith("dagpost."):
                yield node.lineno, [*module.split("."), ""][1]


FILES = sorted(p for p in SOURCE.rglob("*.py") if p != SOURCE / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_upwards_only(path):
    own = ORDER.index(room(path))
    for line, name in imported_rooms(path):
        assert name in ORDER, f"{path}:{line} imports dagpost.{name}, which has no place in the order"
        assert ORDER.index(name) <= own, f"{path}:{line}: {room(path)} must not import {name}"


def test_the_check_sees_a_wrong_import(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "def f():\n    from dagpost.inference.exact.layers import backward_pass\n    import dagpost.metrics\n"
    )
    assert [name for _, name in imported_rooms(wrong)] == ["inference", "metrics"]


def test_import_loads_nothing_heavy():
    code = "import sys, dagpost; print([m for m in ('jax', 'numba', 'pandas', 'numpy', 'scipy') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_every_public_name_exists():
    import dagpost

    assert set(dagpost.__all__) == {"__version__", *dagpost._HOMES, *dagpost._MODULES}
    for name in dagpost.__all__:
        assert getattr(dagpost, name) is not None
    with pytest.raises(AttributeError, match="nonsense"):
        _ = dagpost.nonsense


def test_every_planted_error_has_its_place():
    """`make mutants` takes long; that its replacements still apply is seen at once."""
    for file, right, wrong, tests in MUTANTS:
        assert (SOURCE / file).read_text().count(right) == 1, f"{file}: {right!r}"
        assert right != wrong
        assert all((Path(__file__).parent / test.split("::")[0]).is_file() for test in tests.split())


def test_no_circles_between_files():
    """Imports inside functions and for type checking count too."""
    graph = import_graph()
    order = {module: place for place, module in enumerate(TopologicalSorter(graph).static_order())}
    assert order["dagpost.errors"] < order["dagpost.inference.fit"]


def import_graph() -> dict[str, set[str]]:
    modules = {}
    for path in FILES:
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = path
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        graph[name] = set()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dagpost."):
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    graph[name].add(whole if whole in modules else node.module)
    return graph


def test_the_map_of_the_developer_guide_is_the_tree():
    text = (SOURCE.parents[1] / "docs" / "developer.md").read_text()
    rooms = re.findall(r"^\| `([\w/]+)` \|", text, flags=re.MULTILINE)
    files = {path.name for path in SOURCE.glob("*.py")} - {"__init__.py", "__main__.py"}
    folders = {path.parent for path in SOURCE.rglob("__init__.py")} - {SOURCE, SOURCE / "studies" / "experiments"}
    tree = {name.removesuffix(".py") for name in files} | {f"{folder.relative_to(SOURCE)}/" for folder in folders}
    assert set(rooms) == tree
    top = [room.rstrip("/") for room in rooms if "/" not in room.rstrip("/")]
    assert top == ORDER[:-1]


def test_files_hold_whole_concepts():
    sizes = {path: len(path.read_text().splitlines()) for path in FILES}
    assert max(sizes.values()) <= 400
    small = [path for path, size in sizes.items() if size < 50 and path.name != "__init__.py"]
    assert len(small) <= 12, small
