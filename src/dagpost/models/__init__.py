"""Models of the local conditional distributions, one file each, behind `Model`."""

from __future__ import annotations

from dagpost.errors import from_registry
from dagpost.models.additive import Additive, AdditiveTheta
from dagpost.models.base import Model, Statistics
from dagpost.models.bdeu import BDeu, BdeuTheta
from dagpost.models.bge import BGe
from dagpost.models.copula import Copula
from dagpost.models.gaussian_process import GaussianProcess, GpTheta
from dagpost.models.linear_gaussian import LinearGaussian, LinearTheta
from dagpost.models.mlp_gaussian import MlpGaussian, MlpTheta
from dagpost.models.perturbed import Perturbed, perturbed
from dagpost.models.targets import Targets

MODELS: dict[str, type[Model]] = {
    m.name: m for m in (BGe, LinearGaussian, Additive, GaussianProcess, MlpGaussian, BDeu, Copula)
}


def as_model(model: str | Model) -> Model:
    """Return a model by name with the paper's settings, or the model itself.

    Parameters
    ----------
    model
        `"bge"`, `"linear"`, `"additive"`, `"gp"`, `"mlp"`, `"bdeu"`, `"copula"`, or a `Model`.

    Returns
    -------
    Model
        The model.
    """
    return from_registry("model", model, Model, MODELS)


__all__ = [
    "MODELS",
    "Additive",
    "AdditiveTheta",
    "BDeu",
    "BGe",
    "BdeuTheta",
    "Copula",
    "GaussianProcess",
    "GpTheta",
    "LinearGaussian",
    "LinearTheta",
    "MlpGaussian",
    "MlpTheta",
    "Model",
    "Perturbed",
    "Statistics",
    "Targets",
    "as_model",
    "perturbed",
]
