import jax
import numpy as np
import pytest
from scipy.stats import norm

from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.models import MlpGaussian

VALUES = np.random.default_rng(0).normal(size=(15, 4))
GRAPH = np.triu(np.ones((4, 4), dtype=bool), 1)
ACTIVATION = {
    "relu": lambda x: np.maximum(x, 0),
    "tanh": np.tanh,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
}


def by_hand(model, theta, graph, values):
    """Log likelihood and log parameter prior, node by node and layer by layer, in plain NumPy."""
    likelihood = prior = 0.0
    for j in range(graph.shape[0]):
        signal = np.where(graph[:, j], values, 0)
        for layer, weight in enumerate(theta.weights):
            signal = signal @ np.asarray(weight[j], dtype=float)
            if model.bias:
                signal = signal + np.asarray(theta.biases[layer][j], dtype=float)
                prior += norm.logpdf(theta.biases[layer][j]).sum()
            present = np.asarray(weight[j])[graph[:, j]] if layer == 0 else np.asarray(weight[j])
            prior += norm.logpdf(present).sum()
            if layer < len(theta.weights) - 1:
                signal = ACTIVATION[model.activation](signal)
        variance = model.noise_variance if model.noise_variance else np.exp(theta.log_variance[j])
        likelihood += norm.logpdf(values[:, j], signal[:, 0], np.sqrt(variance)).sum()
    return likelihood, prior


@pytest.mark.slow
@pytest.mark.parametrize("activation", ACTIVATION)
@pytest.mark.parametrize("hidden", [(), (5,), (3, 4)], ids=str)
@pytest.mark.parametrize("bias", [True, False])
def test_density_by_hand(activation, hidden, bias):
    model = MlpGaussian(hidden=hidden, activation=activation, bias=bias)
    theta = model.sample_theta(jax.random.key(0), 4)
    likelihood, prior = by_hand(model, theta, GRAPH, VALUES)
    assert model.log_likelihood(GRAPH, theta, Dataset(VALUES)) == pytest.approx(likelihood, rel=1e-6)
    with jax.enable_x64(True):
        joint = float(model.log_joint(GRAPH, theta, model.summarise(Dataset(VALUES))))
    assert joint == pytest.approx(likelihood + prior, rel=1e-6)


@pytest.mark.slow
def test_learned_noise():
    from scipy.stats import invgamma

    model = MlpGaussian(noise_variance=None)
    theta = model.sample_theta(jax.random.key(1), 4)
    likelihood, prior = by_hand(model, theta, GRAPH, VALUES)
    v = np.asarray(theta.log_variance, dtype=float)
    prior += (invgamma(1.5, scale=0.25).logpdf(np.exp(v)) + v).sum()
    with jax.enable_x64(True):
        joint = float(model.log_joint(GRAPH, theta, model.summarise(Dataset(VALUES))))
    assert joint == pytest.approx(likelihood + prior, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("d, count", [(20, 2220), (50, 13050)])
def test_number_of_parameters_is_the_papers(d, count):
    theta = MlpGaussian().sample_theta(jax.random.key(0), d)
    assert sum(leaf.size for leaf in jax.tree.leaves(theta)) == count


@pytest.mark.parametrize(
    "options, message",
    [
        ({"hidden": (0,)}, "hidden"),
        ({"activation": "rellu"}, "did you mean 'relu'"),
        ({"noise_variance": -1.0}, "noise_variance"),
        ({"weight_scale": 0.0}, "weight_scale"),
    ],
)
def test_bad_settings_are_named(options, message):
    with pytest.raises(InputError, match=message):
        MlpGaussian(**options)
