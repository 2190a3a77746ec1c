"""Shapes and types of every annotated function are checked while testing (compiled modules excepted)."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

from jaxtyping import install_import_hook

CHECKED = [
    "dagpost.data",
    "dagpost.priors",
    "dagpost.models.base",
    "dagpost.models.bge",
    "dagpost.models.linear_gaussian",
    "dagpost.models.mlp_gaussian",
    "dagpost.simulation",
    "dagpost.posterior",
    "dagpost.exact_inference.posterior",
    "dagpost.exact_inference.families",
    "dagpost.metrics",
]
install_import_hook(CHECKED, "beartype.beartype")
