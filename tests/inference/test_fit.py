"""One contract for every method."""

from dataclasses import dataclass

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.graphs import is_acyclic
from dagpost.inference.fit import METHODS, as_method

SIM = dp.simulate(nodes=5, observations=50, seed=1, interventional_sets=0)
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


@pytest.mark.slow
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


OBJECTS = {
    "auto": dp.Auto(draws=50, precision=0.05, dibs=dp.Dibs(particles=4, steps=30)),
    "dibs": dp.Dibs(particles=4, steps=30),
    "dibs-paper": dp.Dibs(particles=4, published=True, steps=30, cyclic="repair"),
    "mc3": dp.Mc3(**SHORT),
    "m-mc3": dp.JointMc3(variant="m", **SHORT),
    "g-mc3": dp.JointMc3(variant="g", **SHORT),
    "bootstrap-pc": dp.Bootstrap("pc", 3),
    "bootstrap-ges": dp.Bootstrap("ges", 3),
    "exact": dp.Exact(),
}


@pytest.mark.parametrize("method", METHODS)
def test_a_name_with_options_is_an_object(method):
    """Every registered method has an object, which its name with options builds."""
    chosen = as_method(method, options=SMALL.get(method, {}))
    assert chosen == OBJECTS[method] and chosen.name == method
    assert isinstance(chosen, dp.Method)
    assert set(SMALL.get(method, {})) <= set(chosen.options())
    with pytest.raises(AttributeError):  # frozen
        chosen.particles = 3


@pytest.mark.parametrize("method", ["auto", "mc3", "exact"])
def test_objects_give_the_same_posterior(method):
    by_name = dp.fit(SIM.train, "bge", method=method, seed=3, **SMALL.get(method, {}))
    by_object = dp.fit(SIM.train, "bge", method=OBJECTS[method], seed=3)
    np.testing.assert_array_equal(by_name.edge_marginals, by_object.edge_marginals)
    np.testing.assert_array_equal(by_name.graphs, by_object.graphs)
    assert by_name.info["options"] == by_object.info["options"]


@dataclass(frozen=True)
class EmptyGraph(dp.Method):
    """A user-defined method."""

    copies: int = 2

    @property
    def name(self):
        return "empty"

    def run(self, problem):
        graphs = np.zeros((self.copies, problem.data.nodes, problem.data.nodes), dtype=bool)
        return dp.Posterior(graphs, np.zeros(self.copies), problem.data.names, problem.model, problem.prior)


def test_user_defined_methods():
    post = dp.fit(SIM.train, "bge", method=EmptyGraph(copies=3), seed=5)
    assert len(post) == 3 and post.expected_edges == 0
    assert post.info["options"] == {"method": "empty", "copies": 3, "seed": 5}


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
        ({"method": "dibs", "published": True}, "unknown option 'published'"),
        ({"method": dp.Mc3(), "thin": 3}, "'thin' is an option of the method: set it there, Mc3"),
        ({"method": dp.Mc3(), "particles": 3}, "'particles' is an option of the method: set it there, Mc3"),
        ({"method": dp.Mc3}, "unknown method"),
        ({"method": "mc3", "callback": print}, "'mc3' cannot be watched"),
        ({"method": "exact", "time_limit": 3}, "leave `time_limit` out"),
        ({"model": "bge", "start": "gess"}, "unknown start 'gess': did you mean 'ges'"),
    ],
)
def test_errors_name_the_cause(options, message):
    with pytest.raises(InputError, match=message):
        dp.fit(SIM.train, **options)
