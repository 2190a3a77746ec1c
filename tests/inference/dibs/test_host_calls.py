"""Calls from compiled code into Python, against `jax.pure_callback`."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dagpost as dp
from dagpost.inference.dibs import host_calls
from dagpost.inference.dibs.host_calls import host_call


def weighted(x, y, flag, count):
    """Takes every kind of array that occurs: a matrix, an empty one, a truth value and a whole number."""
    return np.cumsum(x, axis=-1) * (2.0 if flag else 1.0) + count + y.sum()


def refusing(x):
    raise ValueError("no such thing")


def by_host_call(x, *rest):
    return host_call("test.weighted", weighted, jax.ShapeDtypeStruct(x.shape, x.dtype), x, *rest)


def by_callback(x, *rest):
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = lambda *arrays: np.asarray(weighted(*map(np.asarray, arrays)), dtype=x.dtype)  # noqa: E731
    return jax.pure_callback(call, shape, x, *rest, vmap_method="legacy_vectorized")


@pytest.mark.parametrize("wide", [False, True])
def test_the_same_as_a_callback(wide):
    with jax.enable_x64(wide):
        x = jax.random.normal(jax.random.key(0), (4, 3), dtype=float)
        rest = (jnp.zeros((0, 2)), jnp.asarray(True), jnp.asarray(3))
        looped = lambda f: jax.jit(lambda x: jax.lax.fori_loop(0, 5, lambda _, y: f(y, *rest) / 9, x))(x)  # noqa: E731
        batched = lambda f: jax.jit(jax.vmap(lambda row: f(row, *rest)))(x)  # noqa: E731
        for way in (looped, batched):
            found, expected = way(by_host_call), way(by_callback)
            assert found.dtype == expected.dtype == x.dtype
            np.testing.assert_array_equal(found, expected)


def refused(*_, **__):
    raise RuntimeError("no such interface")


@pytest.mark.slow
@pytest.mark.parametrize("reason", ["version", "registration"])
def test_without_the_interface_a_callback_does_the_work(reason, monkeypatch):
    """DiBS with the flip estimator calls compiled code on the host at every step."""
    data = dp.simulate("linear", nodes=4, observations=30, seed=2, interventional_sets=0).train
    options = {"method": "dibs", "particles": 2, "steps": 5, "moves": 0, "progress": False}
    usual = dp.fit(data, "linear", **options)
    jax.clear_caches()
    monkeypatch.setattr(host_calls, "_registered", {})
    if reason == "version":
        monkeypatch.setattr(host_calls, "interface_version", lambda: (1, 0))
    else:
        monkeypatch.setattr(jax.ffi, "register_ffi_target", refused)
    monkeypatch.setattr(jax.ffi, "ffi_call", refused)
    by_callback = dp.fit(data, "linear", **options)
    np.testing.assert_array_equal(usual.graphs, by_callback.graphs)
    np.testing.assert_allclose(usual.theta, by_callback.theta, rtol=1e-5)
    jax.clear_caches()


def test_a_missing_header_means_no_interface(monkeypatch):
    monkeypatch.setattr(jax.ffi, "include_dir", lambda: "/nowhere")
    host_calls.interface_version.cache_clear()
    assert host_calls.interface_version() == (-1, 0)
    host_calls.interface_version.cache_clear()
    monkeypatch.undo()
    assert host_calls.interface_version() >= host_calls.VERSION


LEADING_FIELDS = {
    "XLA_FFI_Api_Version": (host_calls._Version, "struct_size extension_start major_version minor_version"),
    "XLA_FFI_Metadata": (host_calls._Metadata, "struct_size api_version"),
    "XLA_FFI_Buffer": (host_calls._Buffer, "struct_size extension_start dtype data rank dims"),
    "XLA_FFI_Args": (host_calls._Buffers, "struct_size extension_start size types args"),
    "XLA_FFI_Rets": (host_calls._Buffers, "struct_size extension_start size types rets"),
    "XLA_FFI_Error_Create_Args": (host_calls._Failure, "struct_size extension_start message errc"),
    "XLA_FFI_CallFrame": (host_calls._Call, "struct_size extension_start api ctx stage args rets"),
    "XLA_FFI_Api": (host_calls._Api, "struct_size extension_start api_version internal_api XLA_FFI_Error_Create"),
}


def test_the_interface_is_the_one_that_jaxlib_ships():
    """Fails when a new jaxlib changes the interface: compare the structures, then raise `NEWEST`."""
    header = (Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h").read_text()
    assert host_calls.interface_version() == host_calls.NEWEST
    for name, (ours, expected) in LEADING_FIELDS.items():
        body = re.sub(r"//[^\n]*", "", re.search(rf"struct {name} {{(.*?)\n}};", header, re.DOTALL)[1])
        fields = re.findall(r"(\w+)\)?;", body)[: len(ours._fields_)]
        assert " ".join(fields) == expected, name
    for constant, value in (
        ("Extension_Metadata", host_calls.METADATA), ("ExecutionStage_EXECUTE", host_calls.EXECUTE),
        ("Error_Code_INTERNAL", host_calls.INTERNAL_ERROR),
    ):  # fmt: skip
        assert f"XLA_FFI_{constant} = {value}" in header
    for code, dtype in zip(host_calls.DTYPES, ("PRED", "S32", "S64", "F32", "F64")):
        assert f"XLA_FFI_DataType_{dtype} = {code}" in header


def test_an_error_reaches_the_caller():
    with pytest.raises(Exception, match="ValueError: no such thing"):
        jax.block_until_ready(host_call("test.refusing", refusing, jax.ShapeDtypeStruct((3,), float), jnp.arange(3.0)))


def test_one_name_one_function():
    x = jnp.ones(2)
    shape = jax.ShapeDtypeStruct(x.shape, x.dtype)
    host_call("test.named", np.negative, shape, x)
    with pytest.raises(ValueError, match="another function"):
        host_call("test.named", np.exp, shape, x)
