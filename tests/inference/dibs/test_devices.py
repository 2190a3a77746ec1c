"""DiBS over several devices and several processes gives what it gives on one device, up to rounding."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dagpost as dp
from dagpost._util.clock import Clock
from dagpost.errors import InputError
from dagpost.inference.dibs import devices

ROOT = Path(__file__).parents[3]


def start(out: Path, count: int, *arguments: object) -> subprocess.Popen:
    """A process with so many virtual devices."""
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={count}"
    command = [sys.executable, "-m", "tests.inference.dibs.devices_script", str(out), *map(str, arguments)]
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True)


def finished(*processes: subprocess.Popen) -> None:
    for process in processes:
        _, errors = process.communicate(timeout=900)
        assert process.returncode == 0, errors[-3000:]


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    out = tmp_path_factory.mktemp("one") / "one.npz"
    finished(start(out, 1))
    return np.load(out)


def compare(found, expected, share):
    names = [name for name in expected.files if not name.endswith("share")]
    assert len(names) > 10
    for name in names:
        # a dozen steps of float32: differences of sums in another order, amplified a little
        np.testing.assert_allclose(found[name], expected[name], atol=2e-3, err_msg=name)
    for name in expected.files:
        if name.endswith("share"):
            assert found[name] == pytest.approx(share), name
            assert expected[name] == 1


@pytest.mark.slow
def test_four_devices(one, tmp_path):
    finished(start(tmp_path / "four.npz", 4))
    compare(np.load(tmp_path / "four.npz"), one, 1 / 4)


@pytest.mark.long
def test_two_processes_with_two_devices_each(one, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    finished(*(start(tmp_path / f"{number}.npz", 2, address, 2, number) for number in (0, 1)))
    for number in (0, 1):  # both have everything
        compare(np.load(tmp_path / f"{number}.npz"), one, 1 / 4)


def test_refusals(monkeypatch):
    sim = dp.simulate(nodes=3, observations=20, seed=0)
    with pytest.raises(InputError, match=r"devices=2: JAX sees 1, cpu"):
        dp.fit(sim.train, "mlp", method="dibs", devices=2)
    with pytest.raises(InputError, match=r"devices=0"):
        dp.fit(sim.train, "mlp", method="dibs", devices=0)
    monkeypatch.setattr(devices.jax, "device_count", lambda: 4)
    with pytest.raises(InputError, match=r"30 particles on 4 devices: take a multiple of 4"):
        dp.fit(sim.train, "mlp", method="dibs", devices=4)
    with pytest.raises(InputError, match=r"closed-form families are scored on the CPU .*: leave `devices` out"):
        dp.fit(sim.train, "bge", method="dibs", particles=8, devices=4)
    with pytest.raises(InputError, match=r"an optimiser of your own may couple particles"):
        devices.check_devices(4, 8, on_host=False, elementwise=False)
    monkeypatch.setattr(devices.jax, "process_count", lambda: 2)
    with pytest.raises(InputError, match=r"2 processes, and devices=1: set devices=4"):
        devices.check_devices(1, 8, on_host=False, elementwise=True)
    with pytest.raises(InputError, match=r"devices=2: the processes have 4 devices"):
        devices.check_devices(2, 8, on_host=False, elementwise=True)
    with pytest.raises(InputError, match=r"cannot share a time limit"):
        devices.check_undisturbed(4, devices.NULL_SECTION, Clock(5.0))
