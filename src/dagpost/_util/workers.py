"""Work in other processes: on this machine, or on a Dask cluster.

`Workers.results` performs independent tasks and yields each result as it becomes available. A task whose worker is lost
(killed, out of memory, its machine gone) is performed again by another. Tasks are functions of their argument alone, so
results do not depend on the number of workers, nor on which of them came or went. `use_workers` provides workers for a
run; what can make use of them asks `current_workers()`.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from dagpost.errors import InputError, RunError, whole_number

POLL = 0.2
"""Seconds between checks whether to stop."""
GRACE = 3.0
"""Seconds that running tasks may take to end after the run is stopped; their results are lost after that."""
LOSSES = 10
"""How many times in a row workers may be lost without a result in between."""
IDLE = 300
"""Seconds without work after which a process of this machine ends; a new one starts when needed."""


class Workers(ABC):
    """Processes that perform tasks."""

    capacity: int | None = None
    """Most tasks handed out at a time; None for all."""

    @abstractmethod
    def executor(self) -> Executor:
        """Return what runs tasks, started if necessary."""

    @abstractmethod
    def lost(self, error: BaseException) -> bool:
        """Return whether the error means that a worker was lost, not that its task failed."""

    @abstractmethod
    def recover(self, executor: Executor) -> None:
        """Prepare for further tasks after a worker of this executor was lost."""

    def _loss(self, error: BaseException, executor: Executor) -> BaseException:
        """Return the error if it means that a worker was lost, and recover; raise it otherwise."""
        if "pickle" in str(error).lower() or isinstance(error, ModuleNotFoundError):
            raise InputError(
                f"model or prior cannot be sent to other processes ({error}): define their classes in a module that "
                "the workers can import, without functions and open files in them, or leave workers out"
            ) from error
        if not self.lost(error):
            raise error
        self.recover(executor)
        return error

    @abstractmethod
    def close(self) -> None:
        """End the processes, or the connection to them."""

    def results(
        self,
        function: Callable[[Any], Any],
        items: Iterable[Any],
        then: Callable[[int, Any], Any] = lambda index, result: None,
        stopping: Callable[[], bool] = lambda: False,
    ) -> Iterator[tuple[int, Any]]:
        """Call a function for every item, and yield the index of the item with the result, in any order.

        Parameters
        ----------
        function
            Function of a module, so that other processes can import it.
        items
            Arguments, one for each call.
        then
            Called with index and result; what it returns is a further item with the same index, None for none.
        stopping
            Whether to hand out no more items; results of the running ones are yielded if they come soon.
        """
        todo = deque(enumerate(items))
        running: dict[Future, tuple[int, Any, Executor]] = {}
        stopped_at, losses = None, 0
        try:
            while todo or running:
                if stopped_at is None and stopping():
                    stopped_at = time.monotonic()
                if stopped_at is not None:
                    todo.clear()
                    if time.monotonic() > stopped_at + GRACE:
                        return
                loss = None
                while todo and (self.capacity is None or len(running) < self.capacity):
                    executor = self.executor()
                    try:
                        future = executor.submit(_perform, function, todo[0][1], _version())
                    except Exception as error:
                        loss = self._loss(error, executor)
                        break
                    running[future] = (*todo.popleft(), executor)
                for future in wait(running, timeout=POLL, return_when=FIRST_COMPLETED).done:
                    index, item, executor = running.pop(future)
                    try:
                        result = future.result()
                    except (Exception, CancelledError) as error:
                        loss = self._loss(error, executor)
                        todo.append((index, item))
                        continue
                    losses = 0
                    further = then(index, result)
                    if further is not None:
                        todo.append((index, further))
                    yield index, result
                losses += loss is not None
                if losses > LOSSES:
                    raise RunError(
                        f"workers were lost {losses} times in a row, the last with {type(loss).__name__}: "
                        "look for their messages, and whether their memory suffices"
                    ) from loss
        finally:
            for future in running:
                future.cancel()


def _version() -> str:
    return import_module(__name__.split(".")[0]).__version__


def _perform(function: Callable[[Any], Any], item: Any, version: str) -> Any:
    """Return the result of one task; raise if this worker has another version, whose results may differ."""
    if version != _version():
        raise RunError(f"a worker has dagpost {_version()}, and the run {version}: install the same version everywhere")
    return function(item)


# ---- processes of this machine


def child_settings() -> dict[str, str]:
    """Return environment variables that let child processes use the compilation cache and the device of this one."""
    import jax

    names = {
        "jax_compilation_cache_dir": "JAX_COMPILATION_CACHE_DIR",
        "jax_persistent_cache_min_compile_time_secs": "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS",
        "jax_persistent_cache_min_entry_size_bytes": "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES",
        "jax_platforms": "JAX_PLATFORMS",
        "jax_enable_x64": "JAX_ENABLE_X64",
    }
    settings = {variable: getattr(jax.config, setting, None) for setting, variable in names.items()}
    shared = {name: os.environ.get(name, str(value)) for name, value in settings.items() if value is not None}
    return {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", **shared}  # several processes may share one GPU


def _prepare_child(parent: int) -> None:
    """Let the parent decide about Ctrl-C, which the terminal sends to all processes, and end with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class LocalWorkers(Workers):
    """Processes of this machine; they start with the first task.

    Parameters
    ----------
    count
        Number of processes.
    """

    def __init__(self, count: int):
        self.capacity = count
        self._pool: Any = None

    def executor(self) -> Executor:
        if self._pool is None:
            from joblib.externals.loky import ProcessPoolExecutor  # needs no `if __name__ == "__main__"` in scripts

            self._pool = ProcessPoolExecutor(
                self.capacity, timeout=IDLE, initializer=_prepare_child, initargs=(os.getpid(),), env=child_settings()
            )
        return self._pool

    def lost(self, error: BaseException) -> bool:
        from joblib.externals.loky.process_executor import BrokenProcessPool, ShutdownExecutorError

        return isinstance(error, BrokenProcessPool | ShutdownExecutorError)

    def recover(self, executor: Executor) -> None:
        """Start all processes anew: an executor that loses one process fails all its tasks."""
        if executor is self._pool:
            self.close()

    def close(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, kill_workers=True)
            self._pool = None


