"""Files: what comes back is what went in, and nothing else ever does."""

import errno
import io
import itertools
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost._util.files import TRAILER, seal, unseal
from dagpost.data import as_dataset
from dagpost.errors import InputError
from dagpost.models.bge import BgeTheta
from dagpost.posterior import Posterior
from dagpost.posterior.netcdf import decode, encode
from dagpost.posterior.provenance import with_provenance
from dagpost.posterior.records import (
    ChainDiagnostics,
    ExactDiagnostics,
    ParticleDiagnostics,
    Provenance,
    RunRecord,
    SingleChainDiagnostics,
)

SIM = dp.simulate(nodes=4, observations=50, seed=2, interventional_sets=0)
NAMES = ("Erk 1/2", "=cmd()", "<β>", 'a"b\\')


def equal(a: Any, b: Any) -> bool:
    """The same bits, shapes and types."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def assert_same(one: Posterior, two: Posterior) -> None:
    for name in ("graphs", "log_weights", "log_joint", "multiplicity", "marginals"):
        a, b = getattr(one, name), getattr(two, name)
        assert (a is None) == (b is None) and (a is None or equal(a, b)), name
    assert jax.tree.structure(one.theta) == jax.tree.structure(two.theta)
    assert all(equal(a, b) for a, b in zip(jax.tree.leaves(one.theta), jax.tree.leaves(two.theta)))
    assert one.names == two.names and encode(one.model) == encode(two.model) and one.prior == two.prior
    assert encode(dict(one.info)) == encode(dict(two.info))


def fitted(model, **options) -> Posterior:
    data = dp.Dataset(SIM.train.values, NAMES).standardised()
    return dp.fit(data, model, method="dibs", particles=5, steps=5, **options)


MATRIX = np.diag([1.0, 2.0, 3.0, 4.0]) + 0.1
MODELS = {
    "bge": dp.BGe(),
    "bge with a matrix": dp.BGe(alpha_w=9, mean=[0.1, 0.2, 1 / 3, 0.0], scale_matrix=MATRIX),
    "linear": dp.LinearGaussian(),
    "linear, learned noise": dp.LinearGaussian(noise_variance=None),
    "mlp": dp.MlpGaussian(hidden=(3, 2)),
    "mlp, learned noise, no bias": dp.MlpGaussian(noise_variance=None, bias=False),
}


@pytest.fixture(scope="module")
def drawn():
    """Posteriors with parameters drawn without a fit: fast, and of every model."""
    out = {}
    graphs = np.stack([SIM.graph, np.zeros_like(SIM.graph), SIM.graph])
    for name, model in MODELS.items():
        thetas = [model.sample_theta(key, 4) for key in jax.random.split(jax.random.key(1), 3)]
        theta = jax.tree.map(lambda *leaves: np.stack(leaves), *thetas)
        out[name] = Posterior(graphs, np.array([-1.0, -2.0, 1 / 3]), NAMES, model, dp.ScaleFree(exponent=1 / 3), theta)
    return out


@pytest.mark.parametrize("name", MODELS)
def test_round_trip_is_bit_equal(name, drawn, tmp_path):
    post = drawn[name]
    assert_same(post, dp.load(post.save(tmp_path / "a.nc")))


@pytest.mark.slow
@pytest.mark.parametrize("model", ["linear", pytest.param("mlp", marks=pytest.mark.long)])
def test_fitted_posteriors_come_back(model, tmp_path):
    post = fitted(model)
    back = dp.load(post.save(tmp_path / "a.nc"))
    assert_same(post, back)
    assert_same(post.merged(), dp.load(post.merged().save(tmp_path / "b.nc")))
    assert back.info["options"]["seed"] == 0 and len(back.info["data_hash"]) == 64
    assert back.scaling is not None and equal(back.scaling.scale, post.data.scaling.scale)
    assert back.data is None


def test_refined_posteriors_come_back_with_their_diagnostics(tmp_path):
    post = dp.fit(SIM.train, "bge", draws=50, precision=0.05)
    back = dp.load(post.save(tmp_path / "a.nc"))
    assert_same(post, back)
    assert back.info["verdict"] == post.info["verdict"] and back.info["rhat"] == post.info["rhat"]


@pytest.mark.slow
@pytest.mark.parametrize("nodes, parameters", [(4, False), (4, True), (6, False)])
def test_exact_posteriors_are_saved_as_ordinary_ones(nodes, parameters, tmp_path):
    data = dp.simulate(nodes=nodes, observations=50, seed=2, interventional_sets=0).train
    post = dp.exact(data, "linear", parameters=parameters, draws=20)
    back = dp.load(post.save(tmp_path / "a.nc"))
    assert type(back) is Posterior and back.record == post.record
    assert back.info["log_evidence"] == post.log_evidence
    assert equal(back.edge_marginals, post.edge_marginals) and equal(back.log_weights, post.log_weights)
    assert back.is_exhaustive == (nodes == 4 and not parameters)


def test_data_are_given_back_only_to_their_own_posterior(tmp_path):
    post = fitted("bge")
    back = dp.load(post.save(tmp_path / "a.nc"))
    with pytest.raises(InputError, match="with_data"):
        back.effect(0, 1)
    raw = dp.Dataset(SIM.train.values, NAMES)
    for data in (raw, raw.standardised(), raw.columns(NAMES[::-1])):
        assert back.with_data(data).effect(0, 1).mean == post.effect(0, 1).mean
    with pytest.raises(InputError, match="not the data that the posterior was fitted to"):
        back.with_data(raw.rows(slice(1, None)))
    mask = np.zeros(raw.values.shape, dtype=bool)
    mask[0, 0] = True
    with pytest.raises(InputError, match="not the data"):
        back.with_data(raw, interventions=mask)


def test_named_marks_of_missing_cells_are_known_with_the_posterior(tmp_path):
    frame = pd.DataFrame(SIM.train.values, columns=list("abcd"))
    post = dp.exact(frame, "bge", draws=10)
    frame.iloc[3, 1], frame["c"] = -999, ["?", *frame["c"].astype(str)[1:]]
    data = as_dataset(frame, missing="keep", missing_values=[-999])
    back = dp.load(with_provenance(post, data, Provenance()).save(tmp_path / "a.nc"))
    assert back.info["missing_values"] == ["-999"] and back.info["missing"] == {"b": 1, "c": 1}
    assert back.with_data(frame).data.fingerprint == data.fingerprint
    with pytest.raises(InputError, match="not the data"):
        back.with_data(frame.assign(b=frame["b"].replace(-999, 0.5)))


# ---- damage


@pytest.fixture(scope="module")
def raw(tmp_path_factory) -> bytes:
    return dp.exact(SIM.train, "bge").save(tmp_path_factory.mktemp("raw") / "a.nc").read_bytes()


@pytest.mark.slow
def test_a_thousand_byte_flips(raw, tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "a.nc"
    for _ in range(1000):
        damaged = bytearray(raw)
        damaged[rng.integers(len(raw))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged)
        with pytest.raises(InputError, match=r"a\.nc"):
            dp.load(path)


@pytest.mark.slow
def test_two_hundred_truncations(raw, tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "a.nc"
    for length in [0, 1, TRAILER - 1, TRAILER, len(raw) - TRAILER, len(raw) - 1, *rng.integers(len(raw), size=194)]:
        path.write_bytes(raw[:length])
        with pytest.raises(InputError, match=r"a\.nc"):
            dp.load(path)


def test_failures_while_saving_leave_the_previous_file(raw, tmp_path, monkeypatch):
    path = tmp_path / "a.nc"
    path.write_bytes(raw)
    post = dp.load(path)

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match=r"a\.nc could not be written"):
                post.weighted("uniform").save(path, overwrite=True)
        assert_same(dp.load(path), post)
        assert os.listdir(tmp_path) == ["a.nc"]


def test_existing_files_are_kept(raw, tmp_path):
    path = tmp_path / "a.nc"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=r"a\.nc exists"):
        dp.load(path).save(path)
    assert path.read_bytes() == raw


# ---- foreign files


def test_sealed_files_of_another_kind_are_refused(raw, tmp_path):
    import xarray

    path = tmp_path / "a.nc"
    path.write_bytes(seal(b"not HDF5"))
    with pytest.raises(InputError, match=r"a\.nc is not a posterior"):
        dp.load(path)
    other = xarray.Dataset({"x": ("y", [1.0])}).to_netcdf(engine="h5netcdf")
    path.write_bytes(seal(other))
    with pytest.raises(InputError, match="not a posterior"):
        dp.load(path)
    tree = xarray.open_datatree(io.BytesIO(unseal(raw, "")), engine="h5netcdf").load()
    tree.attrs["format_version"] = 99
    path.write_bytes(seal(tree.to_netcdf(engine="h5netcdf")))
    with pytest.raises(InputError, match="install a newer one"):
        dp.load(path)


def test_sizes_are_checked_before_reading(raw, tmp_path):
    import h5netcdf

    path = tmp_path / "a.nc"
    path.write_bytes(raw)
    with pytest.raises(InputError, match="above the limit"):
        dp.load(path, largest_bytes=100)
    with h5netcdf.File(tmp_path / "bomb", "w") as file:  # a few kilobytes that claim 8 TB
        file.dimensions = {"x": 10**12}
        file.create_variable("graph", ("x",), float, chunks=(10**6,))
    path.write_bytes(seal((tmp_path / "bomb").read_bytes()))
    with pytest.raises(InputError, match="its arrays have"):
        dp.load(path)


@pytest.mark.slow
def test_xarray_reads_the_file_as_arviz_lays_it_out(tmp_path):
    import xarray

    post = dp.exact(SIM.train, "linear", parameters=True, draws=20)
    tree = xarray.open_datatree(post.save(tmp_path / "a.nc"), engine="h5netcdf")
    assert tree["posterior/graph"].dims == ("chain", "draw", "cause", "effect")
    assert tree["posterior/graph"].dtype == bool
    assert tree["posterior/theta"].shape == (1, 20, 4, 4)
    assert list(tree["posterior/cause"].values) == list(post.names)
    assert tree["sample_stats/log_weight"].shape == (1, 20)
    np.testing.assert_array_equal(tree["edges/probability"], post.edge_marginals)


@pytest.mark.slow
@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
def test_arviz_reads_the_file_and_the_tree(tmp_path):
    arviz = pytest.importorskip("arviz")
    post = dp.exact(SIM.train, "linear", parameters=True, draws=40)
    tree = post.to_xarray()
    in_memory = arviz.InferenceData.from_datatree(tree) if hasattr(arviz, "InferenceData") else tree
    for found in (arviz.from_netcdf(post.save(tmp_path / "a.nc")), in_memory):
        table = arviz.summary(found, var_names=["graph"], kind="stats", round_to="none")
        expected = {f"graph[{a}, {b}]": post.graphs[:, i, j].mean() for (i, a), (j, b) in pairs(post.names)}
        assert table["mean"].astype(float).to_dict() == pytest.approx(expected)
        weights = found["posterior"]["theta"].to_numpy()[0]
        np.testing.assert_array_equal(weights, post.theta)


def pairs(names):
    return itertools.product(enumerate(names), repeat=2)


# ---- models and priors of one's own


class OwnTheta(NamedTuple):
    weights: Any
    extra: dict


@dataclass(frozen=True)
class OwnModel(dp.Model):
    spread: float = 1.0
    name = "own"
    theta_axes = OwnTheta(1, {"shift": 0})

    def log_conditional(self, g_j, theta_j, stats_j):
        return jnp.zeros(())

    def sample_theta(self, key, d):
        return OwnTheta(jax.random.normal(key, (d, d)), {"shift": jnp.zeros(d)})


@dataclass(frozen=True)
class OwnPrior(dp.Uniform):
    strength: float = 2.0


def test_own_models_and_priors_are_given_again(tmp_path):
    model, prior = OwnModel(1 / 3), OwnPrior()
    theta = OwnTheta(np.ones((1, 4, 4)), {"shift": np.zeros((1, 4), dtype=np.float32)})
    post = Posterior(SIM.graph[None], np.zeros(1), NAMES, model, prior, theta)
    path = post.save(tmp_path / "a.nc")
    with pytest.raises(
        InputError, match=r"a model that is not part of dagpost, OwnModel: give it, dp.load\(path, model="
    ):
        dp.load(path)
    with pytest.raises(InputError, match="a prior that is not part of dagpost, OwnPrior"):
        dp.load(path, model=model)
    with pytest.raises(InputError, match=r"another model: OwnModel\(spread=0.33.*, not OwnModel\(spread=1.0"):
        dp.load(path, model=OwnModel(), prior=prior)
    back = dp.load(path, model=model, prior=prior)
    assert_same(post, back)
    assert back.model is model and back.prior is prior and isinstance(back.theta, OwnTheta)


def test_a_known_model_must_agree_with_the_one_given(tmp_path):
    path = Posterior(SIM.graph[None], np.zeros(1), NAMES, dp.BGe(), dp.Uniform()).save(tmp_path / "a.nc")
    assert dp.load(path, model=dp.BGe()).model == dp.BGe()
    with pytest.raises(InputError, match="another model"):
        dp.load(path, model=dp.BGe(alpha_mu=2.0))


def test_parameters_without_a_type_in_netcdf_are_named(tmp_path):
    post = Posterior(SIM.graph[None], np.zeros(1), NAMES, dp.BGe(), dp.Uniform(), np.zeros((1, 2), dtype=np.float16))
    with pytest.raises(InputError, match="theta holds float16"):
        post.save(tmp_path / "a.nc")


# ---- settings as text


@dataclass(frozen=True)
class Unknown:
    value: Any = None


@pytest.mark.parametrize(
    "value",
    [
        None, True, 3, -0.0, 1 / 3, float("inf"), "text β", (1, (2.0, "x")), [1, [None]], {"a": (1,), 2: "b"},
        frozenset({("a", "b")}), np.arange(6.0).reshape(2, 3), np.array([1, 2], dtype=np.int8), dp.ErdosRenyi(1.5),
        dp.MlpGaussian((3,)), BgeTheta(1.0, (2,), None), np.array([np.inf, np.nan]),
    ],
    ids=repr,
)  # fmt: skip
def test_values_survive_as_text(value):
    import json

    back = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert type(back) is type(value)
    if isinstance(value, np.ndarray):
        assert equal(value, back)
    else:
        assert back == value


def test_only_known_classes_are_built():
    assert encode(Unknown(3))["home"] == __name__
    with pytest.raises(InputError, match="Unknown"):
        decode(encode(Unknown(3)))
    for name, home in (("Popen", "subprocess"), ("Path", "dagpost"), ("ErdosRenyi", "__main__")):
        with pytest.raises(InputError):
            decode({"class": name, "home": home, "fields": {}})
    with pytest.raises(ValueError, match="kind"):
        decode({"array": [0], "dtype": "O", "shape": [1]})


def test_every_model_and_prior_can_be_written():
    from dagpost.models import MODELS as models
    from dagpost.priors import PRIORS as priors

    for kind in (*models.values(), *priors.values()):
        assert fields(kind) is not None and decode(encode(kind())) == kind()


VERSION_1 = {
    "auto_linear_knowledge": (12, 4.49, ChainDiagnostics, True),
    "dibs_mlp": (2, 0.5, ParticleDiagnostics, None),
    "exact_bge": (543, 2.500917, ExactDiagnostics, None),
    "mc3_bge": (3, 2.666667, SingleChainDiagnostics, None),
}


@pytest.mark.parametrize("name", VERSION_1)
def test_files_of_the_first_version_still_load(name, tmp_path):
    """Written by dagpost 0.1.0 before records had fields; numbers as that version printed them."""
    graphs, edges, kind, trusted = VERSION_1[name]
    post = dp.load(Path(__file__).parent / "version1" / f"{name}.nc")
    assert len(post) == graphs and post.expected_edges == pytest.approx(edges, abs=1e-6)
    assert post.names == ("Erk 1/2", "pka", "pkc", "akt") and post.scaling is not None
    assert isinstance(post.record.diagnostics, kind) and post.record.provenance.rows == 40
    assert (post.record.verdict.trusted if post.record.verdict else None) == trusted
    assert post.is_sample == (name.startswith(("auto", "mc3"))) and post.is_exhaustive == (name == "exact_bge")
    if name.startswith("auto"):
        assert post.record.provenance.knowledge == {"required": [["pka", "akt"]]}
        assert post.prior.constraints is not None and post.edge_marginals[1, 3] == 1.0
    again = dp.load(post.save(tmp_path / "again.nc"))
    assert_same(post, again)
    assert again.record == post.record


@pytest.mark.parametrize("name, graphs, joined", [("auto_default", 20, 0.968847), ("exact_linear", 30, None)])
def test_files_written_before_kinds_of_columns_still_load(name, graphs, joined, tmp_path):
    """Written by the version before columns had kinds, from this table of 60 rows."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(60, 3))
    x[:, 1] += x[:, 0]
    x[:, 2] -= 2 * x[:, 1]
    post = dp.load(Path(__file__).parent / "version2" / f"{name}.nc")
    assert len(post) == graphs and post.names == ("a", "b", "c") and post.record.provenance.rows == 60
    assert post.record.provenance.kinds is None and post.levels == ((), (), ())
    if joined is not None:
        assert post.edge_marginals[0, 1] + post.edge_marginals[1, 0] == pytest.approx(joined, abs=1e-6)
    assert post.with_data(dp.Dataset(x, ("a", "b", "c"))).data.observations == 60  # the hash is the same
    again = dp.load(post.save(tmp_path / "again.nc"))
    assert_same(post, again)
    assert again.record == post.record


def test_what_was_assumed_is_read_under_its_older_name():
    for name in ("assumptions", "assumed"):
        record = RunRecord.from_flat({"method": "auto", name: {"model": "bge"}})
        assert record.assumptions == {"model": "bge"} == record.flat()["assumed"] and record.extra == {}
    assert RunRecord().flat()["assumed"] == {}
