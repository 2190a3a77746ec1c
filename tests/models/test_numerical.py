"""Numerical evidence against closed forms, quadrature and averages over prior draws, and what builds on it."""

import importlib.util
from pathlib import Path

import jax
import numpy as np
import pytest
from scipy.special import digamma, logsumexp

import dagpost as dp
from dagpost.models.family_evidence import CAREFUL, LARGEST, MOST, QUICK, Estimate, FamilyEvidence
from dagpost.models.integrated import Integrated, common_families
from dagpost.models.mlp_evidence import NoisePrior, move_noise
from dagpost.models.mlp_gaussian import MlpEvidence
from dagpost.models.mlp_network import Network, put_network, workspace
from dagpost.models.numerical import LaplaceEvidence


def rows(*parents, d=4):
    out = np.zeros(d, dtype=bool)
    out[list(parents)] = True
    return out


@pytest.fixture(scope="module")
def small():
    """Twelve rows of four columns: so few that averages over prior draws are precise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 4))
    x[:, 1] = np.maximum(x[:, 0], 0) + 0.4 * x[:, 1]
    return dp.Dataset(x)


def collapsed(model, data, j, parents, first):
    """`log p(y | U)` of every first layer (s, q, h), with the second integrated out, directly from its covariance."""
    y, v = data.values[:, j], model.noise_variance
    inputs = data.values[:, parents]
    if model.bias:
        inputs = np.concatenate([inputs, np.ones((len(y), 1))], axis=1)
    signal = np.einsum("nq,sqh->snh", inputs, first)
    act = {"relu": lambda a: np.maximum(a, 0), "tanh": np.tanh}[model.activation](signal)
    if model.bias:
        act = np.concatenate([act, np.ones((*act.shape[:2], 1))], axis=2)
    covariance = v * np.eye(len(y)) + model.weight_scale**2 * act @ np.swapaxes(act, 1, 2)
    lower = np.linalg.cholesky(covariance)
    solved = np.linalg.solve(lower, np.broadcast_to(y[:, None], (len(first), len(y), 1)))[..., 0]
    log_determinant = 2 * np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(axis=1)
    return -0.5 * ((solved**2).sum(axis=1) + log_determinant + len(y) * np.log(2 * np.pi))


def by_prior_draws(model, data, j, parents, count=60_000):
    """Log evidence and its standard error from draws of the prior alone; and the draws with their weights."""
    rng = np.random.default_rng(1)
    first = model.weight_scale * rng.normal(size=(count, len(parents) + model.bias, model.hidden[0]))
    parts = [collapsed(model, data, j, parents, part) for part in np.array_split(first, 60)]
    logs = np.concatenate(parts)
    weights = np.exp(logs - logs.max())
    return logs.max() + np.log(weights.mean()), weights.std() / weights.mean() / np.sqrt(count), first, weights


@pytest.mark.slow
@pytest.mark.parametrize("parents", [(), (0,), (0, 2)])
def test_networks_agree_with_averages_over_the_prior(small, parents):
    model = dp.MlpGaussian()
    expected, error, *_ = by_prior_draws(model, small, 1, list(parents))
    found = model.numerical_evidence(model.summarise(small)).estimate(1, rows(*parents), LARGEST)
    assert error < 0.06 and found.error < 0.1
    assert found.log_evidence == pytest.approx(expected, abs=4 * np.hypot(error, found.error) + 0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model", [dp.MlpGaussian(hidden=(1,)), dp.MlpGaussian(hidden=(1,), activation="tanh", weight_scale=1.5)]
)
def test_one_hidden_unit_agrees_with_quadrature(small, model):
    grid = np.linspace(-8, 8, 320) * model.weight_scale
    step = grid[1] - grid[0]
    first = np.stack(np.meshgrid(grid, grid, indexing="ij"), axis=-1).reshape(-1, 2, 1)
    logs = np.concatenate([collapsed(model, small, 1, [0], part) for part in np.array_split(first, 100)])
    scale = model.weight_scale
    logs = logs - 0.5 * (first**2).sum(axis=(1, 2)) / scale**2 - np.log(2 * np.pi * scale**2) + 2 * np.log(step)
    found = model.numerical_evidence(model.summarise(small)).estimate(1, rows(0), LARGEST)
    assert found.log_evidence == pytest.approx(float(logsumexp(logs)), abs=4 * found.error + 0.005)


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"bias": False}, {"activation": "tanh"}, {"hidden": (3,), "noise_variance": 0.5}])
def test_variants_agree_with_averages_over_the_prior(small, settings):
    model = dp.MlpGaussian(**settings)
    expected, error, *_ = by_prior_draws(model, small, 1, [0])
    found = model.numerical_evidence(model.summarise(small)).estimate(1, rows(0), LARGEST)
    assert found.log_evidence == pytest.approx(expected, abs=4 * np.hypot(error, found.error) + 0.01)


@pytest.mark.slow
def test_rows_with_an_intervention_do_not_enter(small):
    mask = np.zeros(small.values.shape, dtype=bool)
    mask[:4, 1] = True
    model = dp.MlpGaussian()
    partly = model.numerical_evidence(model.summarise(dp.Dataset(small.values, intervened=mask)))
    rest = model.numerical_evidence(model.summarise(dp.Dataset(small.values[4:])))
    assert partly.estimate(1, rows(0)).log_evidence == pytest.approx(rest.estimate(1, rows(0)).log_evidence, rel=1e-9)


@pytest.mark.slow
def test_more_effort_elsewhere_changes_nothing(small):
    """A careful estimate is the same whether or not smaller families were looked at closely before."""
    model = dp.MlpGaussian()
    stats = model.summarise(small)
    family, fewer = (3, rows(0, 1, 2)), [(3, rows(0, 1)), (3, rows(0, 2)), (3, rows(1, 2))]
    one, other = model.numerical_evidence(stats), model.numerical_evidence(stats)
    for smaller in fewer:
        one.estimate(*smaller, 2)
    assert one.estimate(*family, CAREFUL) == other.estimate(*family, CAREFUL)
    other.estimate(*family, 2)
    assert one.estimate(*family, 2) == other.estimate(*family, 2)


@pytest.mark.slow
def test_seeds_differ_by_what_estimates_claim():
    """Three parents and 60 rows: some six temperatures, with networks that descend from few."""
    sim = dp.simulate(nodes=4, observations=60, model="mlp", seed=1, interventional_sets=0)
    model = dp.MlpGaussian()
    stats = model.summarise(sim.train)
    found = [MlpEvidence(model, stats, seed).estimate(3, rows(0, 1, 2), CAREFUL) for seed in range(24)]
    spread, claimed = np.std([one.log_evidence for one in found]), np.median([one.error for one in found])
    assert 0.3 < spread / claimed < 1.5
    much = MlpEvidence(model, stats, 99).estimate(3, rows(0, 1, 2), MOST)
    centre = np.mean([one.log_evidence for one in found]) + 0.5 * spread**2  # the mean of Z, not that of its logarithm
    assert much.log_evidence == pytest.approx(centre, abs=4 * np.hypot(spread / np.sqrt(24), much.error))


@pytest.mark.slow
class ByEffort(FamilyEvidence):
    """Estimates that differ by effort."""

    def compute(self, node, parents, effort):
        return Estimate(np.log(1.0 + effort), 0.1 * effort, effort)

    def draw(self, node, parents, count, seed):
        raise NotImplementedError


def test_estimates_beyond_the_largest_effort_are_averaged():
    stepwise, at_once = ByEffort(4), ByEffort(4)
    for effort in range(MOST + 1):
        found = stepwise.estimate(0, rows(1), effort)
    efforts = np.arange(LARGEST, MOST + 1)
    assert found.effort == MOST
    assert np.exp(found.log_evidence) == pytest.approx((1.0 + efforts).mean())
    assert found.error == pytest.approx(np.sqrt((((1.0 + efforts) * 0.1 * efforts) ** 2).sum()) / (1.0 + efforts).sum())
    assert at_once.estimate(0, rows(1), MOST) == found


@pytest.mark.slow
def test_an_estimate_depends_on_family_and_seed_alone(small):
    model = dp.MlpGaussian()
    stats = model.summarise(small)
    families = [(1, rows(0)), (1, rows(0, 2)), (3, rows(0, 1, 2)), (0, rows())]
    one, other = model.numerical_evidence(stats, 5), model.numerical_evidence(stats, 5)
    forth = [one.estimate(*family) for family in families]
    back = [other.estimate(*family) for family in families[::-1]][::-1]
    at_once = model.numerical_evidence(stats, 5).estimates(
        np.array([j for j, _ in families]), np.stack([row for _, row in families])
    )
    assert forth == back == at_once
    assert model.numerical_evidence(stats, 6).estimate(1, rows(0)) != forth[0]
    resumed = model.numerical_evidence(stats, 5)
    resumed.from_arrays(one.to_arrays())
    assert resumed.known == one.known
    assert resumed.estimate(2, rows(0, 1, 3)) == one.estimate(2, rows(0, 1, 3))


@pytest.mark.slow
def test_draws_follow_the_posterior(small):
    """Mean and spread of the function at the rows, against weighted draws of the prior."""
    model = dp.MlpGaussian()
    _, _, first, weights = by_prior_draws(model, small, 1, [0])
    x, y = small.values[:, 0], small.values[:, 1]
    chosen = np.random.default_rng(2).choice(len(first), 1500, p=weights / weights.sum())
    signal = np.maximum(np.einsum("nq,sqh->snh", np.stack([x, np.ones(12)], axis=1), first[chosen]), 0)
    signal = np.concatenate([signal, np.ones((*signal.shape[:2], 1))], axis=2)
    precision = np.swapaxes(signal, 1, 2) @ signal / 0.1 + np.eye(6)
    centre = np.linalg.solve(precision, np.einsum("snm,n->sm", signal, y)[..., None] / 0.1)[..., 0]
    expected = np.einsum("snm,sm->sn", signal, centre)  # E[f | U]
    evidence = model.numerical_evidence(model.summarise(small))
    evidence.estimate(1, rows(0), CAREFUL + 1)
    theta = evidence.draw(1, rows(0), 1500, seed=3)
    with jax.enable_x64(True):
        drawn = np.asarray(jax.vmap(lambda t: model.network(jax.numpy.asarray(small.values), t))(theta))
    assert (theta.weights[0][:, 1:] == 0).all()
    error = np.sqrt((drawn.var(axis=0) + expected.var(axis=0)) / 150)  # importance draws repeat: a tenth of them counts
    assert (np.abs(drawn.mean(axis=0) - expected.mean(axis=0)) < 4 * error).all()
    assert drawn.std(axis=0).mean() > expected.std(axis=0).mean()  # the second layer varies as well


# ---- any model


def own_model():
    path = Path(__file__).parents[2] / "examples" / "own_model.py"
    spec = importlib.util.spec_from_file_location("own_model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.LaplaceLinear()


@pytest.mark.slow
def test_moves_of_the_noise_keep_its_prior():
    """Where the data have no weight: the mean of log v is log b - ψ(a), and that of 1/v is a/b."""
    net, noise, rng = Network(2, 0, 1, 1.0), NoisePrior(0, 1.5, 0.25), np.random.default_rng(0)
    inputs, y, at, found = rng.normal(size=(2, 10)), rng.normal(size=10), 0.0, []
    work = workspace(2, 10, net)
    put_network(inputs, y, rng.normal(size=(2, 2)), net, work)
    for _ in range(6000):
        at, _ = move_noise(at, noise, 0.0, float(y @ y), 10, net, work, rng)
        found.append(at)
    assert np.mean(found) == pytest.approx(np.log(0.25) - digamma(1.5), abs=0.1)
    assert np.exp(-np.array(found)).mean() == pytest.approx(6.0, rel=0.1)


@pytest.mark.slow
def test_any_model_agrees_with_the_closed_form():
    model = dp.LinearGaussian()
    stats = model.summarise(dp.simulate(nodes=4, observations=40, seed=0, interventional_sets=0).train)
    evidence = LaplaceEvidence(model, stats)
    for j, parents in ((0, ()), (1, (0,)), (3, (0, 1, 2))):
        found = evidence.estimate(j, rows(*parents))
        assert found.log_evidence == pytest.approx(
            model.log_evidence(j, list(parents), stats), abs=4 * found.error + 0.01
        )
        assert found.error < 0.05 and found.effort == QUICK


@pytest.mark.slow
def test_families_in_a_batch_are_those_of_one_by_one(small):
    """Accelerators estimate many families at once; the last batch is filled up."""
    model = dp.LinearGaussian(noise_variance=0.3)
    stats = model.summarise(small)
    families = [(j, rows(*parents)) for j, parents in ((1, (0,)), (1, (0, 2)), (2, ()), (3, (1,)), (0, (1, 2, 3)))]
    single, batched = LaplaceEvidence(model, stats), LaplaceEvidence(model, stats)
    single.batch, batched.batch = 1, 3
    for evidence in (single, batched):
        evidence.fill([(*family, QUICK) for family in families])
    for node, row in families:
        one, many = (evidence.known[node, row.tobytes()] for evidence in (single, batched))
        assert many.log_evidence == pytest.approx(one.log_evidence, abs=1e-6) and many.effort == one.effort


@pytest.mark.slow
def test_unknown_noise_agrees_with_averages_over_the_prior(small):
    """The noise by quadrature over its own prior: `Z = ∫ Z(v) p(v) dv`."""
    model = dp.MlpGaussian(noise_variance=None)
    logs = np.linspace(-5, 3, 33)
    a, b = model.noise_shape, model.noise_rate
    log_prior = a * np.log(b) - 0.5 * np.log(np.pi) + np.log(2) - a * logs - b * np.exp(-logs)  # Γ(3/2) = √π / 2
    values = [by_prior_draws(dp.MlpGaussian(noise_variance=float(np.exp(v))), small, 1, [0], 6000)[0] for v in logs]
    expected = logsumexp(np.array(values) + log_prior) + np.log(logs[1] - logs[0])
    evidence = model.numerical_evidence(model.summarise(small))
    found = evidence.estimate(1, rows(0), LARGEST)
    assert found.log_evidence == pytest.approx(float(expected), abs=0.15)
    theta = evidence.draw(1, rows(0), 500, seed=0)
    shares = np.exp(np.array(values) + log_prior - logsumexp(np.array(values) + log_prior))
    assert theta.log_variance.mean() == pytest.approx(float(shares @ logs), abs=0.15)


@pytest.mark.slow
def test_a_density_with_kinks_agrees_with_quadrature():
    model = own_model()
    sim = dp.simulate(model=model, nodes=4, observations=300, seed=1, interventional_sets=0)
    x, grid = sim.train.values, np.linspace(-4, 4, 40_001)
    residual = np.stack([np.abs(x[:, 1] - a * x[:, 0]).sum() for a in grid])
    logs = -residual / model.scale - 300 * np.log(2 * model.scale) - 0.5 * grid**2 - 0.5 * np.log(2 * np.pi)
    expected = logsumexp(logs) + np.log(grid[1] - grid[0])
    found = model.numerical_evidence(model.summarise(sim.train)).estimate(1, rows(0), CAREFUL)
    assert found.log_evidence == pytest.approx(float(expected), abs=4 * found.error + 0.005)


@pytest.mark.slow
def test_own_models_run_through_auto():
    model = own_model()
    sim = dp.simulate(model=model, nodes=4, observations=200, seed=1, interventional_sets=0)
    post = dp.fit(sim.train, model, draws=100, progress=False)
    assert post.model is model and post.theta.shape == (100, 4, 4)
    assert "numerical" in post.record.verdict.text or "estimated" in post.record.verdict.text
    assert dp.metrics.auroc(post, sim.graph) > 0.9
    weights = post.theta[:, sim.graph].mean(axis=0)
    present = post.edge_marginals[sim.graph] > 0.9
    assert np.abs(weights - sim.theta[sim.graph])[present].max() < 0.2


# ---- what builds on it


@pytest.fixture(scope="module")
def networks():
    return dp.simulate(nodes=4, observations=60, model="mlp", seed=3, interventional_sets=0)


@pytest.mark.slow
def test_exact_sums_use_it(networks):
    post = dp.exact(networks.train, "mlp", prior="erdos-renyi")
    assert isinstance(post.model, dp.MlpGaussian) and "exact" in post.record.verdict.text
    model = dp.MlpGaussian()
    scored = Integrated(model, model.summarise(networks.train), 0)
    best = post.graphs[post.weights.argmax()]
    for node, column in common_families(best[None], 1.0):
        scored.evidence.estimate(node, column, CAREFUL)
    assert post.log_joint.max() == pytest.approx(
        scored.log_evidence_of(best[None], scored.stats)[0] + float(dp.priors.ErdosRenyi().log_density(best)), abs=1.0
    )


@pytest.mark.slow
def test_chains_agree_with_the_exact_sum(networks):
    exact = dp.exact(networks.train, "mlp", prior="erdos-renyi")
    chains = dp.fit(networks.train, "mlp", precision=0.005, max_moves=3_000_000, progress=False)
    assert chains.record.diagnostics.families > 0
    assert np.abs(chains.edge_marginals - exact.edge_marginals).max() < 0.03
    assert chains.theta.weights[0].shape == (1000, 4, 4, 5)


@pytest.mark.slow
def test_errors_of_the_evidence_reach_the_edges(small):
    """One family in two graphs, with an error e: their odds change by a factor exp(e z)."""
    model = dp.MlpGaussian()
    scored = Integrated(model, model.summarise(small), 0)
    graphs = np.zeros((100, 4, 4), dtype=bool)
    graphs[:50, 0, 1] = True
    a, b = (scored.evidence.estimate(1, row).error for row in (rows(0), rows()))
    spread = scored.edge_errors(graphs, repeats=4000)
    z = np.random.default_rng(5).normal(size=200_000) * np.hypot(a, b)
    assert spread[0, 1] == pytest.approx(np.std(1 / (1 + np.exp(z))), rel=0.1)
    assert spread[2, 3] == 0


@pytest.mark.slow
def test_unknown_evidence_of_a_common_family_is_not_trusted(small):
    """All graphs have the same families, so that no error of one could move an edge; but one is not known at all."""
    model = dp.MlpGaussian()
    scored = Integrated(model, model.summarise(small), 0)
    graphs = np.zeros((100, 4, 4), dtype=bool)
    graphs[:, 0, 1] = True
    assert scored.edge_errors(graphs).max() < 1e-12
    key = (1, rows(0).tobytes())
    scored.evidence.known[key] = scored.evidence.known[key]._replace(error=10.0)
    into_1 = np.outer(np.arange(4) != 1, np.arange(4) == 1)
    np.testing.assert_allclose(scored.edge_errors(graphs), 0.5 * into_1, atol=1e-12)
    graphs[1:, 0, 1] = False  # one graph of a hundred
    assert scored.edge_errors(graphs).max() < 0.2
