"""Rows from the posterior predictive distribution, as they would be under an intervention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import jax
import numpy as np
import pandas as pd

from dagpost._util.randomness import generator, key_from_seed
from dagpost.errors import InputError, whole_number
from dagpost.posterior.interventions import simulate_under
from dagpost.posterior.parameters import choose, parameters_of, systematic

if TYPE_CHECKING:
    from dagpost.posterior.posterior import Posterior


def predict(post: Posterior, do: Mapping[str | int, float] | None, samples: int, seed: int) -> pd.DataFrame:
    """Each row has a graph of its own, drawn by weight, with its parameters; values are in raw units."""
    whole_number("samples", samples, least=1)
    scaling = post.scaling
    mean = np.zeros(post.nodes) if scaling is None else scaling.mean
    scale = np.ones(post.nodes) if scaling is None else scaling.scale
    clamped = {}
    for node, value in (do or {}).items():
        j = post.index(node)
        if isinstance(value, str | bool) or not np.isfinite(value):
            raise InputError(f"do={{{post.names[j]!r}: {value!r}}}: give a finite number")
        clamped[j] = (float(value) - mean[j]) / scale[j]
    key_choice, key_again, key_order, key_theta, key_rows = jax.random.split(key_from_seed(seed), 5)
    chosen = choose(post, samples, key_choice)
    member = chosen.member
    if len(member) != samples or (chosen.weights != chosen.weights[0]).any():
        member = member[systematic(chosen.weights, samples, key_again)]
    member = generator(key_order).permutation(member)
    graphs, theta = parameters_of(post, member, key_theta)
    rows = simulate_under(post.model, jax.random.split(key_rows, samples), graphs, theta, 1, clamped)[:, 0]
    table = rows * scale + mean
    for node, value in (do or {}).items():
        table[:, post.index(node)] = value  # not rounded by the way there and back
    return pd.DataFrame(table, columns=list(post.names))