# ---- a cluster


class DaskWorkers(Workers):
    """The workers of a Dask scheduler, which may come and go.

    Parameters
    ----------
    cluster
        Address of the scheduler, or a `distributed.Client`.
    patience
        Seconds to wait for the scheduler's answer.
    """

    def __init__(self, cluster: Any, patience: float = 10.0):
        try:
            from distributed import Client  # pyright: ignore[reportMissingImports]
        except ImportError as error:
            raise InputError("cluster needs Dask: pip install 'dagpost[cluster]'") from error
        self._own = not isinstance(cluster, Client)
        if not self._own:
            self._client = cluster
        elif not isinstance(cluster, str):
            raise InputError(f"cluster={cluster!r}: give the address of a Dask scheduler, or a distributed.Client")
        else:
            try:
                self._client = Client(cluster, timeout=patience, set_as_default=False)
            except (OSError, ValueError, TimeoutError):
                raise InputError(
                    f"cluster {cluster}: no Dask scheduler answers there: start one with `dask scheduler`, "
                    "and workers with `dask worker ADDRESS`"
                ) from None
        self._executor: Any = None

    def executor(self) -> Executor:
        if self._executor is None:
            import dask.config  # pyright: ignore[reportMissingImports]

            dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 GiB"})  # tasks hold their data
            self._executor = self._client.get_executor(pure=False)
        return self._executor

    def lost(self, error: BaseException) -> bool:
        from distributed import KilledWorker  # pyright: ignore[reportMissingImports]

        return isinstance(error, KilledWorker | CancelledError)

    def recover(self, executor: Executor) -> None:
        """Do nothing: the scheduler waits for other workers."""

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
        if self._own:
            self._client.close()


# ---- the workers of a run

_current: ContextVar[Workers | None] = ContextVar("workers", default=None)


def current_workers() -> Workers | None:
    """Return the workers of the run, None if it computes in this process."""
    return _current.get()


def workers_of(workers: int | None = None, cluster: Any = None) -> Workers | None:
    """Return the workers that these options mean, None for this process.

    Parameters
    ----------
    workers
        Number of processes of this machine.
    cluster
        Address of a Dask scheduler, or a `distributed.Client`.
    """
    if workers is not None:
        whole_number("workers", workers, least=1)
    if cluster is None:
        return None if workers is None else LocalWorkers(workers)
    if workers is not None:
        raise InputError("workers are processes of this machine, and cluster names others: give one of the two")
    return DaskWorkers(cluster)


@contextmanager
def use_workers(workers: Workers | None) -> Iterator[None]:
    """Context in which `current_workers` returns these; they are closed at the end."""
    token = _current.set(workers)
    try:
        yield
    finally:
        _current.reset(token)
        if workers is not None:
            workers.close()
