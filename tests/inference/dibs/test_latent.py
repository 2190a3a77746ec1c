import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dagpost.errors import InputError
from dagpost.inference.dibs import Constant, Geometric, InnerProduct, Linear, ScalarEmbedding
from dagpost.inference.dibs.latent import (
    edge_probabilities,
    hard_graph,
    limiting_graph,
    log_graph_probability,
    soft_graph,
)

SCORES = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)))


@pytest.mark.parametrize("embedding", [InnerProduct(), InnerProduct(size=2), ScalarEmbedding()], ids=str)
def test_embeddings(embedding):
    z = embedding.sample(np.random.default_rng(0), 4)
    assert embedding.scores(z).shape == (4, 4)
    gradient = jax.grad(embedding.log_prior)(z)
    scale = z.shape[1] ** -0.5 if isinstance(embedding, InnerProduct) else 1.0
    np.testing.assert_allclose(gradient, -z / scale**2, rtol=1e-5)
    rng = np.random.default_rng(1)
    many = np.stack([embedding.sample(rng, 4) for _ in range(2000)])
    assert float(many.std()) == pytest.approx(scale, rel=0.05)


def test_inner_product_is_the_papers():
    z = InnerProduct(size=3).sample(np.random.default_rng(0), 5)
    u, v = np.asarray(z[..., 0]), np.asarray(z[..., 1])
    np.testing.assert_allclose(
        InnerProduct(size=3).scores(z), [[u[i] @ v[j] for j in range(5)] for i in range(5)], rtol=1e-5
    )


def test_edges_follow_their_probabilities():
    noise = jax.random.logistic(jax.random.key(2), (20_000, 4, 4))
    graphs = hard_graph(noise, SCORES, 2.0)
    expected = np.asarray(edge_probabilities(SCORES, 2.0))
    # five standard errors of 20,000 draws
    assert np.abs(np.asarray(graphs.mean(axis=0)) - expected).max() < 5 * 0.5 / np.sqrt(20_000)
    assert (np.asarray(graphs)[:, np.eye(4, dtype=bool)] == 0).all()
    soft = soft_graph(noise, SCORES, 2.0)
    np.testing.assert_array_equal(np.asarray(soft > 0.5), np.asarray(graphs > 0))
    assert np.abs(np.asarray(soft_graph(noise[:50], SCORES, 2.0, tau=1e4)) - np.asarray(graphs[:50])).max() < 0.5


def test_column_probabilities_sum_to_one():
    total = 0.0
    for code in range(8):
        graph = np.zeros((4, 4))
        graph[1:, 0] = [code >> b & 1 for b in range(3)]
        total += float(jnp.exp(log_graph_probability(jnp.asarray(graph), SCORES, 1.3)[0]))
    assert total == pytest.approx(1, rel=1e-5)


def test_limiting_graph_is_the_sign():
    graph = np.asarray(limiting_graph(SCORES))
    np.testing.assert_array_equal(graph, (np.asarray(SCORES) > 0) & ~np.eye(4, dtype=bool))
    np.testing.assert_allclose(edge_probabilities(SCORES, 1e4), graph, atol=1e-6)


def test_schedules():
    steps = jnp.arange(5)
    np.testing.assert_allclose(Linear(0.2)(steps), [0, 0.2, 0.4, 0.6, 0.8], rtol=1e-6)
    np.testing.assert_allclose(Linear(1.0, start=3.0)(steps), [3, 4, 5, 6, 7])
    np.testing.assert_allclose(Geometric(1.0, 16.0, 5)(steps), [1, 2, 4, 8, 16], rtol=1e-5)
    assert float(Geometric(1.0, 16.0, 5)(jnp.asarray(99))) == pytest.approx(16)
    np.testing.assert_allclose(Constant(2.0)(steps), [2] * 5)
    for bad in (lambda: Linear(0.0), lambda: Geometric(-1.0, 2.0, 3)):
        with pytest.raises(InputError):
            bad()
    with pytest.raises(InputError, match="latent size 0"):
        InnerProduct(size=0)
