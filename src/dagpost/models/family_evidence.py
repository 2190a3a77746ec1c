"""Evidence of families, one number for each node and set of parents, remembered once it is known.

Chains and exact sums over graphs read it like a closed form. An estimate depends on the family, the seed and the
effort, not on when or where it was asked for: the workers of a run may compute it.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import Bool, Int

from dagpost._util.clock import Clock
from dagpost._util.environment import available_cores
from dagpost._util.workers import current_workers
from dagpost.typing import Theta

QUICK, CAREFUL, LARGEST, MOST = 0, 1, 4, 12
"""Efforts of an estimate: for families that a chain passes, for those that the posterior rests on, and the largest, for
those of them that are hard. Beyond it, up to `MOST`, estimates of the largest effort are averaged, one more each."""


class Estimate(NamedTuple):
    """Log evidence of a family, its standard error, and the effort that was made."""

    log_evidence: float
    error: float
    effort: int


Wanted = tuple[int, Bool[np.ndarray, " d"], int]
"""A node, its parents, and the effort to make."""
SHARE = 8
"""Families that a worker estimates at a time."""


class Origin(NamedTuple):
    """How another process builds the same evidence: a function of a module, with its arguments, and a name."""

    build: Callable[..., FamilyEvidence]
    arguments: tuple[Any, ...]
    name: str


class FamilyEvidence(abc.ABC):
    """Numerical evidence of the families of one data set, with a memory that threads share.

    Parameters
    ----------
    d
        Number of nodes.
    """

    memories: ClassVar[tuple[str, ...]] = ("known",)
    """Dicts by node, parents and possibly more that an estimate adds to."""

    def __init__(self, d: int):
        self.d = d
        self.known: dict[tuple[int, bytes], Estimate] = {}
        self.origin: Origin | None = None  # set where other processes may build the same

    @abc.abstractmethod
    def compute(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> Estimate:
        """Return the estimate of one family, computed anew; beyond `LARGEST`, one of that effort with random numbers of
        its own."""

    @abc.abstractmethod
    def draw(self, node: int, parents: Bool[np.ndarray, " d"], count: int, seed: int) -> Theta:
        """Return draws of `theta_j` given the family, resampled by importance weight, along a leading axis; entries of
        absent edges are 0."""

    def estimate(self, node: int, parents: Bool[np.ndarray, " d"], effort: int = QUICK) -> Estimate:
        """Return the estimate of one family, with at least this effort."""
        parents = np.asarray(parents, dtype=np.bool_)
        key = (node, parents.tobytes())
        if self._lacks(node, parents, effort):
            found = self.compute(node, parents, effort)
            if effort > LARGEST:
                found = _averaged(self.estimate(node, parents, effort - 1), found)
            self.known[key] = found
        return self.known[key]

    def _lacks(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> bool:
        """Return whether a family is still to be estimated with this effort."""
        found = self.known.get((node, parents.tobytes()))
        return found is None or found.effort < effort

    def estimates(
        self, nodes: Int[np.ndarray, " n"], parents: Bool[np.ndarray, "n d"], effort: int = QUICK
    ) -> list[Estimate]:
        """Return the estimates of many families, computed in parallel."""
        families = [(int(node), row, effort) for node, row in zip(nodes, np.asarray(parents, dtype=np.bool_))]
        self.fill([family for family in families if self._lacks(*family)])
        return [self.estimate(*family) for family in families]

    def fill(self, families: Sequence[Wanted]) -> None:
        """Estimate families, each with its effort, in parallel, and keep the results."""
        for _ in self.each(families):
            pass

    def each(self, families: Sequence[Wanted], clock: Clock | None = None) -> Iterator[None]:
        """Estimate families in parallel, by the workers of the run if it has any; yield after each, and end when the
        clock expires."""

        def expired() -> bool:
            return clock is not None and clock.expired

        workers = current_workers()
        if workers is None or self.origin is None:
            with ThreadPoolExecutor(available_cores()) as pool:
                yield from pool.map(lambda family: None if expired() else self.estimate(*family) and None, families)
            return
        shares = [(self.origin, list(families[at : at + SHARE])) for at in range(0, len(families), SHARE)]
        for share, found in workers.results(estimate_share, shares, stopping=expired):
            for name, entries in found.items():
                getattr(self, name).update(entries)
            yield from [None] * len(shares[share][1])

    # ---- the memory, for checkpoints

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return everything that is known as arrays."""
        items = list(self.known.items())
        return {
            "evidence_nodes": np.array([node for (node, _), _ in items], dtype=np.int64),
            "evidence_parents": np.array(
                [np.frombuffer(key, dtype=np.bool_) for (_, key), _ in items], dtype=np.bool_
            ).reshape(len(items), self.d),
            "evidence_values": np.array([tuple(value) for _, value in items], dtype=np.float64).reshape(-1, 3),
        }

    def from_arrays(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take up what `to_arrays` returned."""
        for node, row, value in zip(*(arrays[f"evidence_{name}"] for name in ("nodes", "parents", "values"))):
            self.known[int(node), row.tobytes()] = Estimate(float(value[0]), float(value[1]), int(value[2]))


def _averaged(mean: Estimate, other: Estimate) -> Estimate:
    """Return the mean of the evidence that estimates have so far and that of another: unbiased where they are."""
    logs = np.array([mean.log_evidence + np.log(other.effort - LARGEST), other.log_evidence])
    total = np.logaddexp(*logs)
    error = np.hypot(*(np.exp(logs - total) * [mean.error, other.error]))
    return Estimate(float(total - np.log(other.effort - LARGEST + 1)), float(error), other.effort)


_built: dict[str, FamilyEvidence] = {}


def estimate_share(share: tuple[Origin, Sequence[Wanted]]) -> dict[str, dict[Any, Any]]:
    """Estimate families in a worker, which keeps its evidence between calls; return what is known of them."""
    origin, families = share
    evidence = _built.get(origin.name)
    if evidence is None:
        evidence = origin.build(*origin.arguments)
        _built.clear()  # of another run
        _built[origin.name] = evidence
    evidence.fill([family for family in families if evidence._lacks(*family)])
    asked = {(node, np.asarray(row, dtype=np.bool_).tobytes()) for node, row, _ in families}
    return {
        name: {key: value for key, value in list(getattr(evidence, name).items()) if key[:2] in asked}
        for name in evidence.memories
    }


class ClosedForm(FamilyEvidence):
    """Evidence of a model that has it in closed form, but not compiled: each family takes milliseconds.

    Parameters
    ----------
    model
        The model.
    stats
        Its statistics of the data.
    """

    def __init__(self, model: Any, stats: Any):
        super().__init__(len(np.asarray(jax.tree.leaves(stats.node)[0])))
        self.model, self.stats = model, stats

    def compute(self, node: int, parents: Bool[np.ndarray, " d"], effort: int) -> Estimate:
        return Estimate(float(self.model.log_evidence(node, np.flatnonzero(parents), self.stats)), 0.0, MOST)

    def draw(self, node: int, parents: Bool[np.ndarray, " d"], count: int, seed: int) -> Theta:
        raise NotImplementedError("the model itself draws its parameters")

    def fill(self, families: Sequence[Wanted]) -> None:
        if current_workers() is not None:
            return super().fill(families)
        if not families:
            return
        nodes, rows = np.array([node for node, *_ in families]), np.array([row for _, row, _ in families])
        for node, row, value in zip(nodes.tolist(), rows, self.model.log_evidences(nodes, rows, self.stats)):
            self.known[node, row.tobytes()] = Estimate(float(value), 0.0, MOST)
