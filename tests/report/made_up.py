"""Posteriors for looking at: no data, no inference, any size."""

import numpy as np

import dagpost as dp
from dagpost.posterior.records import RunRecord

HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "=cmd()",
    "</script><b>bold",
    "{{script}} & ünï 名前",
    "' onmouseover='window.hacked=1",
)


def made_up(d: int, draws: int = 200, seed: int = 0, names=None, **info) -> dp.Posterior:
    """Random DAGs around one order of the nodes: about two likely edges a node, faint ones, and directions that are
    open between neighbours in that order."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(d)
    later = place[:, None] < place[None, :]
    strength = np.where(rng.random((d, d)) < 4 / d, rng.beta(3, 1, (d, d)), np.where(rng.random((d, d)) < 0.1, 0.03, 0))
    graphs = (rng.random((draws, d, d)) < strength * later).astype(bool)
    node_at = np.argsort(place)
    for k in range(0, d - 1, 2):  # neighbours in the order can be turned around without a cycle
        i, j = node_at[k], node_at[k + 1]
        turned = graphs[:, i, j] & (rng.random(draws) < 0.5)
        graphs[turned, i, j], graphs[turned, j, i] = False, True
    return dp.Posterior(
        graphs,
        np.zeros(draws),
        tuple(names or (f"x{j}" for j in range(d))),
        dp.LinearGaussian(),
        dp.ErdosRenyi(),
        theta=rng.normal(size=(draws, d, d)),
        record=RunRecord.from_flat({"method": "mc3", "rows": 100, **info}),
    )
