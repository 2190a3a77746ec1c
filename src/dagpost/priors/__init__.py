"""Priors over graphs, behind `GraphPrior`, and prior knowledge."""

from __future__ import annotations

from dagpost.errors import from_registry
from dagpost.priors.base import GraphPrior, InDegreePrior
from dagpost.priors.constraints import Constraints
from dagpost.priors.in_degree import ErdosRenyi, ScaleFree, Uniform
from dagpost.priors.informed import InformedPrior, informed
from dagpost.priors.knowledge import Knowledge, as_knowledge
from dagpost.priors.unknown_density import UnknownDensity

PRIORS: dict[str, type[GraphPrior]] = {p.name: p for p in (ErdosRenyi, ScaleFree, Uniform, UnknownDensity)}


def as_prior(prior: str | GraphPrior) -> GraphPrior:
    """Return a prior by name with its default settings, or the prior itself.

    Parameters
    ----------
    prior
        `"erdos-renyi"`, `"scale-free"`, `"uniform"`, `"unknown-density"`, or a `GraphPrior`.

    Returns
    -------
    GraphPrior
        The prior.
    """
    return from_registry("prior", prior, GraphPrior, PRIORS)


__all__ = [
    "PRIORS",
    "Constraints",
    "ErdosRenyi",
    "GraphPrior",
    "InDegreePrior",
    "InformedPrior",
    "Knowledge",
    "ScaleFree",
    "Uniform",
    "UnknownDensity",
    "as_knowledge",
    "as_prior",
    "informed",
]
