"""Shapes and types are checked while testing, except in compiled modules and where any input is welcome."""

import os
import tempfile
from pathlib import Path

# most of the time of these tests is compiling: it takes half as long with little optimising (not in `make test-long`)
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=0")

os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(tempfile.gettempdir()) / "dagpost-numba-tests"))

import jax
from jaxtyping import install_import_hook

# and the same programs are needed in several tests and processes
jax.config.update("jax_compilation_cache_dir", str(Path(tempfile.gettempdir()) / "dagpost-jax-tests"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

CHECKED = [
    "dagpost.priors.base",
    "dagpost.priors.erdos_renyi",
    "dagpost.priors.scale_free",
    "dagpost.priors.uniform",
    "dagpost.models.base",
    "dagpost.models.bge",
    "dagpost.models.linear_gaussian",
    "dagpost.models.mlp_gaussian",
    "dagpost.posterior.parameters",
    "dagpost.inference.exact.families",
    "dagpost.metrics",
]
install_import_hook(CHECKED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")


def pytest_collection_modifyitems(items):
    """Tests of the chains come first: with `--dist worksteal` one process compiles them while the other goes on."""
    places = ("tests/inference/mcmc", "tests/inference/checkpoints", "tests/_util/test_clock")
    items.sort(key=lambda item: not item.nodeid.startswith(places))
