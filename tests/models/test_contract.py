"""One contract for every model, shipped or written by a user."""

import importlib.util
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.models import MODELS, BDeu, BGe, LinearGaussian, MlpGaussian, Model, as_model

spec = importlib.util.spec_from_file_location("own_model", Path(__file__).parents[2] / "examples" / "own_model.py")
own_model = importlib.util.module_from_spec(spec)
spec.loader.exec_module(own_model)

VARIANTS = {
    "bge-full": BGe(scale_matrix=np.diag([1.0, 2, 3, 4, 5]) + 0.3, alpha_w=8.0),
    "linear-noise": LinearGaussian(None),
    "mlp-noise": MlpGaussian(hidden=(4, 3), activation="tanh", noise_variance=None, bias=False),
    "own": own_model.LaplaceLinear(),
    "bds": BDeu(2.0, "bds"),
}
EVERY = {**{name: kind() for name, kind in MODELS.items()}, **VARIANTS}
D = 5
RNG = np.random.default_rng(0)
VALUES = RNG.normal(size=(40, D)) @ RNG.normal(size=(D, D)) / 2
GRAPH = np.triu(RNG.random((D, D)) < 0.6, 1)
SOFT = np.where(np.eye(D), 0, RNG.random((D, D)))
CODES = np.clip(np.round(VALUES + 1.0), 0, 2)


def values_for(model):
    """Numbers, or codes of three levels."""
    return CODES if model.categorical else VALUES


def data_for(model, values=None, **options):
    """A table of the kind that the model takes; categories have all of their levels, whichever rows it holds."""
    levels = (("0", "1", "2"),) * D if model.categorical else ()
    return Dataset(values_for(model) if values is None else values, levels=levels, **options)


def theta_of(model):
    return model.sample_theta(jax.random.key(0), D)


def families(model, graph, data):
    with jax.enable_x64(True):
        return np.asarray(model.log_families(np.asarray(graph, dtype=float), theta_of(model), model.summarise(data)))


SLOW = (
    "additive",
    "bds",
    "bge-full",
    "gp",
    "linear-noise",
    "mlp-noise",
)  # what they add is in other tests of these models


@pytest.fixture(params=[pytest.param(m, id=n, marks=pytest.mark.slow if n in SLOW else ()) for n, m in EVERY.items()])
def model(request):
    return request.param


@pytest.fixture
def soft_model(model):
    if not model.soft:
        pytest.skip("defined for hard graphs only")
    return model


@pytest.mark.slow
def test_soft_scores_are_finite_and_differentiable(soft_model):
    model = soft_model
    stats = model.summarise(Dataset(VALUES))
    gradient = jax.grad(lambda g: model.log_joint(g, theta_of(model), stats))(jnp.asarray(SOFT))
    assert np.isfinite(gradient).all()
    assert np.abs(gradient)[~np.eye(D, dtype=bool)].min() > 0


@pytest.mark.slow
def test_soft_scores_end_in_the_hard_ones(soft_model):
    """Along soft graphs that approach a hard one the score is continuous."""
    model, data, hard = soft_model, Dataset(VALUES), GRAPH.astype(float)
    limit = families(model, hard, data)
    for step in (1e-6, 1e-9):
        near = families(model, hard + step * (SOFT - hard), data)
        np.testing.assert_allclose(near, limit, rtol=1e3 * step, atol=1e3 * step)


@pytest.mark.slow
def test_gradient_matches_finite_differences(soft_model):
    model = soft_model
    stats = model.summarise(Dataset(VALUES))
    with jax.enable_x64(True):

        def score(g):
            return model.log_joint(g, theta_of(model), stats)

        gradient = jax.grad(score)(jnp.asarray(SOFT))
        for i, j in [(0, 1), (3, 2), (4, 0)]:
            step = np.zeros((D, D))
            step[i, j] = 1e-6
            numeric = (score(SOFT + step) - score(SOFT - step)) / 2e-6
            assert float(gradient[i, j]) == pytest.approx(float(numeric), rel=1e-4, abs=1e-4)


