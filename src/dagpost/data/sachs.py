"""The protein-signalling data of Sachs et al. (Science, 2005): measurements, conditions, consensus graphs."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

import numpy as np
import pandas as pd

from dagpost.data.dataset import Dataset
from dagpost.errors import InputError, nearest

CONDITIONS: tuple[tuple[str, int, str | None], ...] = (
    ("anti-CD3/CD28", 853, None),
    ("ICAM-2", 902, None),
    ("AKT inhibitor", 911, "pakts473"),
    ("G06976", 723, "PKC"),
    ("psitectorigenin", 810, "PIP2"),
    ("U0126", 799, "pmek"),
    ("LY294002", 848, None),
    ("PMA", 913, "PKC"),
    ("b2cAMP", 707, "PKA"),
)
"""Name of each condition, its number of rows in file order, and the measured protein that the reagent acts on.

The first two are general stimulations. LY294002 inhibits PI3K, which was not measured, so it has no target.
"""

_EDGES = {
    # 18 edges, as the cdt package has them and as the DiBS paper uses them. Cyclic: plcg -> PIP2 -> PIP3 -> plcg.
    "cdt": (
        "PIP2>PKC plcg>PIP2 PIP3>plcg PIP2>PIP3 plcg>PKC PKC>pjnk PKC>P38 PKA>P38 PKC>praf PKA>praf praf>pmek "
        "pmek>p44/42 PKC>pmek PKA>pakts473 PIP3>pakts473 PKA>pmek PKA>p44/42 PKA>pjnk"
    ),
    # 17 edges, the network of the bnlearn repository
    "bnlearn": (
        "p44/42>pakts473 pmek>p44/42 PIP3>PIP2 PKA>pakts473 PKA>p44/42 PKA>pjnk PKA>pmek PKA>P38 PKA>praf "
        "PKC>pjnk PKC>pmek PKC>P38 PKC>PKA PKC>praf plcg>PIP2 plcg>PIP3 praf>pmek"
    ),
    # 20 edges, the consensus network of the original article
    "sachs20": (
        "p44/42>pakts473 pmek>p44/42 PIP2>PKC PIP3>pakts473 PIP3>PIP2 PIP3>plcg PKA>pakts473 PKA>p44/42 PKA>pjnk "
        "PKA>pmek PKA>P38 PKA>praf PKC>pjnk PKC>pmek PKC>P38 PKC>PKA PKC>praf plcg>PIP2 plcg>PKC praf>pmek"
    ),
}


@lru_cache(maxsize=1)
def _table() -> pd.DataFrame:
    """Return the bundled table."""
    with resources.as_file(resources.files("dagpost.data") / "bundled" / "sachs.csv.gz") as path:
        return pd.read_csv(path)


def sachs(interventions: bool = False, condition: str | None = None) -> Dataset:
    """Return the 7,466 measurements of 11 molecules, in raw units.

    Parameters
    ----------
    interventions
        Mark the molecule that the reagent of each condition acts on as intervened on. Inhibitors act on a molecule's
        activity rather than on the measured amount, so this is a modelling assumption.
    condition
        Return only the rows of this condition; None for all.

    Returns
    -------
    Dataset
        The measurements.

    Examples
    --------
    >>> sachs(condition="anti-CD3/CD28").observations
    853
    """
    labels = sachs_conditions().to_numpy()
    table = _table()
    mask = np.zeros(table.shape, dtype=np.bool_)
    if interventions:
        for name, _, target in CONDITIONS:
            if target is not None:
                mask[labels == name, table.columns.get_loc(target)] = True
    data = Dataset(table.to_numpy(), tuple(table.columns), mask)
    if condition is None:
        return data
    known = [name for name, _, _ in CONDITIONS]
    if condition not in known:
        raise InputError(f"unknown condition {condition!r}: {nearest(condition, known)}")
    return data.rows(labels == condition)


def sachs_conditions() -> pd.Series:
    """Return the experimental condition of every row of `sachs()`."""
    return pd.Series(np.repeat([c[0] for c in CONDITIONS], [c[1] for c in CONDITIONS]), name="condition")


def sachs_graph(name: str = "sachs20") -> pd.DataFrame:
    """Return a published consensus graph.

    Parameters
    ----------
    name
        `"sachs20"` (20 edges, the original article), `"bnlearn"` (17 edges) or `"cdt"` (18 edges, used by the DiBS
        paper, cyclic).

    Returns
    -------
    pd.DataFrame
        Adjacency matrix labelled by molecule, in the order of the data; entry (i, j) is True for i -> j.

    Examples
    --------
    >>> bool(sachs_graph("bnlearn").loc["praf", "pmek"])
    True
    """
    if name not in _EDGES:
        raise InputError(f"unknown consensus graph {name!r}: {nearest(name, _EDGES)}")
    names = list(_table().columns)
    graph = pd.DataFrame(np.zeros((len(names), len(names)), dtype=np.bool_), index=names, columns=names)
    for edge in _EDGES[name].split():
        cause, effect = edge.split(">")
        graph.loc[cause, effect] = True
    return graph
