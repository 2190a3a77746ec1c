"""One contract for every method."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import is_acyclic
from dagpost.inference.fit import METHODS

SIM = dp.simulate(nodes=5, observations=50, seed=1)
SHORT = {"particles": 4, "burn_in": 50, "thin": 5}
SMALL = {
    "auto": {"particles": 4, "steps": 30, "draws": 50, "precision": 0.05},
    "dibs": {"particles": 4, "steps": 30},
    "dibs-paper": {"particles": 4, "steps": 30, "cyclic": "repair"},
    "mc3": SHORT,
    "m-mc3": SHORT,
    "g-mc3": SHORT,
    "bootstrap-pc": {"particles": 3},
    "bootstrap-ges": {"particles": 3},
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", ["bge", "linear"])
def test_every_method_returns_a_posterior(method, model):
    if model == "bge" and method in ("m-mc3", "g-mc3"):
        pytest.skip("BGe has no parameters to sample; the error is tested in test_joint.py")
    frame = SIM.train.frame().rename(columns={"x0": "Erk 1/2"})
    one, two = (dp.fit(frame, model, method=method, seed=3, **SMALL.get(method, {})) for _ in range(2))
    assert one.names[0] == "Erk 1/2" and one.info["method"] == method
    assert is_acyclic(one.graphs).all()
    assert one.weights.sum() == pytest.approx(1)
    np.testing.assert_array_equal(one.graphs, two.graphs)
    assert one.weighted("posterior").weights.sum() == pytest.approx(1)
    assert np.isfinite(dp.metrics.negative_log_likelihood(one, SIM.test.values))


def test_interventions_reach_the_model():
    mask = np.zeros(SIM.train.values.shape, dtype=bool)
    mask[:20, 1] = True
    plain = dp.fit(SIM.train, "bge", method="exact")
    other = dp.fit(SIM.train, "bge", method="exact", interventions=mask)
    assert (plain.edge_marginals != other.edge_marginals).any()
    assert len(dp.fit(SIM.train, "linear", method="dibs", particles=3, steps=20, interventions=mask)) == 3


@pytest.mark.parametrize(
    "options, message",
    [
        ({"method": "dib"}, "did you mean 'dibs'"),
        ({"particles": 0}, "particles=0"),
        ({"steps": -1}, "steps=-1"),
        ({"draws": 1.5}, "draws=1.5"),
        ({"seed": -2}, "seed=-2"),
        ({"bandwith_z": 1.0}, "did you mean 'bandwidth_z'"),
        ({"bandwidth_z": -1.0}, "bandwidth_z=-1.0"),
        ({"method": "bootstrap-pc", "significance": 0}, "significance=0: give a number between 0 and 1"),
        ({"method": "bootstrap-pc", "significance": "0.05"}, "significance='0.05': give a number between 0 and 1"),
        ({"method": "bootstrap-pc", "without_dag": "halv"}, "without_dag='halv': did you mean 'halve'"),
        ({"method": "bootstrap-pc", "signifcance": 0.1}, "did you mean 'significance'"),
        ({"method": "bootstrap-ges", "significance": 0.1}, "unknown option 'significance'"),
        ({"method": "bootstrap-ges", "without_dag": "drop"}, "unknown option 'without_dag'"),
    ],
)
def test_errors_name_the_cause(options, message):
    with pytest.raises(InputError, match=message):
        dp.fit(SIM.train, **options)
