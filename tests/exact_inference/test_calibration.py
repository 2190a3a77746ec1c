"""Simulation-based calibration: with truth drawn from the prior, posterior ranks are uniform.

For a statistic T of (graph, data), `u = P(T < t* | D) + v P(T = t* | D)` with v uniform is exactly uniform
when the posterior is right. Error rate of each test: 1e-4, seeds fixed.
"""

import numpy as np
import pytest
from scipy.stats import kstest

import dagpost as dp

SIMULATIONS = 1000
CASES = [
    (dp.BGe(), dp.Uniform()),
    (dp.LinearGaussian(), dp.ErdosRenyi(probability=0.3)),
    (dp.LinearGaussian(None), dp.ScaleFree()),
]


def ranks(model, prior, observations, simulations, claimed_prior=None):
    rng = np.random.default_rng(0)
    out = {"edges": [], "edge 0 -> 1": [], "log likelihood": []}
    for seed in range(simulations):
        sim = dp.simulate(
            model, prior, nodes=4, observations=observations, seed=seed, source="density",
            test_observations=0, interventional_sets=0,
        )  # fmt: skip
        post = dp.exact(sim.train, model, claimed_prior or prior)
        likelihood = model.log_evidence_of(post.graphs, model.summarise(sim.train))
        truth = (post.graphs == sim.graph).all(axis=(1, 2)).argmax()
        for name, values in (
            ("edges", post.graphs.sum(axis=(1, 2))),
            ("edge 0 -> 1", post.graphs[:, 0, 1]),
            ("log likelihood", np.round(likelihood, 8)),
        ):
            below = post.weights[values < values[truth]].sum()
            equal = post.weights[values == values[truth]].sum()
            out[name].append(below + rng.random() * equal)
    return out


@pytest.mark.parametrize("model, prior", CASES, ids=["bge-uniform", "linear-er", "linear-noise-sf"])
def test_exact_posterior_is_calibrated(model, prior):
    for name, values in ranks(model, prior, 20, SIMULATIONS).items():
        assert kstest(values, "uniform").pvalue > 1e-4, name


def test_a_wrong_prior_is_noticed():
    """The test can fail: the same data analysed under another prior are not calibrated."""
    found = ranks(dp.BGe(), dp.ScaleFree(), 5, 300, claimed_prior=dp.Uniform())
    assert kstest(found["edges"], "uniform").pvalue < 1e-6
