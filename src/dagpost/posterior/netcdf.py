"""Parameters as named arrays and back: every leaf of theta gets the name of its place in the tree.

The posterior as an xarray DataTree, laid out as ArviZ expects it.

    /                 attributes: format, versions, and as JSON the model, the prior, the tree of theta, and `info`
    /posterior        graph (chain, draw, cause, effect) and the leaves of theta (chain, draw, …); one chain
    /sample_stats     log_weight, log_joint, multiplicity (chain, draw)
    /edges            probability (cause, effect), where a method knows edges better than its draws do
    /imputed          value (imputation, cell) in units of the fit, row (cell) and column (cell), of missing cells

Draws can have unequal weights, which ArviZ does not look at: `GraphSample.resampled` gives draws of equal weight.

GraphSample files: one netCDF file with everything, sealed by a checksum and written as a whole or not at all.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from dagpost._util.environment import versions_of
from dagpost._util.files import check_target, read_sealed, seal, write_atomically
from dagpost.errors import InputError, printable
from dagpost.models import Model
from dagpost.posterior.encoding import UnknownClass, decode, encode, field_values, home_of, known_class
from dagpost.posterior.records import ImputedCells, RunRecord
from dagpost.posterior.sample import WIDE, GraphSample
from dagpost.priors import GraphPrior
from dagpost.typing import Theta

if TYPE_CHECKING:
    from xarray import DataTree


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


FORMAT = "dagpost posterior"
FORMAT_VERSION = 2
"""Version 1 has a flat dictionary `info` in place of the record."""
DRAWN_IN_VERSION_1 = {
    "auto": {"sample": True, "collapsed": True},
    "mc3": {"sample": True, "collapsed": True},
    "m-mc3": {"sample": True, "collapsed": False},
    "g-mc3": {"sample": True, "collapsed": False},
}
DRAW = ("chain", "draw")
EDGE = ("cause", "effect")


def to_tree(post: GraphSample) -> DataTree:
    """The tree of a posterior; the data it came from are not part of it, only their hash in `info`."""
    import xarray

    names = list(post.names)
    theta = split_theta(post.theta, len(post))
    draws: dict[str, Any] = {"graph": ((*DRAW, *EDGE), post.graphs[None])}
    for name, leaf in theta.arrays.items():
        dimensions = [f"{name}_dim_{axis}" for axis in range(leaf.ndim - 1)]
        draws[name] = ((*DRAW, *dimensions), leaf[None])
    statistics = {"log_weight": post.log_weights, "log_joint": post.log_joint, "multiplicity": post.multiplicity}
    count = {"chain": [0], "draw": np.arange(len(post))}
    groups = {
        "/": xarray.Dataset(attrs=_attributes(post, theta.structure)),
        "/posterior": xarray.Dataset(draws, {**count, "cause": names, "effect": names}),
        "/sample_stats": xarray.Dataset(
            {name: (DRAW, value[None]) for name, value in statistics.items() if value is not None}, count
        ),
    }
    if post.marginals is not None:
        groups["/edges"] = xarray.Dataset({"probability": (EDGE, post.marginals)}, {"cause": names, "effect": names})
    if post.cells is not None:
        shapes = {"value": ("imputation", "cell"), "row": ("cell",), "column": ("cell",)}
        fields = {"value": post.cells.values, "row": post.cells.rows, "column": post.cells.columns}
        groups["/imputed"] = xarray.Dataset({name: (shapes[name], fields[name]) for name in shapes})
    return xarray.DataTree.from_dict(groups)


def _attributes(post: GraphSample, structure: dict[str, Any]) -> dict[str, Any]:
    libraries = versions_of("jax", "numpy", "xarray", "h5netcdf")
    texts = {
        "model": encode(post.model),
        "prior": encode(post.prior),
        "theta": structure,
        "record": encode(post.record, opaque=lambda value: repr(value)[:200]),
        "versions": {"python": platform.python_version(), **libraries},
    }
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "creation_library": "dagpost"}
    return {**head, **{name: json.dumps(text, allow_nan=False) for name, text in texts.items()}}


def from_tree(tree: DataTree, model: Model | None = None, prior: GraphPrior | None = None) -> dict[str, Any]:
    """The fields of the posterior that `to_tree` was given. A user-defined model or prior has to be given again."""

    if tree.attrs.get("format") != FORMAT:
        raise InputError("this is not a posterior as dagpost writes it")
    if int(tree.attrs["format_version"]) > FORMAT_VERSION:
        raise InputError(
            f"written in format {tree.attrs['format_version']}, this version of dagpost reads up to {FORMAT_VERSION}: "
            "install a newer one"
        )
    texts = {name: json.loads(tree.attrs[name]) for name in ("model", "prior", "theta")}
    found_model = _object("model", texts["model"], model)
    groups = {name: child.to_dataset() for name, child in tree.children.items()}
    draws = groups["posterior"]
    names = tuple(str(name) for name in draws["cause"].values)
    arrays = {name: draws[name].values[0] for name in texts["theta"]["leaves"]}

    def statistic(name: str) -> Any:
        found = groups["sample_stats"].get(name)
        return None if found is None else found.values[0]

    cells = groups.get("imputed")
    return dict(
        graphs=draws["graph"].values[0],
        log_weights=statistic("log_weight"),
        names=names,
        model=found_model,
        prior=_object("prior", texts["prior"], prior),
        theta=join_theta(NamedLeaves(texts["theta"], arrays), found_model, len(names)),
        log_joint=statistic("log_joint"),
        multiplicity=statistic("multiplicity"),
        marginals=groups["edges"]["probability"].values if "edges" in groups else None,
        record=_record(tree.attrs),
        cells=None if cells is None else ImputedCells(*(cells[name].values for name in ("row", "column", "value"))),
    )


def _record(attributes: Mapping[Any, Any]) -> RunRecord:
    if "record" not in attributes:
        info = decode(json.loads(attributes["info"]))
        drawn = DRAWN_IN_VERSION_1.get(info.get("method"), {})  # which that version did not record
        return RunRecord.from_flat({**drawn, **info})
    record = decode(json.loads(attributes["record"]))
    if not isinstance(record, RunRecord):
        raise InputError("its record of the run is not one that dagpost writes")
    return record


def _object(role: str, text: dict[str, Any], given: Any) -> Any:
    """The model or prior that a file names: built from its settings, or the one given if the file agrees with it."""
    if given is not None:
        if encode(given) != text:
            raise InputError(f"the file was written with another {role}: {_shown(text)}, not {_shown(encode(given))}")
        return given
    try:
        return decode(text)
    except UnknownClass as unknown:
        raise InputError(
            f"the file was written with a {role} that is not part of dagpost, {unknown}: give it, "
            f"dp.load(path, {role}={unknown}(…))"
        ) from None


def _shown(text: dict[str, Any]) -> str:
    settings = ", ".join(f"{name}={json.dumps(value):.40}" for name, value in text.get("fields", {}).items())
    return f"{text['class']}({settings})"


LARGEST_BYTES = 8 * 2**30
"""A larger file, or one whose arrays are larger, is refused before it is read."""


def save(post: GraphSample, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the posterior as netCDF (HDF5), laid out as this module says; xarray and ArviZ read it too."""
    check_target(path, overwrite)
    tree = to_tree(post)
    packed = {"/posterior": {"graph": {"zlib": True, "complevel": 4 if post.nodes <= WIDE else 1}}}
    return write_atomically(path, seal(tree.to_netcdf(engine="h5netcdf", encoding=packed)), overwrite)


