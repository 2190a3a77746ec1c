"""Exact posteriors over DAGs: enumeration, and dynamic programming over layers."""

from dagpost.inference.exact.posterior import Exact, ExactPosterior

__all__ = ["Exact", "ExactPosterior"]
