"""Particles spread over several devices, of one machine or of several.

Every device holds `particles / devices` particles with their parameters and optimiser state, computes their gradients,
and gathers the positions and gradients of all others once per step, for the kernel of SVGD: the only coupling. Random
numbers do not depend on the number of devices, so results are those of one device up to rounding.

With `jax.distributed.initialize` the devices of all processes count, and every process makes the same call of `fit` and
returns the same posterior.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from dagpost._util.clock import FOREVER, Clock
from dagpost.errors import InputError
from dagpost.inference.checkpoints import NULL_SECTION, Section

AXIS = "particles"
"""Name of the mesh axis."""


@cache
def mesh_of(devices: int) -> Mesh:
    """Return the mesh of the first devices, those of all processes counted."""
    return Mesh(np.array(jax.devices()[:devices]), (AXIS,))


def check_devices(devices: int, particles: int, on_host: bool, elementwise: bool) -> None:
    """Raise an error that names the cure where a run cannot be spread over so many devices.

    Parameters
    ----------
    devices, particles
        How many of each.
    on_host
        Whether the CPU's compiled kernel computes the gradient.
    elementwise
        Whether the optimiser treats every particle by itself.
    """
    if devices == 1:
        if jax.process_count() > 1:
            raise InputError(f"{jax.process_count()} processes, and devices=1: set devices={jax.device_count()}")
        return
    if devices > jax.device_count():
        raise InputError(f"devices={devices}: JAX sees {jax.device_count()}, {jax.devices()[0].platform}")
    if jax.process_count() > 1 and devices != jax.device_count():
        raise InputError(f"devices={devices}: the processes have {jax.device_count()} devices, and all must take part")
    if particles % devices:
        raise InputError(f"{particles} particles on {devices} devices: take a multiple of {devices} particles")
    if on_host:
        raise InputError(
            f"devices={devices}: closed-form families are scored on the CPU by a kernel that uses all cores already: "
            "leave `devices` out, use GPUs, or infer the parameters jointly (collapsed=False)"
        )
    if not elementwise:
        raise InputError(f"devices={devices}: an optimiser of your own may couple particles: use dp.dibs.RmsProp")


def check_undisturbed(devices: int, section: Section, clock: Clock) -> Clock:
    """Return the clock of the steps; with several processes it has no limit, since their times differ, and saving the
    state of all processes is not offered."""
    if devices == 1 or jax.process_count() == 1:
        return clock
    if section is not NULL_SECTION or (clock.limit is not None and clock.limit < FOREVER / 2):
        raise InputError("several processes cannot share a time limit or a checkpoint: leave both out")
    return Clock()


def _specs(tree: Any, particles: int) -> Any:
    """Return what is spread over the devices: leaves whose leading axis is that of the particles."""
    return jax.tree.map(lambda leaf: PartitionSpec(AXIS) if jnp.shape(leaf)[:1] == (particles,) else PartitionSpec(),
                        tree)  # fmt: skip


def spread(tree: Any, devices: int, particles: int | None) -> Any:
    """Return the tree on the devices, particles spread over them and everything else on each.

    Parameters
    ----------
    tree
        Arrays, the same in every process.
    devices
        Number of devices.
    particles
        Length of the leading axis of what is spread; None for nothing.
    """
    if devices == 1:
        return tree

    def put(leaf: Any, spec: PartitionSpec) -> Any:
        sharding = NamedSharding(mesh_of(devices), spec)
        if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            data = put(jax.random.key_data(leaf), PartitionSpec())
            return jax.random.wrap_key_data(data, impl=jax.random.key_impl(leaf))
        whole = np.asarray(leaf)
        return jax.make_array_from_callback(whole.shape, sharding, lambda index: whole[index])

    return jax.tree.map(put, tree, _specs(tree, -1 if particles is None else particles))


def by_device(function: Callable[..., Any], devices: int, particles: int) -> Callable[..., Any]:
    """Return `function(state, *others)`, run by every device on its particles of the state."""

    def call(state: Any, *others: Any) -> Any:
        specs = _specs(state, particles)
        return jax.shard_map(
            function, mesh=mesh_of(devices), in_specs=(specs, *[PartitionSpec()] * len(others)), out_specs=specs,
            check_vma=False,
        )(state, *others)  # fmt: skip

    return function if devices == 1 else call


def gathered(local: Any, devices: int) -> Any:
    """Return the rows of all devices, on each; inside `by_device`."""
    return local if devices == 1 else jax.lax.all_gather(local, AXIS, tiled=True)


def own_keys(key: Any, count: int, devices: int) -> Any:
    """Return keys for the `count` particles of this device, whatever the number of devices; inside `by_device`."""
    keys = jax.random.split(key, count * devices)
    if devices == 1:
        return keys
    return jax.lax.dynamic_slice_in_dim(keys, jax.lax.axis_index(AXIS) * count, count)


def collected(tree: Any, devices: int) -> Any:
    """Return the whole tree in the memory of this process."""
    if devices > 1:
        everywhere = NamedSharding(mesh_of(devices), PartitionSpec())
        tree = jax.jit(lambda tree: tree, out_shardings=everywhere)(tree)
    return jax.tree.map(np.asarray, tree)
