"""The `dagpost` program: its commands, and the exit code of each outcome."""

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
from dagpost.interfaces.cli import compare, experiments, fit, report, simulate, study
from dagpost.interfaces.cli.output import emit, plain_warnings, print_error, say

BAD_INPUT, INTERRUPTED, TERMINATED = 2, 130, 143

UsageError: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Base class of typer's errors about options; typer does not export it under a fixed name."""

app = typer.Typer(name="dagpost", rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("fit", epilog=fit.FIT_EXAMPLES)(fit.fit)
app.command("exact", epilog=fit.EXACT_EXAMPLES)(fit.exact)
app.command("compare", epilog=compare.COMPARE_EXAMPLES)(compare.compare)
app.command("show", epilog=report.SHOW_EXAMPLES)(report.show)
app.command("next", epilog=experiments.NEXT_EXAMPLES)(experiments.next_experiment)
app.command("report", epilog=report.REPORT_EXAMPLES)(report.report)
app.command("simulate", epilog=simulate.SIMULATE_EXAMPLES)(simulate.simulate)
app.command("study", epilog=study.EXAMPLES)(study.study)
app.command("bench", epilog=simulate.BENCH_EXAMPLES)(simulate.bench)


@app.callback(invoke_without_command=True)
def dagpost(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """From a table of data to a posterior over causal graphs.

    Start with `dagpost fit data.csv`: it prints what it assumes, and how to change that.
    """
    if version:
        emit(f"dagpost {__version__}")
    elif context.invoked_subcommand is None:
        emit(context.get_help())


class Stopped(KeyboardInterrupt):
    """Raised by a signal, to unwind as Python does on Ctrl-C."""


EXIT_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@contextmanager
def _signals(codes: list[int]) -> Iterator[None]:
    """Append the exit code of a signal to `codes`, then raise `Stopped`.

    Compiled code that calls back into Python may replace the exception by its own; the code in the list survives that.
    Python drops exceptions raised in callbacks of the garbage collector: then the signal is sent again shortly after.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number, frame):
        codes.append(EXIT_CODES[signal.Signals(number)])
        raise Stopped

    def on_dropped_exception(unraisable):
        if issubclass(unraisable.exc_type, Stopped):
            timer = threading.Timer(0.05, os.kill, [os.getpid(), codes[-1] - 128])
            timer.daemon = True
            timer.start()
        else:
            previous_hook(unraisable)

    previous_handlers = {number: signal.signal(number, stop) for number in EXIT_CODES}
    previous_hook, sys.unraisablehook = sys.unraisablehook, on_dropped_exception
    try:
        yield
    finally:
        sys.unraisablehook = previous_hook
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        Command and options, without the name of the program; None for those of this process.

    Returns
    -------
    int
        Exit code: 0, 2 for bad input, 130 after Ctrl-C, 143 after SIGTERM.
    """
    codes: list[int] = []
    try:
        with _signals(codes), plain_warnings():
            code = _run(arguments)
    except BaseException:
        if not codes:
            raise
        code = codes[0]
    code = codes[0] if codes else code
    if code in EXIT_CODES.values():
        say("dagpost: stopped", quiet=False)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    """Return the exit code of a command; print errors that the user can act on as one line."""
    try:
        code = typer.main.get_command(app).main(args=arguments, prog_name="dagpost", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except UsageError as error:
        print_error(error.format_message())  # type: ignore[attr-defined]
    except (InputError, RunError) as error:
        print_error(str(error))
    except MemoryError:
        print_error("out of memory: use fewer particles, draws or columns")
    except OSError as error:
        if error.strerror is None:
            raise
        print_error(f"{error.filename or 'output'}: {error.strerror}")
    except SystemExit as end:  # completion scripts, and typer's own reaction to a closed pipe
        if isinstance(end.__context__, BrokenPipeError):
            return 0
        return end.code if isinstance(end.code, int) else 0
    return BAD_INPUT
