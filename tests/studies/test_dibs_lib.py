"""The authors' library as a method: it gets our data and hyperparameters, and its failures are not results."""

import numpy as np
import pytest

from dagpost.data import Dataset
from dagpost.errors import InputError, RunError
from dagpost.models import BGe, LinearGaussian, MlpGaussian
from dagpost.posterior import Posterior
from dagpost.studies.dibs_lib import fit_dibs_lib, fit_dibs_lib_batched, sampler

pytest.importorskip("dibs")


def data(nodes):
    return Dataset(np.random.default_rng(0).standard_normal((30, nodes)))


VALUES = data(6).values


def test_hyperparameters_are_those_of_our_model():
    assert sampler(VALUES, BGe(alpha_mu=10.0), "erdos-renyi").likelihood_model.alpha_mu == 10.0
    assert sampler(VALUES, LinearGaussian(noise_variance=0.01), "scale-free").likelihood_model.obs_noise == 0.01
    assert sampler(VALUES, MlpGaussian(noise_variance=1.0), "erdos-renyi").likelihood_model.obs_noise == 1.0


def test_what_it_does_not_know_is_refused():
    with pytest.raises(InputError, match="unknown noise"):
        sampler(VALUES, LinearGaussian(noise_variance=None), "erdos-renyi")
    with pytest.raises(InputError, match="no prior 'uniform'"):
        sampler(VALUES, BGe(), "uniform")


@pytest.mark.slow
def test_its_particles_become_a_posterior_of_ours():
    post = fit_dibs_lib(data(6), BGe(), "scale-free", particles=4, steps=50, seed=1)
    assert post.info["method"] == "dibs-lib" and len(post) + post.info["cyclic"] == 4
    assert np.isfinite(post.log_joint).all()


@pytest.mark.long
def test_particles_that_are_not_finite_are_no_result():
    """Two edges for each of five nodes are all there are: its Erdős–Rényi prior takes the logarithm of zero."""
    with pytest.raises(RunError, match="not finite"):
        fit_dibs_lib(data(5), BGe(), "erdos-renyi", particles=3, steps=20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [LinearGaussian(), *(pytest.param(model, marks=pytest.mark.long) for model in (BGe(), MlpGaussian()))],
    ids=lambda model: model.name,
)
def test_runs_at_once_are_those_of_single_runs(model):
    sets = [Dataset(np.random.default_rng(number).standard_normal((20, 6))) for number in range(2)]
    settings = {"particles": 4, "steps": 200}  # after fewer steps particles of the MLP are cyclic
    at_once = fit_dibs_lib_batched(sets, model, "scale-free", seeds=[1, 2], **settings)
    for number, (one, post) in enumerate(zip(sets, at_once)):
        alone = fit_dibs_lib(one, model, "scale-free", seed=number + 1, **settings)
        assert isinstance(post, Posterior)
        np.testing.assert_array_equal(post.graphs, alone.graphs)
        np.testing.assert_allclose(post.log_joint, alone.log_joint, rtol=1e-3)
