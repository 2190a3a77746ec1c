"""The posterior as an xarray DataTree, laid out as ArviZ expects it.

    /                 attributes: format, versions, and as JSON the model, the prior, the tree of theta, and `info`
    /posterior        graph (chain, draw, cause, effect) and the leaves of theta (chain, draw, …); one chain
    /sample_stats     log_weight, log_joint, multiplicity (chain, draw)
    /edges            probability (cause, effect), where a method knows edges better than its draws do

Draws can have unequal weights, which ArviZ does not look at: `Posterior.resampled` gives draws of equal weight.
"""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from dagpost._util.versions import versions_of
from dagpost.errors import InputError
from dagpost.models import Model
from dagpost.posterior.encoding import UnknownClass, decode, encode
from dagpost.posterior.theta_tree import NamedLeaves, join_theta, split_theta
from dagpost.priors import GraphPrior

if TYPE_CHECKING:
    from xarray import DataTree

    from dagpost.posterior.posterior import Posterior

FORMAT = "dagpost posterior"
FORMAT_VERSION = 1
DRAW = ("chain", "draw")
EDGE = ("cause", "effect")


def to_tree(post: Posterior) -> DataTree:
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
    return xarray.DataTree.from_dict(groups)


def _attributes(post: Posterior, structure: dict[str, Any]) -> dict[str, Any]:
    libraries = versions_of("jax", "numpy", "xarray", "h5netcdf")
    texts = {
        "model": encode(post.model),
        "prior": encode(post.prior),
        "theta": structure,
        "info": encode(dict(post.info), opaque=lambda value: repr(value)[:200]),
        "versions": {"python": platform.python_version(), **libraries},
    }
    head = {"format": FORMAT, "format_version": FORMAT_VERSION, "creation_library": "dagpost"}
    return {**head, **{name: json.dumps(text, allow_nan=False) for name, text in texts.items()}}


def from_tree(tree: DataTree, model: Model | None = None, prior: GraphPrior | None = None) -> Posterior:
    """The posterior that `to_tree` was given. A model or prior of the user's own has to be given again."""
    from dagpost.posterior.posterior import Posterior

    if tree.attrs.get("format") != FORMAT:
        raise InputError("this is not a posterior as dagpost writes it")
    if int(tree.attrs["format_version"]) > FORMAT_VERSION:
        raise InputError(
            f"written in format {tree.attrs['format_version']}, this version of dagpost reads up to {FORMAT_VERSION}: "
            "install a newer one"
        )
    texts = {name: json.loads(tree.attrs[name]) for name in ("model", "prior", "theta", "info")}
    found_model = _object("model", texts["model"], model)
    groups = {name: child.to_dataset() for name, child in tree.children.items()}
    draws = groups["posterior"]
    names = tuple(str(name) for name in draws["cause"].values)
    arrays = {name: draws[name].values[0] for name in texts["theta"]["leaves"]}

    def statistic(name: str) -> Any:
        found = groups["sample_stats"].get(name)
        return None if found is None else found.values[0]

    return Posterior(
        graphs=draws["graph"].values[0],
        log_weights=statistic("log_weight"),
        names=names,
        model=found_model,
        prior=_object("prior", texts["prior"], prior),
        theta=join_theta(NamedLeaves(texts["theta"], arrays), found_model, len(names)),
        log_joint=statistic("log_joint"),
        multiplicity=statistic("multiplicity"),
        marginals=groups["edges"]["probability"].values if "edges" in groups else None,
        info=decode(texts["info"]),
    )


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
