"""Ctrl-C and SIGTERM: noted, acted on at the next boundary, and handlers as they were afterwards."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from dagpost.inference.checkpoints import Checkpoint
from dagpost.inference.checkpoints.recorder import SIGNALS, catch_signals

ENDLESS = """
import signal
import sys
import dagpost as dp
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and so would this
from dagpost.inference.checkpoints import Interrupted
sim = dp.simulate("bge", nodes=5, observations=50, seed=1, interventional_sets=0)
try:
    dp.fit(sim.train, "bge", method="mc3", particles=10**6, thin=2000, burn_in=0,
           checkpoint=sys.argv[1], checkpoint_every=0.05)
except Interrupted as stop:
    print(stop, file=sys.stderr)
    sys.exit(stop.exit_code)
"""


def kept_graphs(folder):
    """How many graphs the saved state holds."""
    found = Checkpoint(folder).load() if Checkpoint(folder).exists else None
    return 0 if found is None else len(found.arrays.get("chain/graphs", ()))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_ends_the_run(number, code, tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ENDLESS, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    try:
        # however long compiling takes: until the chain has kept a graph and saved it, or the process has died
        while process.poll() is None and not kept_graphs(tmp_path):
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate()
    finally:
        process.kill()
    assert process.returncode == code, said
    assert "resume=True to continue" in said and "Traceback" not in said
    found = Checkpoint(tmp_path).load()
    assert found is not None and len(found.arrays["chain/graphs"]) > 0


def test_handlers_are_restored():
    before = [signal.getsignal(s) for s in SIGNALS]
    with catch_signals() as caught:
        assert [signal.getsignal(s) for s in SIGNALS] != before
        os.kill(os.getpid(), signal.SIGTERM)
        assert caught.number == signal.SIGTERM
        assert [signal.getsignal(s) for s in SIGNALS] == before  # a second signal ends the process
    with pytest.raises(ZeroDivisionError), catch_signals():
        raise ZeroDivisionError
    assert [signal.getsignal(s) for s in SIGNALS] == before


def test_ignored_signals_stay_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with catch_signals():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_handlers_alone():
    before = [signal.getsignal(s) for s in SIGNALS]
    seen = []

    def work():
        with catch_signals():
            seen.append([signal.getsignal(s) for s in SIGNALS])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
