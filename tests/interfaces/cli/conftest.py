"""One way to run a command inside the test process."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from dagpost.interfaces.cli import main
from dagpost.interfaces.cli import options as environment


class Ended(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def dagpost(capsys, monkeypatch, tmp_path):
    """`dagpost("fit", "table.csv")` in a folder of its own, without caches outside it."""
    monkeypatch.setattr(environment, "use_caches", lambda: None)
    monkeypatch.chdir(tmp_path)

    def run(*arguments) -> Ended:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        return Ended(code, *capsys.readouterr())

    return run


@pytest.fixture
def table(tmp_path):
    """A chain a -> b -> c in a file, and its path."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=200)
    b = 2 * a + rng.normal(size=200)
    frame = pd.DataFrame({"a": a, "b": b, "c": b - rng.normal(size=200)})
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"
