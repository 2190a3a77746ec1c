"""DiBS: differentiable Bayesian structure learning (Lorch et al. 2021)."""

from dagpost.inference.dibs.batched import infer_batched
from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.inference import Dibs, infer
from dagpost.inference.dibs.latent import InnerProduct, ScalarEmbedding
from dagpost.inference.dibs.settings import (
    Constant,
    Geometric,
    Linear,
    Reheated,
    RmsProp,
    Settings,
    default_settings,
    paper_settings,
)
from dagpost.inference.dibs.svgd import Snapshot

__all__ = [
    "Constant",
    "Dibs",
    "Estimator",
    "Geometric",
    "InnerProduct",
    "Linear",
    "Reheated",
    "RmsProp",
    "ScalarEmbedding",
    "Settings",
    "Snapshot",
    "default_settings",
    "infer",
    "infer_batched",
    "paper_settings",
]
