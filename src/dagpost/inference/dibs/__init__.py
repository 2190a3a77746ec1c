"""DiBS: differentiable Bayesian structure learning (Lorch et al. 2021)."""

from dagpost.inference.dibs.batched import infer_batched
from dagpost.inference.dibs.estimators import Estimator
from dagpost.inference.dibs.inference import Dibs, infer
from dagpost.inference.dibs.latent import InnerProduct, ScalarEmbedding
from dagpost.inference.dibs.posterior import DibsPosterior, Latent
from dagpost.inference.dibs.samplers import Constant, Geometric, Hmc, Linear, Reheated, RmsProp, Sgld
from dagpost.inference.dibs.settings import Settings, default_settings, paper_settings
from dagpost.inference.dibs.svgd import Snapshot

__all__ = [
    "Constant",
    "Dibs",
    "DibsPosterior",
    "Estimator",
    "Geometric",
    "Hmc",
    "InnerProduct",
    "Latent",
    "Linear",
    "Reheated",
    "RmsProp",
    "ScalarEmbedding",
    "Settings",
    "Sgld",
    "Snapshot",
    "default_settings",
    "infer",
    "infer_batched",
    "paper_settings",
]
