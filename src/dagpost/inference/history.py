"""`History`: a callback that records the course of a run."""

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
"""Number of edges in a summary."""


class History:
    """Records the state of DiBS at intervals: `dp.fit(..., callback=history, every=10)`.

    Recording does not change the result. Arrays have one row per snapshot. A resumed run is recorded from where it was
    resumed.

    Attributes
    ----------
    chains
        Snapshots of the chains of "auto", with their diagnostics.

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
        self._snapshots: list[dict[str, Any]] = []
        self.chains: list[ChainSnapshot] = []

    def __call__(self, snapshot: Snapshot | ChainSnapshot) -> None:
        """Record a snapshot; of the particles, only what the properties below return."""
        if isinstance(snapshot, ChainSnapshot):
            self.chains.append(snapshot)
            return
        self._snapshots.append(
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
        return len(self._snapshots)

    def __repr__(self) -> str:
        return f"History({len(self)} snapshots of DiBS, {len(self.chains)} of chains)"

    def _column(self, name: str) -> np.ndarray:
        """Return one recorded value per snapshot."""
        return np.array([snapshot[name] for snapshot in self._snapshots])

    @property
    def steps(self) -> Int[np.ndarray, " t"]:
        """Step of each snapshot."""
        return self._column("step")

    @property
    def alpha(self) -> Float[np.ndarray, " t"]:
        """Inverse temperature of the edges."""
        return self._column("alpha")

    @property
    def beta(self) -> Float[np.ndarray, " t"]:
        """Weight of the acyclicity penalty."""
        return self._column("beta")

    @property
    def cyclic(self) -> Int[np.ndarray, " t"]:
        """Number of particles whose graph has a cycle."""
        return self._column("cyclic")

    @property
    def edge_probabilities(self) -> Float[np.ndarray, "t d d"]:
        """Mean over particles of `p(i -> j | z)`."""
        return self._column("edges")

    @property
    def expected_edges(self) -> Float[np.ndarray, " t"]:
        """Expected number of edges: the sum of the edge probabilities."""
        return self.edge_probabilities.sum(axis=(1, 2))

    @property
    def particle_edges(self) -> Int[np.ndarray, "t m"]:
        """Number of edges in the graph of every particle."""
        return self._column("sizes")

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per snapshot.

        Returns
        -------
        pd.DataFrame
            Columns step, alpha, beta, cyclic and expected_edges.
        """
        columns = {name: getattr(self, name) for name in ("alpha", "beta", "cyclic", "expected_edges")}
        return pd.DataFrame({"step": self.steps, **columns})

    def summary(self, names: Sequence[str], top: int = TOP) -> dict[str, Any]:
        """Return the recorded course as plain values, which `dp.plot.evolution` plots.

        Parameters
        ----------
        names
            Names of the nodes.
        top
            Number of edges to include, those with the highest final probability.

        Returns
        -------
        dict
            Lists by name; "edges" holds cause, effect and probabilities of each edge.
        """
        if not len(self):
            raise InputError("this history has recorded no DiBS step: pass it to dp.fit(..., callback=history)")
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
