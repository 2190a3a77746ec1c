"""Shapes and types are checked while testing, except in compiled modules and where any input is welcome."""

import os

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

from jaxtyping import install_import_hook

CHECKED = [
    "dagpost.priors.base",
    "dagpost.priors.erdos_renyi",
    "dagpost.priors.scale_free",
    "dagpost.priors.uniform",
    "dagpost.models.base",
    "dagpost.models.bge",
    "dagpost.models.linear_gaussian",
    "dagpost.models.mlp_gaussian",
    "dagpost.posterior.density",
    "dagpost.exact_inference.families",
    "dagpost.metrics",
]
install_import_hook(CHECKED, "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))")
