"""Categorical networks of the literature, and rows simulated from them."""

from functools import lru_cache
from itertools import product

import numpy as np
import pandas as pd

import dagpost as dp
from dagpost.graphs import topological_order

YES_NO = ("no", "yes")


class Network:
    """Parents of every node, and the probabilities of its levels for each combination of theirs."""

    def __init__(self, levels, parents, tables):
        self.names, self.levels, self.parents, self.tables = tuple(levels), levels, parents, tables

    @property
    def graph(self):
        out = np.zeros((len(self.names),) * 2, dtype=bool)
        for j, name in enumerate(self.names):
            for parent in self.parents[name]:
                out[self.names.index(parent), j] = True
        return out

    def sample(self, rows, seed, do=None):
        """Rows by ancestral sampling, under interventions if there are any."""
        rng, codes = np.random.default_rng(seed), {}
        for j in topological_order(self.graph):
            name = self.names[j]
            size = len(self.levels[name])
            if do and name in do:
                codes[name] = np.full(rows, self.levels[name].index(do[name]))
                continue
            table = np.array([self.tables[name][c] for c in product(*(self.levels[p] for p in self.parents[name]))])
            shape = tuple(len(self.levels[p]) for p in self.parents[name])
            given = tuple(codes[p] for p in self.parents[name])
            place = np.ravel_multi_index(given, shape) if given else np.zeros(rows, int)
            below = np.cumsum(table, axis=1)[place]
            codes[name] = np.minimum((rng.random(rows)[:, None] > below).sum(axis=1), size - 1)
        columns = {n: pd.Categorical.from_codes(codes[n], list(self.levels[n])) for n in self.names}
        return pd.DataFrame(columns)


def asia():
    """The chest clinic of Lauritzen and Spiegelhalter (1988), J. R. Statist. Soc. B 50, table 1."""

    def yes(**by):
        return {tuple(key.split("_")) if key else (): (1 - p, p) for key, p in by.items()}

    either = {(t, k): (float("yes" not in (t, k)), float("yes" in (t, k))) for t in YES_NO for k in YES_NO}
    return Network(
        dict.fromkeys(("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"), YES_NO),
        {
            "asia": (), "tub": ("asia",), "smoke": (), "lung": ("smoke",), "bronc": ("smoke",),
            "either": ("tub", "lung"), "xray": ("either",), "dysp": ("bronc", "either"),
        },
        {
            "asia": {(): (0.99, 0.01)}, "tub": yes(yes=0.05, no=0.01), "smoke": {(): (0.5, 0.5)},
            "lung": yes(yes=0.1, no=0.01), "bronc": yes(yes=0.6, no=0.3), "either": either,
            "xray": yes(yes=0.98, no=0.05), "dysp": yes(yes_yes=0.9, yes_no=0.8, no_yes=0.7, no_no=0.1),
        },
    )  # fmt: skip


def discrete_sachs():
    """The protein network of the bnlearn repository, 17 edges and three levels: as pgmpy ships it, if it is there, else
    with tables from the bundled data."""
    try:
        from pgmpy.utils import get_example_model
    except ImportError:
        return sachs_from_data()
    model = get_example_model("sachs")
    tables, parents = {}, {}
    for name in model.nodes():
        table = model.get_cpds(name)
        parents[name] = tuple(table.variables[1:])
        combinations = product(*(model.states[p] for p in parents[name]))
        tables[name] = dict(zip(combinations, map(tuple, np.asarray(table.get_values()).T)))
    return Network({name: tuple(model.states[name]) for name in model.nodes()}, parents, tables)


THIRDS = ("low", "medium", "high")


def sachs_terciles():
    """The 7,466 rows of the bundled data, every protein cut at its terciles."""
    data = dp.sachs()
    low, high = np.quantile(data.values, [1 / 3, 2 / 3], axis=0)
    codes = (data.values > low).astype(int) + (data.values > high)
    return pd.DataFrame({n: pd.Categorical.from_codes(c, list(THIRDS)) for n, c in zip(data.names, codes.T)})


@lru_cache(maxsize=1)
def sachs_from_data():
    """The same network with tables from the bundled data: the frequencies of levels, one row added to each cell."""
    frame = sachs_terciles()
    codes = np.column_stack([frame[name].cat.codes for name in frame])
    names, levels = tuple(frame), THIRDS
    graph = dp.sachs_graph("bnlearn")
    graph = graph.loc[list(names), list(names)].to_numpy() if isinstance(graph, pd.DataFrame) else np.asarray(graph)
    parents = {name: tuple(names[i] for i in np.flatnonzero(graph[:, j])) for j, name in enumerate(names)}
    tables = {}
    for j, name in enumerate(names):
        tables[name] = {}
        for given in product(range(3), repeat=len(parents[name])):
            rows = np.all([codes[:, names.index(p)] == v for p, v in zip(parents[name], given)], axis=0)
            counts = np.bincount(codes[np.broadcast_to(rows, len(codes)), j], minlength=3) + 1.0
            tables[name][tuple(levels[v] for v in given)] = tuple(counts / counts.sum())
    return Network(dict.fromkeys(names, levels), parents, tables)
