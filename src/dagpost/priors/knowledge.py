"""Knowledge meets a table: names are looked up, and contradictions named.

What is known about a graph before seeing data, in words: by the names of columns.
"""

from __future__ import annotations

import os
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from math import log, log1p
from typing import Any

import numpy as np

from dagpost._util.files import existing_file
from dagpost.data.reading import decoded, read_bytes
from dagpost.errors import InputError, nearest, whole_number
from dagpost.graphs import find_cycle
from dagpost.priors.constraints import Constraints

Pair = tuple[int, int]


def _normal(name: str) -> str:
    """Names of one table differ in this form."""
    return unicodedata.normalize("NFKC", name).strip()


class _Lookup:
    def __init__(self, names: Sequence[str]):
        self.names = names
        self.exact = {_normal(name): name for name in names}

    def name(self, given: str, where: str) -> str:
        known = self.exact.get(_normal(given))
        if known is None:
            raise InputError(f"unknown name {given.strip()!r} in {where}: {nearest(given.strip(), self.names)}")
        return known

    def edge(self, given: Edge, where: str) -> tuple[str, str]:
        """Of a string, the one way to cut it at an arrow that leaves two names of columns."""
        if isinstance(given, str):
            cuts = [(given[:at], given[at + 2 :]) for at in range(len(given)) if given.startswith("->", at)]
            meant = [cut for cut in cuts if all(_normal(name) in self.exact for name in cut)]
            if len(meant) > 1 or (not meant and len(cuts) > 1):
                why = "can be read in two ways" if meant else "holds more than one arrow"
                raise InputError(f"{where}: {given!r} {why}: write one edge as a pair (cause, effect)")
            cause, effect = (meant or cuts)[0]
        else:
            cause, effect = given
        cause, effect = self.name(cause, where), self.name(effect, where)
        if cause == effect:
            raise InputError(f"{where}: an edge cannot lead from {cause!r} to itself: leave it out")
        return cause, effect


def with_exact_names(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    """Every edge as a pair, every name letter for letter as in the table, nothing twice."""
    look = _Lookup(names)

    def edges(where: str) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys(look.edge(edge, where) for edge in getattr(knowledge, where)))

    def nodes(where: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(look.name(name, where) for name in getattr(knowledge, where)))

    return replace(
        knowledge,
        required=edges("required"),
        forbidden=edges("forbidden"),
        tiers=tuple(tuple(look.name(name, "tiers") for name in tier) for tier in knowledge.tiers),
        roots=nodes("roots"),
        leaves=nodes("leaves"),
        # a list, so that two ways of writing one edge are seen as one edge with two probabilities
        probabilities=[(look.edge(e, "probabilities"), p) for e, p in knowledge.probabilities.items()],  # type: ignore[arg-type]
    )


def constraints_of(knowledge: Knowledge, names: Sequence[str]) -> Constraints:
    """By index; `knowledge` has exact names."""
    d, at = len(names), {name: j for j, name in enumerate(names)}

    def shown(i: int, j: int) -> str:
        return f"'{names[i]} -> {names[j]}'"

    required = {(at[i], at[j]) for i, j in knowledge.required}
    excluded = _excluded(knowledge, names, at)
    for pair in sorted(required):
        if pair in excluded:
            raise InputError(f"the edge {shown(*pair)} is required, but {excluded[pair]}: drop one of the two")
    reach = _reach(required, names)
    for i, j in zip(*np.nonzero(reach)):
        way = f"the required edges lead from {names[i]!r} to {names[j]!r}"
        excluded.setdefault((int(j), int(i)), way)
    odds = []
    for (cause, effect), p in knowledge.probabilities.items():
        pair = at[cause], at[effect]
        why = "it is required" if pair in required else excluded.get(pair)
        if why is not None:
            raise InputError(f"the edge {shown(*pair)} has probability {p}, but {why}: drop one of the two")
        odds.append((*pair, log(p) - log1p(-p)))
    most = knowledge.max_parents
    if most is not None:
        for j in range(d):
            parents = [names[i] for i, k in sorted(required) if k == j]
            if len(parents) > most:
                listed = ", ".join(repr(parent) for parent in parents)
                raise InputError(
                    f"{names[j]!r} has {len(parents)} required parents ({listed}), more than max_parents={most}: "
                    "raise it or require fewer"
                )
        most = int(most) if most < d - 1 else None
    return Constraints(d, tuple(sorted(excluded)), tuple(sorted(required)), most, tuple(sorted(odds)))


def _excluded(knowledge: Knowledge, names: Sequence[str], at: dict[str, int]) -> dict[Pair, str]:
    """Edges that must not be there, each with the reason."""
    out: dict[Pair, str] = {}
    everyone = range(len(names))
    for cause, effect in knowledge.forbidden:
        out[at[cause], at[effect]] = "it is forbidden, too"
    tier_of = _tiers(knowledge.tiers)
    for cause, later in tier_of.items():
        for effect, earlier in tier_of.items():
            if earlier < later:
                reason = f"{cause!r} is in tier {later}, after {effect!r} in tier {earlier}"
                out.setdefault((at[cause], at[effect]), reason)
    for root in knowledge.roots:
        for i in everyone:
            if i != at[root]:
                out.setdefault((i, at[root]), f"{root!r} is a root")
    for leaf in knowledge.leaves:
        for j in everyone:
            if j != at[leaf]:
                out.setdefault((at[leaf], j), f"{leaf!r} is a leaf")
    return out


def _tiers(tiers: Sequence[Sequence[str]]) -> dict[str, int]:
    """The number of the tier of each name, from 1."""
    out: dict[str, int] = {}
    for number, tier in enumerate(tiers, start=1):
        for name in tier:
            if name in out:
                raise InputError(f"{name!r} stands in tier {out[name]} and again in tier {number}: name it once")
            out[name] = number
    return out


def _reach(required: set[Pair], names: Sequence[str]) -> np.ndarray:
    """Which nodes the required edges lead to from where, in any number of steps; a cycle among them is an error."""
    d = len(names)
    graph = np.zeros((d, d), dtype=np.bool_)
    for pair in required:
        graph[pair] = True
    cycle = find_cycle(graph)
    if cycle is not None:
        way = " -> ".join(names[i] for i in [*cycle, cycle[0]])
        raise InputError(f"the required edges form a cycle: {way}: drop one of them")
    reach = graph
    while (further := reach | (reach.astype(np.int64) @ graph > 0)).sum() > reach.sum():
        reach = further
    return reach


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
