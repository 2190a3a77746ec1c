"""Shapes and types are checked while testing, except in compiled modules and where any input is welcome."""

import gc
import os
import signal
import tempfile
from pathlib import Path

# most of the time of these tests is compiling: it takes half as long with little optimising (not in `make test-long`)
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0")

# numba likewise: an eighth less; code of another level has a cache of its own
os.environ.setdefault("NUMBA_OPT", "1")
os.environ.setdefault("NUMBA_CACHE_DIR", f"{tempfile.gettempdir()}/dagpost-numba-tests-{os.environ['NUMBA_OPT']}")

import jax
import pytest
from jaxtyping import install_import_hook

# and the same programs are needed in several tests and processes
jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir()) / "dagpost-jax-tests"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

# compilers make many small objects, nearly all of which reference counts free: look for cycles less often
gc.set_threshold(50_000, 20, 50)

CHECKED = [
    "dagpost.priors.base",
    "dagpost.priors.in_degree",
    "dagpost.models.base",
    "dagpost.models.bge",
    "dagpost.models.linear_gaussian",
    "dagpost.models.mlp_gaussian",
    "dagpost.posterior.parameters",
    "dagpost.inference.exact.families",
    "dagpost.metrics",
]
install_import_hook(CHECKED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")


@pytest.fixture
def usual_ctrl_c():
    """Ctrl-C as in a person's process: jobs in the background of a shell ignore SIGINT, and so would tests there."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


FIRST = ("inference/mcmc", "inference/checkpoints", "_util/test_clock", "test_examples")
"""Tests of the chains, which take minutes to compile, and others that need them: those after the middle of the list
would compile them a second time."""
LAST = (
    "report",
    "plot",
    "data",
    "graphs",
    "priors",
    "models",
    "inference/exact",
    "inference/bootstrap",
    "inference/dibs",
)
"""Tests without chains, or with few; those of DiBS at the end."""


def pytest_collection_modifyitems(items):
    """With `--dist worksteal` each process begins at its own half: one compiles the chains, and the other finds them
    compiled when it comes to tests that need them."""

    def place(item):
        where = item.nodeid.removeprefix("tests/")
        late = [n for n, folder in enumerate(LAST) if where.startswith(folder)]
        return 0 if where.startswith(FIRST) else 2 + late[0] if late else 1

    items.sort(key=place)
