"""Where tasks run: in this process, in processes of this machine, or on a Dask cluster; the latter two by joblib."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from dagpost.errors import InputError
from dagpost.studies.perform import perform
from dagpost.studies.task import Task

Results = Iterator[tuple[Task, dict[str, Any]]]
Executor = Callable[[Sequence[Task]], Results]

ONE_THREAD = {"NPROC": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
XLA_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false"


def use_one_thread() -> None:
    """One core for each task, here and in the processes to come: tasks run side by side, and a task's result is the
    same wherever it runs. For processes in which JAX has not computed yet."""
    for name, value in ONE_THREAD.items():
        os.environ.setdefault(name, value)
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {XLA_ONE_THREAD}".strip()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # several processes may share one GPU


def share_settings() -> None:
    """Let processes to come keep compiled code where this one does, and compute on the same device."""
    import jax

    names = {
        "jax_compilation_cache_dir": "JAX_COMPILATION_CACHE_DIR",
        "jax_persistent_cache_min_compile_time_secs": "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
        "jax_persistent_cache_min_entry_size_bytes": "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES",
        "jax_platforms": "JAX_PLATFORMS",
    }
    for setting, variable in names.items():
        value = getattr(jax.config, setting, None)
        if value is not None:
            os.environ.setdefault(variable, str(value))


def here(tasks: Sequence[Task]) -> Results:
    """One after the other in this process."""
    for task in tasks:
        yield task, perform(task)


def _named(task: Task) -> tuple[Task, dict[str, Any]]:
    return task, perform(task)


def _parallel(tasks: Sequence[Task], **options: Any) -> Results:
    """Results as they come; whoever stops listening stops the work."""
    import joblib

    settings: dict[str, Any] = {"return_as": "generator_unordered", "batch_size": 1, **options}
    results: Any = joblib.Parallel(**settings)(joblib.delayed(_named)(task) for task in tasks)
    yield from results


def processes(workers: int) -> Executor:
    """That many processes on this machine; one is this process itself, as it is where joblib is not installed."""

    def run(tasks: Sequence[Task]) -> Results:
        try:
            import joblib  # noqa: F401
        except ImportError:
            return here(tasks)
        if workers == 1 or len(tasks) == 1:
            return here(tasks)
        share_settings()
        return _parallel(tasks, n_jobs=min(workers, len(tasks)), pre_dispatch="2*n_jobs")

    return run


def cluster(address: str, patience: float = 10.0) -> Executor:
    """The workers of a Dask scheduler, as many as there are; dagpost must be installed there, in the same version.

    `patience` is how many seconds the scheduler has to answer."""
    try:
        import joblib
        from distributed import Client
    except ImportError as error:
        raise InputError("--cluster needs Dask: pip install 'dagpost[cluster]'") from error

    def run(tasks: Sequence[Task]) -> Results:
        try:
            client = Client(address, timeout=patience, set_as_default=False)
        except (OSError, ValueError, TimeoutError):
            raise InputError(
                f"--cluster {address}: no Dask scheduler answers there: start one with `dask scheduler`, "
                "and workers with `dask worker ADDRESS`"
            ) from None
        with client, joblib.parallel_config(backend="dask", client=client, wait_for_workers_timeout=60):
            yield from _parallel(tasks, n_jobs=-1)

    return run
