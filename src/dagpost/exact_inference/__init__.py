"""Exact posteriors: enumeration, and dynamic programming over layers."""

from dagpost.exact_inference.posterior import ExactPosterior, exact

__all__ = ["ExactPosterior", "exact"]
