"""Conversion of a posterior to a pgmpy network."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from dagpost.errors import InputError
from dagpost.interfaces.scikit_learn import StructureLearner, consensus_dag
from dagpost.posterior import Posterior


def to_pgmpy(source: Posterior | StructureLearner) -> Any:
    """Return the consensus graph as a pgmpy network, for pgmpy's inference and plots.

    The network holds nodes and edges alone, without conditional distributions.

    Parameters
    ----------
    source
        A posterior, or a `StructureLearner` that has been fitted.

    Returns
    -------
    pgmpy.base.DAG
        Named after the columns of the data; the edges are those of `Posterior.consensus_graph`.

    Raises
    ------
    InputError
        If pgmpy is not installed, or cannot be imported.
    """
    try:
        from pgmpy.base import DAG  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] == "pgmpy":
            raise InputError("pgmpy is not installed: pip install pgmpy") from None
        raise InputError(f"pgmpy is installed but cannot be imported: {error}") from error
    if isinstance(source, StructureLearner):
        check_is_fitted(source, "posterior_")
        source = source.posterior_
    graph = consensus_dag(source)
    network = DAG()
    network.add_nodes_from(graph.nodes)
    network.add_edges_from(graph.edges)
    return network
