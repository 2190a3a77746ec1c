import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dagpost.inference.dibs.svgd import directions, squared_distances

RNG = np.random.default_rng(0)


def by_definition(z, theta, gz, gt, bandwidth_z, bandwidth_theta):
    """Algorithm 2 with explicit loops and autodiff of the kernel."""

    def kernel(za, ta, zb, tb):
        k = jnp.exp(-jnp.sum((za - zb) ** 2) / bandwidth_z)
        return k + jnp.exp(-jnp.sum((ta - tb) ** 2) / bandwidth_theta) if theta is not None else k

    count = len(z)
    theta_or_none = [None] * count if theta is None else theta
    phi_z, phi_t = [], []
    for a in range(count):
        pz, pt = 0.0, 0.0
        for b in range(count):
            args = (z[b], theta_or_none[b], z[a], theta_or_none[a])
            k = kernel(*args)
            pz += k * gz[b] + jax.grad(kernel, argnums=0)(*args)
            if theta is not None:
                pt += k * gt[b] + jax.grad(kernel, argnums=1)(*args)
        phi_z.append(pz / count)
        phi_t.append(pt / count)
    return jnp.stack(phi_z), jnp.stack(phi_t) if theta is not None else ()


@pytest.mark.slow
@pytest.mark.parametrize("joint", [True, False])
def test_matrix_form_is_the_papers_algorithm(joint):
    with jax.enable_x64(True):
        z, gz = (jnp.asarray(RNG.normal(size=(5, 3, 2, 2))) for _ in range(2))
        theta, gt = (jnp.asarray(RNG.normal(size=(5, 4))) for _ in range(2))
        expected = by_definition(z, theta if joint else None, gz, gt, 3.0, 2.0)
        found = directions(z, theta if joint else (), gz, gt if joint else (), 3.0, 2.0)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-10)
        if joint:
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-10)


@pytest.mark.slow
def test_parameters_may_be_a_tree():
    z, gz = (jnp.asarray(RNG.normal(size=(4, 3))) for _ in range(2))
    a, b, ga, gb = (jnp.asarray(RNG.normal(size=(4, 2))) for _ in range(4))
    one = directions(z, jnp.concatenate([a, b], 1), gz, jnp.concatenate([ga, gb], 1), 1.0, 2.0)
    two = directions(z, (a, b), gz, (ga, gb), 1.0, 2.0)
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
    np.testing.assert_allclose(one[1], np.concatenate(two[1], 1), rtol=1e-4, atol=1e-6)


def test_one_particle_is_gradient_ascent():
    z, g = jnp.ones((1, 3)), jnp.asarray([[1.0, -2.0, 3.0]])
    np.testing.assert_allclose(directions(z, (), g, (), 1.0, 1.0)[0], g)
    phi_z, phi_t = directions(z, z, g, g, 1.0, 1.0)
    np.testing.assert_allclose(phi_z, 2 * g)  # the additive joint kernel has k(x, x) = 2
    np.testing.assert_allclose(phi_t, 2 * g)


@pytest.mark.slow
def test_permuting_particles_permutes_the_result():
    with jax.enable_x64(True):
        z, g = (jnp.asarray(RNG.normal(size=(6, 4))) for _ in range(2))
        order = RNG.permutation(6)
        permuted, plain = directions(z[order], (), g[order], (), 2.0, 1.0)[0], directions(z, (), g, (), 2.0, 1.0)[0]
    np.testing.assert_allclose(permuted, plain[order], rtol=1e-10)


def test_distances():
    x = jnp.asarray(RNG.normal(size=(5, 3)))
    expected = ((np.asarray(x)[:, None] - np.asarray(x)[None]) ** 2).sum(-1)
    np.testing.assert_allclose(squared_distances(x, x), expected, atol=1e-5)


def test_particles_settle_on_a_gaussian():
    """SVGD on N(1, 1) in one dimension: mean and spread of 50 particles after many steps."""
    with jax.enable_x64(True):
        x = jnp.asarray(RNG.normal(size=(50, 1)) * 0.2 - 2)

        def step(_, x):
            return x + 0.5 * directions(x, (), 1.0 - x, (), 1.0, 1.0)[0]

        x = np.asarray(jax.jit(lambda x: jax.lax.fori_loop(0, 5000, step, x))(x))
    assert x.mean() == pytest.approx(1.0, abs=0.02)
    assert x.std() == pytest.approx(1.0, abs=0.1)
