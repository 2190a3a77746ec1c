"""Terms of families on accelerators, against NumPy; the kernel without a GPU."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.inference.dibs import family_terms
from dagpost.inference.dibs.family_terms import FEW, FamilyTerms
from dagpost.models.conjugate import all_families

pytestmark = pytest.mark.slow  # compiling takes as long as all of these tests

MODELS = [dp.BGe(), dp.LinearGaussian(), dp.LinearGaussian(noise_variance=None)]


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


def table_of(model, d, groups=False):
    values = np.random.default_rng(d).normal(size=(50, d))
    data = dp.Dataset(values + 0.5 * np.roll(values, 1, axis=1))
    if groups:
        data = data.with_interventions(np.arange(50)[:, None] < 10 * (np.arange(d) == 2))
    return jax.tree.map(jnp.asarray, model.evidence_table(model.summarise(data)))


def drawn(d, n=2, few=3):
    """Return graphs in which a column of the last one has more parents than the kernel for few of them takes."""
    rng = np.random.default_rng(n + d)
    graphs = (rng.random((n, d, d)) < few / d) & ~np.eye(d, dtype=bool)
    graphs[-1, :, 1] = np.arange(d) != 1
    return graphs


def directly(table, graphs):
    """Return the terms from inverses."""
    n, d = graphs.shape[:2]
    out = FamilyTerms(np.zeros((n, d)), np.zeros((n, d)), np.zeros((n, d, d)), np.zeros((n, d, d)))
    for m, graph in enumerate(graphs):
        for j in range(d):
            k, p = np.asarray(table.matrix[table.group[j]]), np.flatnonzero(graph[:, j])
            inverse = np.linalg.inv(k[np.ix_(p, p)])
            left = k - k[:, p] @ inverse @ k[p]
            out.log_determinant[m, j] = np.linalg.slogdet(k[np.ix_(p, p)])[1]
            out.schur[m, j] = left[j, j]
            out.pivot[m, j], out.cross[m, j] = np.diagonal(left), left[:, j]
            out.pivot[m, j, p], out.cross[m, j, p] = np.diagonal(inverse), inverse @ k[p, j]
    return out


WAYS = {
    "cholesky": lambda table, graphs: family_terms.family_terms(table, graphs),
    "kernel": lambda table, graphs: family_terms._by_kernel(*family_terms._matrices(table), graphs, interpret=True),
}


@pytest.mark.parametrize("d", [6, FEW + 1, 40])
@pytest.mark.parametrize("way", WAYS)
def test_terms_are_those_of_inverses(way, d):
    table, graphs = table_of(dp.BGe(), d, groups=True), drawn(d, 3)
    found, expected = WAYS[way](table, jnp.asarray(graphs, dtype=float)), directly(table, graphs)
    for name in ("log_determinant", "schur", "cross"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6, atol=1e-8)
    own = np.eye(d, dtype=bool)  # no family has its own node as a parent
    np.testing.assert_allclose(found.pivot[:, ~own], expected.pivot[:, ~own], rtol=1e-6)


@pytest.mark.parametrize("model", MODELS, ids=["bge", "linear", "noise"])
def test_evidence_is_that_of_the_compiled_loops(model, monkeypatch):
    d = FEW + 2
    table, graphs = table_of(model, d, groups=True), drawn(d)
    monkeypatch.setattr(family_terms, "_by_kernel", partial(family_terms._by_kernel, interpret=True))
    found = jax.vmap(partial(family_terms.evidence_by_kernel, table))(jnp.asarray(graphs, dtype=float))
    plain = jax.tree.map(np.asarray, table)._replace(width=1, first=0, floor=float(table.floor))
    np.testing.assert_allclose(found, all_families(plain, graphs), rtol=1e-6)


@pytest.mark.parametrize("d", [20, 100])
def test_the_kernel_is_one_that_gpus_can_run(d):
    """Lowered for a GPU that is not there, batched as in many data sets with samples of particles."""
    one = lambda matrices, graph: family_terms._by_kernel(matrices, jnp.float32(1.0), graph[None])  # noqa: E731
    several = jax.vmap(jax.vmap(jax.vmap(one, in_axes=(None, 0)), in_axes=(None, 0)))
    shapes = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((2, d, d, d), (2, 3, 4, d, d))]
    lowered = jax.jit(several).trace(*shapes).lower(lowering_platforms=("cuda",))
    assert lowered.as_text().count("xla.gpu.triton") == 2


def test_without_a_gpu_it_is_not_used():
    assert not family_terms.kernel_runs()
    assert not family_terms.kernel_takes(table_of(dp.BGe(), 4))
