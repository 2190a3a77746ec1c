"""How much memory a run takes, said before it allocates any."""

from __future__ import annotations

import math
import warnings

import jax

from dagpost._util.environment import available_memory
from dagpost.errors import DataWarning, InputError
from dagpost.inference.auto import Auto
from dagpost.inference.mcmc.refine import BATCHES, KEPT
from dagpost.inference.method import Method
from dagpost.models import Model

LARGE = 1.0
"""GiB from which on a run says how much memory it needs."""


def needed_memory(d: int, model: Model, method: Method) -> dict[str, float]:
    """Return the GiB that a run takes at least, by what takes them."""
    kept, particles = method.graphs_kept(model), int(method.options().get("particles", 0))
    numbers = 0.0
    if model.has_parameters:
        shapes = jax.eval_shape(lambda key: model.sample_theta(key, d), jax.random.key(0))
        numbers = float(sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(shapes)))
    chains = isinstance(method, Auto) and model.has_evidence
    # blocks of graphs and edge frequencies: the thinned ones before (3/4 of one), this one, and all of these joined
    per_ensemble = 3.5 * (KEPT + 8 * BATCHES) * d**2 if chains else 0
    ensembles = method.ensembles if isinstance(method, Auto) else 0
    bytes_ = {
        "draws": kept * (2 * d**2 + 16 * numbers),
        "particles": 0.0 if chains else particles * (32 * d**2 + 16 * numbers),
        "ensembles": float(ensembles * per_ensemble),
    }
    return {name: size / 2**30 for name, size in bytes_.items()}


CURES = {
    "draws": "keep fewer graphs ({options}), or use fewer columns",
    "particles": "use fewer particles or columns",
    "ensembles": "use fewer ensembles (at least 2) or columns, or method 'dibs'",
}
"""What to do about each part of the memory."""


def check_memory(d: int, model: Model, method: Method) -> None:
    """Say how much memory a large run needs, before it allocates any; raise an error if the machine has less."""
    parts, available = needed_memory(d, model, method), available_memory()
    needed, most = sum(parts.values()), max(parts, key=lambda name: parts[name])
    text = f"method {method.name!r} on {d} columns needs about {needed:.1f} GiB of memory ({available:.1f} GiB at hand)"
    if needed > available:
        fewer = "draws" if "draws" in method.options() else "particles"
        cure = CURES[most].format(options=f"{fewer}=…")
        raise InputError(f"{text}, {parts[most]:.1f} GiB of it for its {most}: {cure}")
    if needed > LARGE:
        warnings.warn(text, DataWarning, stacklevel=3)
