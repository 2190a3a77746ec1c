"""Parameters as named arrays and back: every leaf of theta gets the name of its place in the tree."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from dagpost.errors import InputError
from dagpost.models import Model
from dagpost.posterior.encoding import UnknownClass, field_values, home_of, known_class
from dagpost.typing import Theta

NAME = re.compile(r"[A-Za-z0-9_.]+")


class NamedLeaves(NamedTuple):
    structure: dict[str, Any]  # JSON
    arrays: dict[str, np.ndarray]


class _Leaf(str):
    """The name of a leaf, where the leaf itself would stand."""


def split_theta(theta: Theta, draws: int) -> NamedLeaves:
    """The arrays of theta by name, and the tree they came from."""
    placed, tree = jax.tree_util.tree_flatten_with_path(theta)
    names = []
    for number, (path, _) in enumerate(placed):
        name = ".".join(["theta", *(jax.tree_util.keystr((step,), simple=True) for step in path)])
        names.append(name if NAME.fullmatch(name) and name not in names else f"theta.leaf{number}")
    arrays = {name: np.asarray(leaf) for name, (_, leaf) in zip(names, placed)}
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) != draws:
            raise InputError(
                f"{name} has shape {array.shape}: the parameters need one entry for each of {draws} graphs"
            )
        if array.dtype.kind not in "biuf" or array.dtype.itemsize not in (1, 2, 4, 8) or array.dtype == np.float16:
            raise InputError(
                f"{name} holds {array.dtype}, which netCDF has no type for: convert it to float32 or float64"
            )
    described = _describe(tree.unflatten([_Leaf(name) for name in names]))
    return NamedLeaves({"tree": described, "leaves": names}, arrays)


def _describe(node: Any) -> Any:
    if node is None or isinstance(node, _Leaf):
        return None if node is None else {"leaf": str(node)}
    content = field_values(node)
    if content is not None and isinstance(node, tuple):
        kind = type(node)
        return {"class": kind.__name__, "home": home_of(kind), "fields": {k: _describe(v) for k, v in content.items()}}
    if type(node) in (tuple, list):
        return {type(node).__name__: [_describe(v) for v in node]}
    if type(node) is dict and all(isinstance(key, str) for key in node):
        return {"dict": {k: _describe(v) for k, v in node.items()}}
    return {"class": type(node).__name__, "home": type(node).__module__, "fields": {}}


def join_theta(named: NamedLeaves, model: Model, d: int) -> Theta:
    """The tree again; one whose classes are the user's takes the form of `model.sample_theta`."""
    try:
        return _rebuild(named.structure["tree"], named.arrays)
    except UnknownClass as unknown:
        like = jax.eval_shape(lambda key: model.sample_theta(key, d), jax.random.key(0))
        leaves, tree = jax.tree.flatten(like)
        if len(leaves) != len(named.arrays):
            raise InputError(
                f"the parameters were a {unknown}, which the model's sample_theta does not return: give the same model"
            ) from None
        return tree.unflatten([named.arrays[name] for name in named.structure["leaves"]])


def _rebuild(text: Any, arrays: Mapping[str, np.ndarray]) -> Any:
    if text is None:
        return None
    if "leaf" in text:
        return arrays[text["leaf"]]
    if "class" in text:
        return known_class(text)(**{k: _rebuild(v, arrays) for k, v in text["fields"].items()})
    if "dict" in text:
        return {k: _rebuild(v, arrays) for k, v in text["dict"].items()}
    if "list" in text:
        return [_rebuild(v, arrays) for v in text["list"]]
    return tuple(_rebuild(v, arrays) for v in text["tuple"])
