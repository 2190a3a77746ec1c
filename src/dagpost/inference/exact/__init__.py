"""Exact posteriors over DAGs: enumeration, dynamic programming over layers, and draws by way of orders."""

from dagpost.inference.exact.method import Exact
from dagpost.inference.exact.posterior import ExactPosterior

__all__ = ["Exact", "ExactPosterior"]
