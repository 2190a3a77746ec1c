"""Compiled code is cached as long as it is right, and compiling is announced."""

import ast
import importlib
import types

import numba

from dagpost._util import compiled
from dagpost._util.compiled import PACKAGE, CacheLocator, _without_docstrings, announced, compiled_files

CODE = '''
"""What it is about."""

@njit
def twice(x):
    """Return 2 x."""
    return 2 * x  # a comment
'''


def test_docstrings_comments_and_lines_do_not_count():
    edited = CODE.replace("Return 2 x.", "Return\n\n    twice as much.").replace("# a comment", "")
    assert _without_docstrings(edited) == _without_docstrings(CODE)
    assert _without_docstrings(CODE.replace("2 * x", "3 * x")) != _without_docstrings(CODE)


def test_functions_of_this_package_are_cached_by_all_compiled_files():
    file = str(PACKAGE / "graphs" / "acyclicity.py")
    locator = CacheLocator.from_function(lambda: None, file)
    assert locator is not None and locator.get_source_stamp() == compiled.source_stamp()
    assert locator.get_disambiguator() == "graphs.acyclicity"
    assert CacheLocator.from_function(lambda: None, __file__) is None
    assert not numba.config.CACHE_LOCATOR_CLASSES  # other packages are left alone


def modules():
    for path in compiled_files():
        if path.name != "compiled.py":
            name = ".".join(("dagpost", *path.relative_to(PACKAGE).with_suffix("").parts))
            yield path, importlib.import_module(name)


def test_what_compiled_functions_take_from_elsewhere_is_compiled_too():
    """Constants are frozen into compiled code: a file that defines one must count for the cache."""
    counted = {path.resolve() for path in compiled_files()}
    checked = 0
    for path, module in modules():
        origin = {
            alias.asname or alias.name: node.module
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dagpost")
            for alias in node.names
        }
        for value in vars(module).values():
            function = getattr(value, "py_func", None)
            if function is None or function.__module__ != module.__name__:
                continue
            for name in function.__code__.co_names:
                used = vars(module).get(name)
                if name in origin and not isinstance(used, type | types.ModuleType | types.FunctionType):
                    checked += 1
                    assert PACKAGE.parent.joinpath(*origin[name].split(".")).with_suffix(".py") in counted, (path, name)
    assert checked > 10


def test_jitted_is_announced_once(capsys):
    @numba.njit  # not cached
    def add(a, b):
        return a + b

    with announced(7, show=True):
        assert add(1, 2) == 3 and add(1.0, 2.0) == 3
    assert capsys.readouterr().err == "compiling (first run only), about 7 s; later runs start at once\n"
    with announced(7, show=True):
        assert add(2, 2) == 4
    with announced(7, show=False):
        assert add(1j, 1) == 1 + 1j
    assert capsys.readouterr().err == ""