@pytest.mark.slow
def test_a_family_depends_on_its_own_column_only(model):
    data = data_for(model)
    changed = GRAPH.copy()
    changed[0, 3] ^= True
    difference = families(model, GRAPH, data) - families(model, changed, data)
    assert difference[3] != 0
    np.testing.assert_allclose(np.delete(difference, 3), 0, atol=1e-12)


def test_intervened_rows_leave_the_family(model):
    mask, values = np.zeros(VALUES.shape, dtype=bool), values_for(model)
    mask[:15, 2] = True
    mask[10:20, 4] = True
    whole = families(model, GRAPH, data_for(model))
    partly = families(model, GRAPH, data_for(model, intervened=mask))
    for j in range(D):
        rest = families(model, GRAPH, data_for(model, values[~mask[:, j]]))
        assert partly[j] == pytest.approx(rest[j], rel=1e-9)
    assert partly[2] != whole[2] and partly[0] == pytest.approx(whole[0], rel=1e-12)


def test_values_of_an_intervened_node_still_explain_its_children(model):
    mask = np.zeros(VALUES.shape, dtype=bool)
    mask[:, 0] = True
    graph = np.zeros((D, D), dtype=bool)
    graph[0, 1] = True
    moved = values_for(model).copy()
    # some rows: models with an intercept or own units may not see a change of all
    moved[::3, 0] = 2 - moved[::3, 0] if model.categorical else 2 * moved[::3, 0]
    before, after = (families(model, graph, data_for(model, v, intervened=mask)) for v in (values_for(model), moved))
    assert before[0] == pytest.approx(after[0], abs=1e-9)
    assert before[1] != pytest.approx(after[1])


def test_evidence_agrees_with_the_score_where_there_are_no_parameters(model):
    if not model.has_evidence:
        with pytest.raises(NotImplementedError):
            model.log_evidence(0, [], model.summarise(data_for(model)))
        return
    stats = model.summarise(data_for(model))
    expected = [model.log_evidence(j, np.flatnonzero(GRAPH[:, j]), stats) for j in range(D)]
    assert model.log_evidence_of(GRAPH[None], stats)[0] == pytest.approx(sum(expected), rel=1e-12)
    if not jax.tree.leaves(theta_of(model)):
        np.testing.assert_allclose(families(model, GRAPH, data_for(model)), expected, rtol=1e-10)


def test_likelihood_has_no_parameter_prior(model):
    theta = theta_of(model)
    if model.latent:
        with pytest.raises(InputError, match="the model 'copula' sees ranks alone, so that rows have no density"):
            model.log_likelihood(GRAPH, theta, data_for(model))
        return
    likelihood = model.log_likelihood(GRAPH, theta, data_for(model))
    empty = model.log_likelihood(GRAPH, theta, data_for(model, np.zeros((0, D))))
    assert empty == pytest.approx(0, abs=1e-9)
    assert np.isfinite(likelihood)
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), theta)
    both = model.log_likelihoods(np.stack([GRAPH, GRAPH]), stacked, data_for(model))
    np.testing.assert_allclose(both, likelihood, rtol=1e-12)


def test_simulated_rows(model):
    theta = model.sample_parameters(jax.random.key(1), GRAPH)
    one = model.sample_rows(jax.random.key(2), GRAPH, theta, 50)
    again = model.sample_rows(jax.random.key(2), GRAPH, theta, 50)
    np.testing.assert_array_equal(one.values, again.values)
    assert one.values.shape == (50, D) and not one.intervened.any()
    clamped = model.sample_rows(jax.random.key(2), GRAPH, theta, 50, {1: 0.0, 3: 1.0})
    assert (clamped.values[:, 3] == 1).all() and (clamped.values[:, 1] == 0).all()
    np.testing.assert_array_equal(clamped.intervened.any(axis=0), [False, True, False, True, False])
    # nodes that are no descendants of a clamped one are as they were
    np.testing.assert_array_equal(clamped.values[:, 0], one.values[:, 0])


