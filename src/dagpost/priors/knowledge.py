"""What is known about a graph before seeing data, in words: by the names of columns."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from dagpost._util.paths import existing_file
from dagpost.data.files import decoded, read_bytes
from dagpost.errors import InputError, nearest, whole_number
from dagpost.priors.binding import constraints_of, with_exact_names
from dagpost.priors.constraints import Constraints

Edge = str | tuple[str, str]
LARGEST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Knowledge:
    """What every graph must obey, and odds of single edges, by the names of columns.

    An edge is a pair (cause, effect) or a string "cause -> effect". Names in a later tier cannot cause names in an
    earlier one; columns without a tier are free. Roots have no parents, leaves no children. `probabilities` gives the
    prior probability of an edge, given all others; see `InformedPrior`.

    >>> Knowledge(required=["smoking -> cancer"], roots=["age"], max_parents=3).as_dict()
    {'required': ['smoking -> cancer'], 'roots': ['age'], 'max_parents': 3}
    """

    required: Sequence[Edge] = ()
    forbidden: Sequence[Edge] = ()
    tiers: Sequence[Sequence[str]] = ()
    roots: Sequence[str] = ()
    leaves: Sequence[str] = ()
    max_parents: int | None = None
    probabilities: Mapping[Edge, float] = field(default_factory=dict, hash=False)

    def __post_init__(self):
        if isinstance(self.tiers, str):
            raise InputError(f"tiers={self.tiers!r}: give a list of lists of names")
        if self.max_parents is not None:
            whole_number("max_parents", self.max_parents, least=0)
        tidy = {
            "required": _edges("required", self.required),
            "forbidden": _edges("forbidden", self.forbidden),
            "tiers": tuple(_names("tiers", tier) for tier in _items("tiers", self.tiers)),
            "roots": _names("roots", self.roots),
            "leaves": _names("leaves", self.leaves),
            "probabilities": _probabilities(self.probabilities),
        }
        for name, value in tidy.items():
            object.__setattr__(self, name, value)

    def bound(self, names: Sequence[str]) -> Constraints:
        """The same by index, for columns of these names; unknown names and contradictions are errors."""
        return constraints_of(with_exact_names(self, names), names)

    def resolved(self, names: Sequence[str]) -> Knowledge:
        """The same with every edge as a pair, and names letter for letter as in the table."""
        return with_exact_names(self, names)

    def as_dict(self) -> dict[str, Any]:
        """In plain lists and numbers, without what was left out; `as_knowledge` reads it back."""
        out: dict[str, Any] = {}
        for name in KEYS:
            value = getattr(self, name)
            if name == "max_parents":
                if value is not None:
                    out[name] = int(value)
            elif name == "probabilities":
                if value:
                    out[name] = [[_plain(edge), p] for edge, p in value.items()]
            elif value:
                out[name] = [_plain(item) for item in value]
        return out


KEYS = tuple(f.name for f in fields(Knowledge))


def as_knowledge(knowledge: Any) -> Knowledge | None:
    """Knowledge itself, a mapping of its fields, or the path of a TOML file with the same keys:

    required = ["smoking -> cancer"]
    forbidden = [["a -> b", "c"]]           # a pair, for names that hold an arrow
    tiers = [["age"], ["smoking", "cancer"]]
    max_parents = 3
    [probabilities]
    "exercise -> weight" = 0.9
    """
    if knowledge is None or isinstance(knowledge, Knowledge):
        return knowledge
    if isinstance(knowledge, Mapping):
        return _from_mapping(knowledge)
    if isinstance(knowledge, str | os.PathLike):
        return _read(knowledge)
    raise InputError(
        f"knowledge must be a Knowledge, a dict or the path of a TOML file, got {type(knowledge).__name__}"
    )


def _from_mapping(content: Mapping[Any, Any]) -> Knowledge:
    for key in content:
        if key not in KEYS:
            raise InputError(f"unknown key {key!r} in knowledge: {nearest(str(key), KEYS)}")
    return Knowledge(**content)


def _read(path: str | os.PathLike[str]) -> Knowledge:
    file, shown = existing_file(path, "knowledge file", ".toml")
    text = decoded(read_bytes(file, shown, LARGEST_BYTES, "leave out what is not needed"), shown, "text file")
    try:
        return _from_mapping(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f'{shown} is not TOML: {error}; write, say, required = ["a -> b"]') from None
    except InputError as error:
        raise InputError(f"{shown}: {error}") from None


# ---- the shape of what was given; whether names exist is seen when it is bound to a table


def _items(where: str, given: Any) -> tuple[Any, ...]:
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{where}={given!r}: give a list")
    return tuple(given)


def _name(where: str, given: Any) -> str:
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise InputError(f"{where}: {given!r} is not the name of a column")
    return str(given)


def _names(where: str, given: Any) -> tuple[str, ...]:
    return tuple(_name(where, item) for item in _items(where, given))


def _edge(where: str, given: Any) -> Edge:
    if isinstance(given, str):
        if "->" not in given:
            raise InputError(f"{where}: {given!r} is not an edge: write 'cause -> effect' or (cause, effect)")
        return given
    if isinstance(given, Mapping | set | frozenset) or not isinstance(given, Iterable) or len(tuple(given)) != 2:
        raise InputError(f"{where}: {given!r} is not an edge: write 'cause -> effect' or (cause, effect)")
    cause, effect = given
    return _name(where, cause), _name(where, effect)


def _edges(where: str, given: Any) -> tuple[Edge, ...]:
    return tuple(_edge(where, item) for item in _items(where, given))


def _probabilities(given: Any) -> dict[Edge, float]:
    """From a mapping, or a list of [edge, probability] or [cause, effect, probability]."""
    rows = given.items() if isinstance(given, Mapping) else _items("probabilities", given)
    out: dict[Edge, float] = {}
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Iterable) or len(parts := tuple(row)) not in (2, 3):
            raise InputError(f"probabilities: {row!r} is not an edge and its probability")
        *edge, p = parts
        edge = _edge("probabilities", edge[0] if len(edge) == 1 else edge)
        if isinstance(p, str | bool) or not hasattr(p, "__float__") or not 0 < float(p) < 1:
            raise InputError(
                f"probability {p!r} of {_shown(edge)}: give a number above 0 and below 1, or list the edge as "
                "forbidden or required"
            )
        if out.setdefault(edge, float(p)) != float(p):
            raise InputError(f"{_shown(edge)} has two probabilities, {out[edge]} and {p}: give one")
    return out


def _shown(edge: Edge) -> str:
    return repr(edge if isinstance(edge, str) else " -> ".join(edge))


def _plain(item: Edge | Sequence[str]) -> Any:
    return item if isinstance(item, str) else list(item)
