"""What a run looked like on the way: a callback that remembers what it saw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from dagpost.errors import InputError
from dagpost.inference.dibs import Snapshot
from dagpost.inference.mcmc.refine import ChainSnapshot

TOP = 12
"""Edges whose course a summary keeps."""


class History:
    """Collects the state of DiBS at intervals: `dp.fit(..., callback=history, every=10)`.

    Looking on changes nothing about the result. Arrays have one row for each snapshot. With "auto", what its chains
    said of themselves is in `chains`. A resumed run is seen from where it was taken up.

    >>> import dagpost as dp
    >>> history = dp.History()
    >>> sim = dp.simulate(nodes=4, observations=100, seed=0)
    >>> post = dp.fit(sim.train, model="linear", method="dibs", particles=5, steps=40, every=10, callback=history)
    >>> history.steps.tolist()
    [10, 20, 30, 40]
    >>> history.edge_probabilities.shape
    (4, 4, 4)
    """

    def __init__(self) -> None:
        self._seen: list[dict[str, Any]] = []
        self.chains: list[ChainSnapshot] = []

    def __call__(self, snapshot: Snapshot | ChainSnapshot) -> None:
        """Remember a snapshot; of the particles only what the arrays below hold."""
        if isinstance(snapshot, ChainSnapshot):
            self.chains.append(snapshot)
            return
        self._seen.append(
            {
                "step": snapshot.step,
                "alpha": snapshot.alpha,
                "beta": snapshot.beta,
                "cyclic": snapshot.cyclic,
                "edges": snapshot.edge_probabilities.mean(axis=0).astype(np.float32),
                "sizes": snapshot.graphs.sum(axis=(1, 2)),
            }
        )

    def __len__(self) -> int:
        return len(self._seen)

    def __repr__(self) -> str:
        return f"History({len(self)} snapshots of DiBS, {len(self.chains)} of chains)"

    def _column(self, name: str) -> np.ndarray:
        return np.array([seen[name] for seen in self._seen])

    @property
    def steps(self) -> Int[np.ndarray, " t"]:
        """Steps done at each snapshot."""
        return self._column("step")

    @property
    def alpha(self) -> Float[np.ndarray, " t"]:
        """Inverse temperature of the edges."""
        return self._column("alpha")

    @property
    def beta(self) -> Float[np.ndarray, " t"]:
        """Weight of the penalty on cycles."""
        return self._column("beta")

    @property
    def cyclic(self) -> Int[np.ndarray, " t"]:
        """Particles whose graph has a cycle."""
        return self._column("cyclic")

    @property
    def edge_probabilities(self) -> Float[np.ndarray, "t d d"]:
        """Mean over particles of `p(i -> j | z)`."""
        return self._column("edges")

    @property
    def expected_edges(self) -> Float[np.ndarray, " t"]:
        """Sum of these."""
        return self.edge_probabilities.sum(axis=(1, 2))

    @property
    def particle_edges(self) -> Int[np.ndarray, "t m"]:
        """Edges in the graph of every particle."""
        return self._column("sizes")

    def frame(self) -> pd.DataFrame:
        """A table with one row for each snapshot."""
        columns = {name: getattr(self, name) for name in ("alpha", "beta", "cyclic", "expected_edges")}
        return pd.DataFrame({"step": self.steps, **columns})

    def summary(self, names: Sequence[str], top: int = TOP) -> dict[str, Any]:
        """The course as plain values, of the edges that were most probable in the end; `dp.plot.evolution` draws it."""
        if not len(self):
            raise InputError("this history saw no step of DiBS: give it to dp.fit(..., callback=history)")
        course = self.edge_probabilities
        chosen = np.argsort(-course[-1], axis=None, kind="stable")[:top]
        pairs = [divmod(int(edge), course.shape[1]) for edge in chosen]
        return {
            "step": self.steps.tolist(),
            "alpha": self.alpha.tolist(),
            "beta": self.beta.tolist(),
            "cyclic": self.cyclic.tolist(),
            "expected_edges": self.expected_edges.tolist(),
            "particle_edges": self.particle_edges.tolist(),
            "edges": [
                {"cause": names[i], "effect": names[j], "probability": course[:, i, j].round(4).tolist()}
                for i, j in pairs
                if i != j
            ],
        }
