"""Commands as processes of their own: signals, closed pipes, and what a second run does not compile again."""

import os
import signal
import subprocess
import sys

import pytest

import dagpost as dp
from tests.digests import digest

COMMAND = [sys.executable, "-m", "dagpost"]


@pytest.mark.slow
@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_cleanly(number, code, table, tmp_path):
    slow = ["--model", "mlp", "--method", "dibs", "--particles", "2", "--steps", "2000000"]
    arguments = [*COMMAND, "fit", str(table), *slow, "--out", str(tmp_path / "run")]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "none from an intervention" in line:  # the last line before the work
                break
        process.send_signal(number)
        rest = process.stderr.read()
    assert process.returncode == code, rest
    assert "stopped" in rest and "Traceback" not in rest
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_closed_pipe_is_no_fault(table, tmp_path, dagpost):
    dagpost("exact", table)
    show = " ".join([*COMMAND, "show", "run", "--json", "--min-probability", "0"])
    done = subprocess.run(["bash", "-c", f"{show} | true; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True)
    assert done.stdout == "0\n" and done.stderr == ""


def test_completion_script():
    typed = {"_DAGPOST_COMPLETE": "complete_bash", "COMP_WORDS": "dagpost fit --mo", "COMP_CWORD": "2"}
    done = subprocess.run(COMMAND, capture_output=True, text=True, env=os.environ | typed)
    assert "--model" in done.stdout


PROBE = """
import sys, jax
from jax._src import compiler
compiled = []
real = compiler.backend_compile_and_load
def counting(backend, module, *rest, **options):
    compiled.append(str(module.operation.attributes["sym_name"]).strip('"'))
    return real(backend, module, *rest, **options)
compiler.backend_compile_and_load = counting
from dagpost.interfaces.cli import main
code = main(sys.argv[1:])
print(*compiled)
sys.exit(code)
"""
"""Counts what XLA compiles: what comes out of the cache does not pass here."""


@pytest.mark.long
@pytest.mark.parametrize("method", ["dibs", "auto"])
@pytest.mark.parametrize("model", ["bge", "linear", "mlp"])
def test_a_second_run_compiles_nothing(model, method, table, tmp_path):
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    quick = ["--quiet", "--model", model, "--method", method, "--steps", "20", "--particles", "3"]

    def run(out):
        arguments = [sys.executable, "-c", PROBE, "fit", str(table), *quick, "--out", str(tmp_path / out)]
        done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert len(run("one")) > 5
    kept = sorted(p.name for p in (tmp_path / "cache").rglob("*-cache"))
    assert run("two") == []
    assert sorted(p.name for p in (tmp_path / "cache").rglob("*-cache")) == kept
    one, two = (dp.load(tmp_path / out / "posterior.nc") for out in ("one", "two"))
    assert digest(one) == digest(two)


@pytest.mark.slow
def test_an_unwritable_cache_is_tolerated(table, tmp_path):
    (tmp_path / "file").write_text("")
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path / "file"), "HOME": str(tmp_path / "file")}
    arguments = [*COMMAND, "exact", str(table), "--quiet", "--out", str(tmp_path / "run")]
    done = subprocess.run(arguments, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and done.stderr == "" and (tmp_path / "run" / "edges.csv").exists()
