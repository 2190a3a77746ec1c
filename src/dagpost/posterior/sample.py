"""Weighted graphs with their parameters: the data that every posterior holds, its weights and edge probabilities.

Draws of a Markov chain resemble their neighbours, so their mean is less precise than that of as many independent draws.
A sample made of chains keeps its draws chain by chain, each in order of time, and records how many each has.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeVar
from weakref import WeakValueDictionary

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy.special import log_softmax

from dagpost._util.numerics import log_sum_exp
from dagpost.data import Dataset, Scaling
from dagpost.data.names import check_names
from dagpost.errors import InputError, WeightingWarning, nearest, printable
from dagpost.graphs import is_acyclic
from dagpost.models import Model
from dagpost.posterior.pairs import adjacency
from dagpost.posterior.records import ImputedCells, RunRecord
from dagpost.priors import GraphPrior
from dagpost.typing import Graph, Graphs, Theta

NORMALISED = 1e-12
"""Log weights whose sum is this close to 0 are left as they are."""


@dataclass(frozen=True, eq=False, repr=False)
class GraphSample:
    """Weighted DAGs (and parameters): what every question to a posterior is asked of.

    `graphs[m, i, j]` is True for i -> j. `log_weights` are normalised. `log_joint` holds the unnormalised
    log posterior of each graph, `log p(G) + log p(Theta, D | G)`, in float64; for a model that has integrated
    its parameters out it is `log p(G) + log p(D | G)`. `marginals` are edge probabilities sharper than the
    weighted graphs give, where a method has them; they are used in place of the average. `data` are the data it was
    fitted to, where they are at hand; they are not saved, but draws of their missing cells are: `cells`.
    """

    graphs: Graphs
    log_weights: Float[np.ndarray, " m"]
    names: tuple[str, ...]
    model: Model
    prior: GraphPrior
    theta: Theta = ()
    log_joint: Float[np.ndarray, " m"] | None = None
    multiplicity: Int[np.ndarray, " m"] | None = None
    marginals: Float[np.ndarray, "d d"] | None = None
    record: RunRecord = field(default_factory=RunRecord)
    data: Dataset | None = None
    cells: ImputedCells | None = None

    def __post_init__(self):
        graphs = _checked_graphs(self.graphs)
        weights = np.array(self.log_weights, dtype=np.float64)
        if weights.shape != (len(graphs),) or np.isnan(weights).any() or not np.isfinite(log_sum_exp(weights)):
            raise InputError("log_weights must hold one number for each graph, not all of them -inf")
        if abs(log_sum_exp(weights)) > NORMALISED:  # so that weights read from a file keep their last bit
            weights = log_softmax(weights)
        names = check_names(self.names, graphs.shape[1])
        weights.setflags(write=False)
        object.__setattr__(self, "graphs", graphs)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "log_weights", weights)

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        method = self.record.method or "posterior"
        size = f"{len(self)} graphs on {self.nodes} nodes, {self.expected_edges:.1f} edges"
        return f"{type(self).__name__}({method}: {size})"

    @property
    def nodes(self) -> int:
        return self.graphs.shape[1]

    @property
    def weights(self) -> Float[np.ndarray, " m"]:
        """Normalised weights."""
        return np.exp(self.log_weights)

    @property
    def info(self) -> dict[str, Any]:
        """Everything that the run says of itself in one dictionary of plain values; `record` has it as fields."""
        return self.record.flat()

    def with_record(self, **changes: Any) -> Self:
        """Return the same posterior with these fields of its record changed."""
        return replace(self, record=replace(self.record, **changes))

    def index(self, node: str | int) -> int:
        """The position of a node, given by name or by position."""
        if isinstance(node, str):
            if node not in self.names:
                raise InputError(f"unknown node '{printable(node)}': {nearest(node, self.names)}")
            return self.names.index(node)
        if isinstance(node, bool) or not hasattr(node, "__index__") or not 0 <= node < self.nodes:
            raise InputError(f"node {node!r}: there are {self.nodes} nodes, counted from 0")
        return int(node)

    @property
    def is_exhaustive(self) -> bool:
        """Whether the graphs are all DAGs with their exact probabilities, so that averages have no sampling error."""
        return self.record.sampling.exhaustive

    @property
    def is_sample(self) -> bool:
        """Whether the graphs are draws of the posterior itself, so that equal weights are the right ones."""
        return self.record.sampling.sample

    @property
    def is_collapsed(self) -> bool:
        """Whether graphs were inferred with their parameters integrated out: `log_joint` is `log p(G) p(D | G)`, and
        `theta` holds a draw given each graph."""
        collapsed = self.record.sampling.collapsed
        return not jax.tree.leaves(self.theta) if collapsed is None else collapsed

    @property
    def scaling(self) -> Scaling | None:
        """The recorded step from raw units to those of the fit, if the data were standardised."""
        recorded = self.record.provenance.scaling
        if recorded is None:
            return None if self.data is None else self.data.scaling
        return Scaling(np.array(recorded["mean"]), np.array(recorded["scale"]))

    @property
    def levels(self) -> tuple[tuple[str, ...], ...]:
        """Names of the categories of every node, () for a continuous one."""
        recorded = self.record.provenance.levels
        if recorded is None:
            return ((),) * self.nodes if self.data is None else self.data.levels
        return tuple(tuple(levels) for levels in recorded)

    def latent_expectation(
        self, feature: Callable[..., Any], *, parameters: bool = False, samples: int = 1000, seed: int = 0
    ) -> Any:
        """Raise an error: only what DiBS returns has latent particles (`dp.dibs.DibsPosterior`), until it is saved."""
        raise InputError(
            "latent_expectation needs the latent particles of DiBS, which only dp.fit(..., method='dibs') returns and "
            "files do not hold: call expectation, or ask before saving"
        )

    def weighted(self, kind: Literal["uniform", "posterior"]) -> Self:
        """The same graphs, weighted alike ("uniform", DiBS) or by their posterior ("posterior", DiBS+).

        Posterior weights are proportional to `p(G) p(Theta, D | G)`, or to `p(G) p(D | G)` where the parameters are
        integrated out; equal graphs are merged first (see `merged`), since their number carries no weight here.
        "uniform" gives every graph the share of draws that it stands for.

        Draws of the posterior itself (`is_sample`: MCMC, and DiBS particles that ended with Metropolis moves) are
        already as frequent as they are probable. To weigh them by their posterior would count it twice, so
        "posterior" leaves them as they are and says so in a `WeightingWarning`.

        >>> import dagpost as dp
        >>> data = dp.simulate(nodes=3, observations=50, seed=1).train
        >>> post = dp.fit(data, method="dibs", particles=6, steps=50, moves=0)
        >>> len(post), len(post.weighted("posterior")) <= 6
        (6, True)
        """
        if kind == "uniform":
            return replace(self, log_weights=np.log(self._multiplicity()), marginals=None)
        if kind != "posterior":
            raise InputError(f"unknown weighting {kind!r}: {nearest(str(kind), ['uniform', 'posterior'])}")
        if self.is_sample:
            warnings.warn(
                f"the graphs of method {self.record.method!r} are draws of the posterior and have the right "
                "weights already: weighted('posterior') leaves them as they are",
                WeightingWarning,
                stacklevel=2,
            )
            return self
        if self.log_joint is None:
            raise InputError("this posterior does not know the log density of its graphs: weigh it uniformly")
        return self._by_posterior()

    def _by_posterior(self) -> Self:
        """Return the graphs, equal ones merged, weighted by their posterior."""
        merged = self.merged()
        assert merged.log_joint is not None
        record = merged.record.with_sampling(chain_lengths=None)
        return replace(merged, log_weights=merged.log_joint, marginals=None, record=record)

    def merged(self) -> Self:
        """Equal graphs joined into one, their weights added up.

        Parameters must be equal too where they were inferred together with the graph. Where they are integrated out
        (`is_collapsed`) each copy of a graph has a fresh draw of them: copies are equal, and the first draw is kept.
        """
        told_apart = () if self.is_collapsed else jax.tree.leaves(self.theta)
        parts = [np.asarray(leaf).reshape(len(self), -1) for leaf in (self.graphs, *told_apart)]
        rows = [b"".join(part[m].tobytes() for part in parts) for m in range(len(self))]
        first: dict[bytes, int] = {}
        member = np.array([first.setdefault(row, len(first)) for row in rows])
        if len(first) == len(self):
            return self
        keep = np.unique(member, return_index=True)[1]
        weights = np.full(len(keep), -np.inf)
        np.logaddexp.at(weights, member, self.log_weights)
        return replace(
            self,
            graphs=self.graphs[keep],
            log_weights=weights,
            theta=jax.tree.map(lambda leaf: leaf[keep], self.theta),
            log_joint=None if self.log_joint is None else self.log_joint[keep],
            multiplicity=np.bincount(member, weights=self._multiplicity()).astype(np.int64),
            record=self.record.with_sampling(chain_lengths=None),
        )

    def _multiplicity(self) -> np.ndarray:
        return np.ones(len(self), dtype=np.int64) if self.multiplicity is None else self.multiplicity

    @property
    def edge_probabilities(self) -> pd.DataFrame:
        """Probability of every edge; row i, column j for i -> j."""
        return self.labelled(self.edge_marginals)

    @property
    def edge_marginals(self) -> Float[np.ndarray, "d d"]:
        """The same as a bare array."""
        if self.marginals is not None:
            return np.array(self.marginals)
        return weighted_share(self.weights, self.graphs)

    @property
    def expected_edges(self) -> float:
        """Posterior mean of the number of edges."""
        return float(self.edge_marginals.sum())

    def labelled(self, matrix: np.ndarray) -> pd.DataFrame:
        """A d x d matrix with the names of the columns on both sides."""
        return pd.DataFrame(matrix, index=list(self.names), columns=list(self.names))

    def edge_table(self) -> pd.DataFrame:
        """Edges with their probability, most probable first.

        `adjacent` is the probability of an edge between the two nodes, in either direction, and `direction` the share
        of this direction in it.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> list(post.edge_table().columns)
        ['cause', 'effect', 'probability', 'adjacent', 'direction']
        """
        return self._table_of(~np.eye(self.nodes, dtype=np.bool_))

    def _table_of(self, edges: Graph) -> pd.DataFrame:
        """Return the rows of `edge_table` for these edges."""
        marginals = self.edge_marginals
        cause, effect = np.nonzero(edges)
        names = np.array(self.names, dtype=object)
        probability = marginals[cause, effect]
        adjacent = adjacency(marginals)[cause, effect]
        direction = np.divide(probability, adjacent, out=np.full_like(adjacent, 0.5), where=adjacent > 0)
        table = pd.DataFrame(
            {
                "cause": names[cause], "effect": names[effect], "probability": probability, "adjacent": adjacent,
                "direction": direction,
            }
        )  # fmt: skip
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def pair_table(self) -> pd.DataFrame:
        """Pairs of nodes in the more probable direction, those most probably joined by an edge first.

        The columns are those of `edge_table`. Whether two nodes are joined is often certain where the direction is
        not: then `adjacent` is near 1 and `direction` near 1/2.

        >>> import dagpost as dp
        >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
        >>> len(post.pair_table())
        3
        """
        marginals = self.edge_marginals
        likelier = (marginals > marginals.T) | np.triu(marginals == marginals.T, 1)
        table = self._table_of(likelier)
        return table.sort_values("adjacent", ascending=False, kind="stable", ignore_index=True)


_CHECKED: WeakValueDictionary[int, np.ndarray] = WeakValueDictionary()
"""Graphs that posteriors hold, by `id`: copies of a posterior with other weights or records share them."""


def _checked_graphs(graphs: Any) -> Graphs:
    """Return the graphs as an array of its own that cannot be written to; raise an error if one has a cycle."""
    if _CHECKED.get(id(graphs)) is graphs and not graphs.flags.writeable:
        return graphs
    out = np.array(graphs, dtype=np.bool_)
    if out.ndim != 3 or len(out) == 0:
        raise InputError("a posterior needs at least one graph")
    acyclic = is_acyclic(out)
    if not acyclic.all():
        raise InputError(f"graph {int(np.argmin(acyclic))} of the posterior has a cycle")
    out.setflags(write=False)
    _CHECKED[id(out)] = out
    return out


WIDE = 200
"""Nodes above which results are made in parts, and pages leave out what is least probable."""
CHUNK = 1 << 24
"""Entries of graphs that are averaged at a time: 128 MB in float64."""


def chunks_of(graphs: Graphs) -> Iterator[slice]:
    """Yield the draws in parts of at most `CHUNK` entries."""
    size = max(1, CHUNK // (graphs.shape[-1] ** 2))
    yield from (slice(at, at + size) for at in range(0, len(graphs), size))


def group_equal(parts: Iterable[Graphs]) -> tuple[list[bytes], Int[np.ndarray, " m"]]:
    """Return the distinct matrices among those of all parts, as packed bits in order, and which of them each one is."""
    rows = [row.tobytes() for part in parts for row in np.packbits(part.reshape(len(part), -1), axis=1)]
    distinct = sorted(set(rows))
    place = {row: number for number, row in enumerate(distinct)}
    return distinct, np.array([place[row] for row in rows])


def weighted_share(
    weights: Float[np.ndarray, " m"], graphs: Graphs, read: Callable[[Graphs], np.ndarray] = lambda graphs: graphs
) -> Float[np.ndarray, "d d"]:
    """Return `sum_m w_m f(G_m)` for an f that returns a Boolean matrix for each of some graphs."""
    chunks = list(chunks_of(graphs))
    if len(chunks) > 1 and np.ptp(weights) == 0:  # counting is quicker
        count = np.zeros(graphs.shape[1:], dtype=np.int64)
        for some in chunks:
            count += np.add.reduce(read(graphs[some]).view(np.uint8), axis=0, dtype=np.uint32)
        return count * weights[0]
    out = np.zeros(graphs.shape[1:])
    for some in chunks:
        out += np.einsum("m,mij->ij", weights[some], read(graphs[some]), optimize=True)
    return out


def chain_of_draws(post: GraphSample) -> Int[np.ndarray, " m"] | None:
    """Index of the chain that each draw comes from; None where the graphs are not equally weighted draws of chains."""
    lengths = post.record.sampling.chain_lengths
    if lengths is None or sum(lengths) != len(post) or np.ptp(post.log_weights) > 0:
        return None
    return np.repeat(np.arange(len(lengths)), lengths)


Sample = TypeVar("Sample", bound="GraphSample")
