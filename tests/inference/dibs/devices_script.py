"""Run by `test_devices.py` in processes of their own: DiBS over the devices that JAX sees there.

    python -m tests.inference.dibs.devices_script OUT [ADDRESS COUNT NUMBER]

Writes the final positions of every case to OUT, an .npz file; with an address, as one of several processes.
"""

import sys

import jax
import numpy as np

if len(sys.argv) > 2:
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

import dagpost as dp
from dagpost.inference.dibs import inference, svgd
from dagpost.inference.dibs.inference import prepare
from dagpost.inference.dibs.settings import default_settings, paper_settings
from dagpost.models import LinearGaussian, MlpGaussian
from dagpost.priors import ErdosRenyi

SIM = dp.simulate(nodes=4, observations=30, seed=2, interventional_sets=0)
STEPS, PARTICLES = 12, 8
CASES = {
    "shared noise": (MlpGaussian(hidden=(3,)), default_settings, {}),
    "own noise": (LinearGaussian(), paper_settings, {}),
    "chunks": (LinearGaussian(), paper_settings, {"memory_limit": 3e-4}),
    "minibatch": (LinearGaussian(), paper_settings, {"batch": 10}),
    "collapsed": (LinearGaussian(), default_settings, {"collapsed": True}),
}


def final(name: str, devices: int):
    """Return the target and the state after all steps."""
    model, preset, changes = CASES[name]
    settings = preset(model, 4, 30, steps=STEPS, devices=devices, **changes)
    target, stats, _ = prepare(model, ErdosRenyi(), settings, SIM.train, PARTICLES)
    target = target._replace(on_host=False)
    state = svgd.initial_state(target, jax.random.key(1), PARTICLES, 4)
    return target, svgd.run(target, state, stats, every=5)


def main() -> None:
    devices, out = jax.device_count(), {}
    check = inference.check_devices
    for name in CASES:
        # the closed form is refused on a CPU, but its path for accelerators runs there too
        inference.check_devices = check if name != "collapsed" else lambda *arguments: None
        target, state = final(name, devices)
        last = svgd.snapshot(target, state)
        for number, leaf in enumerate([last.z, *jax.tree.leaves(last.theta)]):
            out[f"{name}/{number}"] = leaf
        shares = [leaf for leaf in jax.tree.leaves((state.z, state.theta, state.optimiser)) if leaf.ndim]
        held = sum(leaf.addressable_shards[0].data.nbytes for leaf in shares)
        out[f"{name}/share"] = np.array(held / sum(leaf.nbytes for leaf in shares))
    post = dp.fit(SIM.train, "mlp", method="dibs", particles=PARTICLES, steps=STEPS, devices=devices, progress=False)
    out["fit"] = post.edge_marginals
    np.savez(sys.argv[1], **out)


if __name__ == "__main__":
    main()