def test_simulated_values_lie_around_the_mean(model):
    """4,000 values at one point of the inputs; five standard errors."""
    theta = model.sample_parameters(jax.random.key(1), GRAPH)
    j = int(GRAPH.sum(axis=0).argmax())
    axes = jax.tree.broadcast(model.theta_axes, theta)
    theta_j = jax.tree.map(lambda leaf, axis: np.take(np.asarray(leaf), j, axis=axis), theta, axes)
    given = np.ones((1, D)) if model.categorical else VALUES[:1]
    inputs = np.repeat(np.where(GRAPH[:, j], given, 0.0), 4000, axis=0)
    with jax.enable_x64(True):
        mean = np.asarray(model.node_mean(jnp.asarray(inputs), theta_j))
        noise = np.asarray(model.sample_node(jax.random.key(3), jnp.asarray(inputs), theta_j)) - mean
    assert mean.shape == (4000,) and np.ptp(mean) < 1e-12
    assert abs(noise.mean()) <= 5 * noise.std() / np.sqrt(4000)
    assert noise.std() > 0 or (model.categorical and mean[0] in (0, 1))


def test_exact_draws_where_promised(model):
    stats = model.summarise(data_for(model))
    if not model.has_evidence:
        with pytest.raises(NotImplementedError):
            model.draw_theta(jax.random.key(0), GRAPH, stats)
        return
    theta = model.draw_theta(jax.random.key(0), GRAPH, stats)
    if model.categorical:
        assert ((theta.strides != 0) == GRAPH).all() and np.isin(theta.table.sum(axis=2).round(9), (0, 1)).all()
        return
    weights = theta if isinstance(theta, np.ndarray) else theta.weights
    assert (weights[~GRAPH] == 0).all() and (weights[GRAPH] != 0).all()


def test_names_and_errors():
    for name in MODELS:
        assert as_model(name).name == name
    with pytest.raises(InputError, match="did you mean 'linear'"):
        as_model("liner")
    with pytest.raises(InputError, match="a name or a Model"):
        as_model(None)


class Unfinished(Model):
    """Promises evidence and does not have it."""

    name = "unfinished"
    has_evidence = True

    def log_conditional(self, g_j, theta_j, stats_j):
        return jnp.zeros(())


class WithoutDraws(Unfinished):
    def log_evidence(self, j, parents, stats):
        return 0.0


def test_a_model_without_node_mean_says_so():
    with pytest.raises(NotImplementedError, match=r"'unfinished' has no method node_mean\("):
        Unfinished().node_mean(jnp.zeros((1, D)), ())


@pytest.mark.parametrize(("model", "method"), [(Unfinished(), "log_evidence"), (WithoutDraws(), "draw_theta")])
def test_a_missing_method_is_named_before_the_run(model, method):
    with pytest.raises(InputError, match=rf"'unfinished' .* no method {method}\("):
        dp.fit(VALUES, model, method="mc3", particles=5, progress=False)


def test_further_rows_extend_the_statistics(model):
    """As if the table had been summarised with them, for the families of nodes that nobody set."""
    mask = np.zeros((30, D), dtype=bool)
    mask[:7, 2] = True
    if model.latent:
        return  # its rows have no density
    known, new = (data_for(model, values_for(model)[part]) for part in (slice(30), slice(30, 40)))
    known = known.with_interventions(mask)
    before = model.summarise(known)
    after = model.extended(before, new.values)
    if after is None:
        assert not model.has_compiled_evidence or model.name == "bdeu"
        return
    gained = model.log_evidence_of(GRAPH[None], after) - model.log_evidence_of(GRAPH[None], before)
    assert np.isclose(gained, model.log_predictive_of(GRAPH[None], known, new), rtol=1e-9)
