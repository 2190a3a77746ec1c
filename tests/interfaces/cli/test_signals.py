"""A signal ends a command wherever it falls, without a traceback."""

import signal
import time

import pytest

from dagpost.interfaces.cli.app import INTERRUPTED, TERMINATED, _signals


class Deaf:
    """What comes while this is being collected, Python drops."""

    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)
        time.sleep(0.001)  # a place for the handler to run


@pytest.mark.parametrize("number, code", [(signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)])
def test_a_signal_that_python_drops_comes_again(number, code, capsys):
    codes: list[int] = []
    deaf = Deaf(number)
    with pytest.raises(KeyboardInterrupt), _signals(codes):
        del deaf
        time.sleep(10)
    assert codes == [code, code]
    assert capsys.readouterr().err == ""


def test_other_dropped_exceptions_are_told(monkeypatch):
    told = []
    monkeypatch.setattr("sys.unraisablehook", told.append)

    class Wrong:
        def __del__(self):
            raise ValueError("wrong")

    wrong = Wrong()
    with _signals([]):
        del wrong
    assert [unraisable.exc_type for unraisable in told] == [ValueError]
