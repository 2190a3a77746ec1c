"""Descriptions are the same in every process and tell runs apart."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import dagpost as dp
from dagpost._util.environment import describe, differences, versions


@dataclass(frozen=True)
class Own:
    size: int = 3
    scale: float = float("nan")


def test_equal_things_are_described_alike():
    for make in (dp.BGe, dp.ErdosRenyi, Own, lambda: dp.BGe(scale_matrix=np.eye(3)), lambda: {"a": (1, [2.0, None])}):
        assert describe(make()) == describe(make())
        assert list(differences(describe(make()), describe(make()))) == []


@pytest.mark.parametrize(
    ("one", "two", "message"),
    [
        (dp.LinearGaussian(), dp.LinearGaussian(0.2), "m.noise_variance was 0.1, is 0.2"),
        (dp.ErdosRenyi(), dp.Uniform(), "m.kind was dagpost.priors.in_degree.ErdosRenyi, is"),
        (dp.BGe(scale_matrix=np.eye(3)), dp.BGe(scale_matrix=2 * np.eye(3)), "m.scale_matrix.content was"),
        (np.zeros((2, 3)), np.zeros((4, 3)), r"m.shape was \[2, 3\], is \[4, 3\]"),
        ({"a": 1}, {"a": 1, "b": 2}, "m.b was not there, is 2"),
        (np.sin, np.cos, "sin"),
    ],
)
def test_differences_are_named(one, two, message):
    import re

    found = "; ".join(differences({"m": describe(one)}, {"m": describe(two)}))
    assert re.search(message, found)


@pytest.mark.slow
def test_another_process_says_the_same():
    code = (
        "import json, numpy as np, dagpost as dp\n"
        "from dagpost._util.environment import describe, versions\n"
        "from dagpost.inference.dibs import default_settings\n"
        "print(json.dumps([versions(), describe([dp.BGe(), dp.MlpGaussian(), default_settings(dp.BGe(), 5, 50)])]))"
    )
    outputs = {subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout for _ in range(2)}
    assert len(outputs) == 1


def test_code_of_ones_own_counts():
    assert "source" in describe(Own()) and "source" not in describe(dp.BGe())
    assert versions()["dagpost"] == dp.__version__
