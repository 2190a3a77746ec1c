"""Data sets of one shape as one batch, for what a GPU does with many of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from dagpost.data import Dataset
from dagpost.errors import InputError


def check_alike(data: Sequence[Dataset], seeds: Sequence[int]) -> None:
    """One seed for each set, and all of them with the same number of rows and columns."""
    shapes = {(one.observations, one.nodes) for one in data}
    if len(shapes) != 1 or len(data) != len(seeds):
        raise InputError(f"{len(data)} data sets, {len(seeds)} seeds, shapes {sorted(shapes)}: give sets of one shape")


def stacked(trees: Sequence[Any]) -> Any:
    """One tree, whose leaves have the members of the batch along a first axis."""
    return jax.tree.map(lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves]), *trees)


def member(tree: Any, number: int) -> Any:
    """The tree of one member of the batch."""
    return jax.tree.map(lambda leaf: leaf[number], tree)