def read_fields(
    path: str | os.PathLike[str], model: Model | None, prior: GraphPrior | None, largest_bytes: int
) -> dict[str, Any]:
    """The fields of the saved posterior, or an error that says what is wrong with the file."""
    shown = printable(Path(path).name) if isinstance(path, str | os.PathLike) else ""
    content = io.BytesIO(read_sealed(path, largest_bytes))
    try:
        _check_sizes(content, largest_bytes)
        import xarray

        with xarray.open_datatree(content, engine="h5netcdf") as tree:
            return from_tree(tree.load(), model, prior)
    except InputError as error:
        raise InputError(f"{shown}: {error}") from None
    except Exception as error:  # whatever HDF5 or a foreign layout can raise
        raise InputError(
            f"{shown} is not a posterior as dagpost writes it ({type(error).__name__}: {error})"
        ) from error


def _check_sizes(content: io.BytesIO, largest: int) -> None:
    """Compressed arrays can be far larger than the file: add up what they say of themselves."""
    import h5netcdf

    def size(group) -> int:
        own = sum(
            prod(v.shape) * max(v.dtype.itemsize if hasattr(v.dtype, "itemsize") else 8, 1)
            for v in group.variables.values()
        )
        return own + sum(size(part) for part in group.groups.values())

    with h5netcdf.File(content, "r") as file:
        total = size(file)
    if total > largest:
        raise InputError(f"its arrays have {total / 2**30:.3g} GiB, more than the limit of {largest / 2**30:.3g} GiB")
