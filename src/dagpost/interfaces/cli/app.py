"""The commands in one program, and how each way of ending becomes an exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated

import typer

from dagpost import __version__
from dagpost.errors import InputError, RunError
from dagpost.interfaces.cli import fit, report, simulate, study
from dagpost.interfaces.cli.messages import complain, emit, plain_warnings, say

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143

UsageFault: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""The base of typer's complaints about options, wherever typer keeps it."""

app = typer.Typer(name="dagpost", rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("fit", epilog=fit.FIT_EXAMPLES)(fit.fit)
app.command("exact", epilog=fit.EXACT_EXAMPLES)(fit.exact)
app.command("show", epilog=report.SHOW_EXAMPLES)(report.show)
app.command("report", epilog=report.REPORT_EXAMPLES)(report.report)
app.command("simulate", epilog=simulate.SIMULATE_EXAMPLES)(simulate.simulate)
app.command("study", epilog=study.EXAMPLES)(study.study)
app.command("bench", epilog=simulate.BENCH_EXAMPLES)(simulate.bench)


@app.callback(invoke_without_command=True)
def dagpost(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """From a table of data to a posterior over causal graphs.

    Start with `dagpost fit data.csv`: it says what it assumes, and how to change that.
    """
    if version:
        emit(f"dagpost {__version__}")
    elif context.invoked_subcommand is None:
        emit(context.get_help())


class Stopped(KeyboardInterrupt):
    """A signal came: unwind, as Python does on Ctrl-C."""


ENDINGS = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@contextmanager
def _signals(codes: list[int]) -> Iterator[None]:
    """Note the exit code of a signal, then unwind. Compiled code that calls back may wrap the exception in its own;
    the note survives that. Where nothing can be unwound (a callback of the garbage collector) Python drops the
    exception: then the signal comes once more, a moment later."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number, frame):
        codes.append(ENDINGS[signal.Signals(number)])
        raise Stopped

    def dropped(unraisable):
        if issubclass(unraisable.exc_type, Stopped):
            again = threading.Timer(0.05, os.kill, [os.getpid(), codes[-1] - 128])
            again.daemon = True
            again.start()
        else:
            told_before(unraisable)

    before = {number: signal.signal(number, stop) for number in ENDINGS}
    told_before, sys.unraisablehook = sys.unraisablehook, dropped
    try:
        yield
    finally:
        sys.unraisablehook = told_before
        for number, handler in before.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM."""
    codes: list[int] = []
    try:
        with _signals(codes), plain_warnings():
            code = _run(arguments)
    except BaseException:
        if not codes:
            raise
        code = codes[0]
    code = codes[0] if codes else code
    if code in ENDINGS.values():
        say("dagpost: stopped", quiet=False)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="dagpost", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except UsageFault as fault:
        complain(fault.format_message())  # type: ignore[attr-defined]
    except (InputError, RunError) as fault:
        complain(str(fault))
    except MemoryError:
        complain("out of memory: use fewer particles, draws or columns")
    except OSError as fault:
        if fault.strerror is None:
            raise
        complain(f"{fault.filename or 'output'}: {fault.strerror}")
    except SystemExit as ending:  # completion scripts, and typer's own answer to a closed pipe
        if isinstance(ending.__context__, BrokenPipeError):
            return 0
        return ending.code if isinstance(ending.code, int) else 0
    return BAD_INPUT
