"""Exact posteriors over DAGs: enumeration, and dynamic programming over layers."""

from dagpost.inference.exact.posterior import ExactPosterior, exact

__all__ = ["ExactPosterior", "exact"]
