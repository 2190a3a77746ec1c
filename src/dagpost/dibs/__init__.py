"""DiBS: differentiable Bayesian structure learning (Lorch et al. 2021)."""

from dagpost.dibs.estimators import Estimator
from dagpost.dibs.inference import infer
from dagpost.dibs.latent import InnerProduct, ScalarEmbedding
from dagpost.dibs.presets import default_settings, paper_settings
from dagpost.dibs.schedules import Constant, Geometric, Linear, Reheated
from dagpost.dibs.settings import RmsProp, Settings
from dagpost.dibs.svgd import Snapshot
from dagpost.dibs.together import infer_together

__all__ = [
    "Constant",
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
    "infer_together",
    "paper_settings",
]
