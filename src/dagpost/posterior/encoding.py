"""Settings as JSON and back: numbers, texts, containers, arrays, and dataclasses of dagpost.

Reading builds nothing but the dataclasses and named tuples that are defined in `dagpost.models` and `dagpost.priors`,
found by their name; there is no pickle and no evaluation of text.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from math import isfinite
from typing import Any

import numpy as np

from dagpost.errors import InputError

PACKAGES = ("dagpost.models", "dagpost.priors")
RECORDS = "dagpost.posterior.records"
HOME = "dagpost"


class UnknownClass(InputError):
    """The text names a class that is not one of dagpost's; `args` hold its name."""


@lru_cache(maxsize=1)
def known_classes() -> dict[str, type]:
    """Dataclasses and named tuples of the models and priors, by name."""
    found: dict[str, type] = {}
    modules = [
        entry.name
        for package in PACKAGES
        for entry in pkgutil.iter_modules(import_module(package).__path__, f"{package}.")
    ]
    for module in (*modules, RECORDS):
        for name, value in vars(import_module(module)).items():
            if isinstance(value, type) and value.__module__ == module and _has_fields(value):
                if name in found:
                    raise TypeError(f"two classes of dagpost are called {name}")
                found[name] = value
    return found


def _has_fields(kind: type) -> bool:
    return is_dataclass(kind) or (issubclass(kind, tuple) and hasattr(kind, "_fields"))


def home_of(kind: type) -> str:
    """ "dagpost" for the classes that reading can build; the module of any other."""
    return HOME if known_classes().get(kind.__name__) is kind else kind.__module__


def field_values(value: Any) -> dict[str, Any] | None:
    """The fields of a dataclass or named tuple; None for anything else."""
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in fields(value) if f.init}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return value._asdict()  # type: ignore[attr-defined]
    return None


def encode(value: Any, opaque: Callable[[Any], Any] | None = None) -> Any:
    """The value as plain JSON; what has no such form is given to `opaque`, or named by its class."""
    if value is None or isinstance(value, str | bool | np.bool_):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if isfinite(value) else {"float": str(float(value))}
    content = field_values(value)
    if content is not None:
        kind = type(value)
        return {
            "class": kind.__name__,
            "home": home_of(kind),
            "fields": {k: encode(v, opaque) for k, v in content.items()},
        }
    if isinstance(value, list):  # of finite numbers as it is: errors of edges are d² of them
        plain = all(type(v) is float for v in value) and bool(np.isfinite(value).all())
        return value if plain else [encode(v, opaque) for v in value]
    if isinstance(value, tuple):
        return {"tuple": [encode(v, opaque) for v in value]}
    if isinstance(value, set | frozenset):
        return {"set": [encode(v, opaque) for v in sorted(value, key=repr)]}
    if isinstance(value, Mapping):
        return {"dict": [[encode(k, opaque), encode(v, opaque)] for k, v in value.items()]}
    if hasattr(value, "__array__") and np.asarray(value).dtype.kind in "biuf":
        array = np.asarray(value)
        return {"array": encode(array.reshape(-1).tolist()), "dtype": array.dtype.str, "shape": list(array.shape)}
    return opaque(value) if opaque else {"class": type(value).__name__, "home": type(value).__module__}


def decode(text: Any) -> Any:
    """The value that `encode` was given."""
    if isinstance(text, list):
        return [decode(v) for v in text]
    if not isinstance(text, dict):
        return text
    if "class" in text:
        return _decode_class(text)
    if "float" in text:
        return float(text["float"])
    if "tuple" in text:
        return tuple(decode(v) for v in text["tuple"])
    if "set" in text:
        return frozenset(decode(v) for v in text["set"])
    if "dict" in text:
        return {decode(k): decode(v) for k, v in text["dict"]}
    dtype = np.dtype(text["dtype"])
    if dtype.kind not in "biuf":
        raise ValueError(f"array of kind {dtype.kind!r}")
    return np.array(decode(text["array"]), dtype=dtype).reshape(text["shape"])


def known_class(text: Mapping[str, Any]) -> type:
    """The class that an encoded object names, if it is one of dagpost's."""
    kind = known_classes().get(text["class"]) if text["home"] == HOME else None
    if kind is None:
        raise UnknownClass(str(text["class"]))
    return kind


def _decode_class(text: dict[str, Any]) -> Any:
    kind = known_class(text)
    return kind(**{str(name): decode(value) for name, value in text["fields"].items()})
