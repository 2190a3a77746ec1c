"""Schedules of the temperatures, and the settings that methods choose."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError
from dagpost.inference.dibs import Linear, Reheated, default_settings, paper_settings
from dagpost.models import MlpGaussian


def test_reheating_by_hand():
    schedule = Reheated(last=100.0, low=1.0, first=10, cycle=4)
    found = [float(schedule(t)) for t in (0, 5, 9, 10, 12, 13, 14, 18)]
    np.testing.assert_allclose(found, [0, 50, 90, 1, 10, 100**0.75, 1, 1], rtol=1e-5)


@pytest.mark.parametrize("name", ["last", "low", "first", "cycle"])
def test_reheating_wants_positive_numbers(name):
    with pytest.raises(InputError, match=name):
        Reheated(**{"last": 10.0, "low": 1.0, "first": 2, "cycle": 2, name: 0})


@pytest.mark.parametrize("model", [dp.BGe(), dp.LinearGaussian(), dp.LinearGaussian(None)])
def test_closed_forms_integrate_their_parameters_out(model):
    settings = default_settings(model, 20, 100)
    assert settings.collapsed and settings.estimator.kind == "flip" and settings.cyclic == "repair"
    assert settings.steps == 1000 and settings.bandwidth_z == 8


def test_defaults_follow_the_number_of_nodes_and_rows():
    small, middle, large = (default_settings(dp.BGe(), d, 100) for d in (5, 20, 100))
    assert small.steps == middle.steps < large.steps
    assert small.bandwidth_z < middle.bandwidth_z < large.bandwidth_z
    assert small.estimator.samples == middle.estimator.samples > large.estimator.samples == 1
    few, many = (default_settings(dp.BGe(), 20, n).beta for n in (50, 1600))
    assert isinstance(few, Linear) and isinstance(many, Linear)
    assert few.slope == middle.beta.slope and many.slope == pytest.approx(2 * few.slope)
    slow, fast = (default_settings(MlpGaussian(), d, 100).optimiser.rate for d in (50, 20))
    assert slow == pytest.approx(0.02 * 2.5**-1.5) and fast == 0.02


@pytest.mark.parametrize("steps", [1, 3, 50])
def test_temperatures_reach_their_end_in_any_number_of_steps(steps):
    settings = default_settings(dp.BGe(), 20, 100, steps=steps)
    assert settings.steps == steps
    assert float(settings.beta(np.array(steps))) == pytest.approx(2000)


def test_joint_inference_of_a_closed_form_on_request():
    settings = default_settings(dp.LinearGaussian(), 20, 100, collapsed=False)
    assert not settings.collapsed and settings.estimator.kind == "gumbel"


def test_a_full_scale_matrix_uses_the_score_function():
    model = dp.BGe(scale_matrix=np.eye(3) + 0.1)
    assert default_settings(model, 3, 100).estimator.kind == "score"


@pytest.mark.parametrize("d, slope, bandwidth", [(5, 0.2, 5.0), (20, 0.2, 5.0), (50, 0.02, 15.0)])
def test_published_settings(d, slope, bandwidth):
    settings = paper_settings(dp.LinearGaussian(), d)
    assert settings.steps == 3000 and settings.alpha == Linear(slope) and settings.beta == Linear(1.0)
    assert settings.bandwidth_z == bandwidth and settings.estimator.samples == 128
    assert settings.estimator.grouping == "graph" and settings.acyclicity == "sampled" and settings.cyclic == "drop"
