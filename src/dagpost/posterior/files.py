"""Posterior files: one netCDF file with everything, sealed by a checksum and written as a whole or not at all."""

from __future__ import annotations

import io
import os
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from dagpost._util.atomic import check_target, write_atomically
from dagpost._util.sealing import read_sealed, sealed
from dagpost.errors import InputError, printable
from dagpost.models import Model
from dagpost.posterior.tree import from_tree, to_tree
from dagpost.priors import GraphPrior

if TYPE_CHECKING:
    from dagpost.posterior.posterior import Posterior

LARGEST_BYTES = 8 * 2**30
"""A larger file, or one whose arrays are larger, is refused before it is read."""


def save(post: Posterior, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write the posterior as netCDF (HDF5), laid out as `dagpost.posterior.tree` says; xarray and ArviZ read it too."""
    check_target(path, overwrite)
    tree = to_tree(post)
    packed = {"/posterior": {"graph": {"zlib": True, "complevel": 4}}}
    return write_atomically(path, sealed(tree.to_netcdf(engine="h5netcdf", encoding=packed)), overwrite)


def load(
    path: str | os.PathLike[str],
    *,
    model: Model | None = None,
    prior: GraphPrior | None = None,
    largest_bytes: int = LARGEST_BYTES,
) -> Posterior:
    """A posterior from the file that `Posterior.save` wrote; every damaged file is refused.

    A model or prior that is not part of dagpost has to be given again, with the settings it was saved with. The data
    are not in the file: `Posterior.with_data` gives them back, where an answer needs them.

    >>> import dagpost as dp, tempfile
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=0).train)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = post.save(f"{folder}/posterior.nc")
    ...     same = dp.load(file)
    >>> bool((same.edge_marginals == post.edge_marginals).all())
    True
    """
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
