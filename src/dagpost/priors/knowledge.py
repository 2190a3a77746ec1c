"""Prior knowledge about a graph by column name: its specification, its TOML form, and its binding to a table.

`Knowledge` holds the specification. Binding it to the columns of a table resolves the names, reports contradictions and
gives `Constraints` by index.
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
from dagpost.data.formats import decode_text, read_bytes
from dagpost.errors import InputError, nearest, whole_number
from dagpost.graphs import find_cycle
from dagpost.priors.constraints import Constraints

Pair = tuple[int, int]


def _normal(name: str) -> str:
    """Return the normal form of a name; names of one table differ in this form."""
    return unicodedata.normalize("NFKC", name).strip()


class _Lookup:
    """Resolves names and edges as written by the user to the column names of a table."""

    def __init__(self, names: Sequence[str]):
        self.names = names
        self.exact = {_normal(name): name for name in names}

    def name(self, given: str, where: str) -> str:
        """Return the column with this name; `where` is the field to name in an error."""
        known = self.exact.get(_normal(given))
        if known is None:
            raise InputError(f"unknown name {given.strip()!r} in {where}: {nearest(given.strip(), self.names)}")
        return known

    def edge(self, given: Edge, where: str) -> tuple[str, str]:
        """Return an edge as a pair of column names; a string is split at the arrow that leaves two known names."""
        if isinstance(given, str):
            cuts = [(given[:at], given[at + 2 :]) for at in range(len(given)) if given.startswith("->", at)]
            matches = [cut for cut in cuts if all(_normal(name) in self.exact for name in cut)]
            if len(matches) > 1 or (not matches and len(cuts) > 1):
                why = "can be read in two ways" if matches else "holds more than one arrow"
                raise InputError(f"{where}: {given!r} {why}: write one edge as a pair (cause, effect)")
            cause, effect = (matches or cuts)[0]
        else:
            cause, effect = given
        cause, effect = self.name(cause, where), self.name(effect, where)
        if cause == effect:
            raise InputError(f"{where}: an edge cannot lead from {cause!r} to itself: remove it")
        return cause, effect


def with_exact_names(knowledge: Knowledge, names: Sequence[str]) -> Knowledge:
    """Return the knowledge with every edge as a pair, names exactly as in the table, and duplicates removed."""
    lookup = _Lookup(names)

    def edges(where: str) -> tuple[tuple[str, str], ...]:
        return tuple(dict.fromkeys(lookup.edge(edge, where) for edge in getattr(knowledge, where)))

    def nodes(where: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(lookup.name(name, where) for name in getattr(knowledge, where)))

    return replace(
        knowledge,
        required=edges("required"),
        forbidden=edges("forbidden"),
        tiers=tuple(tuple(lookup.name(name, "tiers") for name in tier) for tier in knowledge.tiers),
        roots=nodes("roots"),
        leaves=nodes("leaves"),
        # a list, so that two spellings of one edge are detected as one edge with two probabilities
        probabilities=[(lookup.edge(e, "probabilities"), p) for e, p in knowledge.probabilities.items()],  # type: ignore[arg-type]
    )


def constraints_of(knowledge: Knowledge, names: Sequence[str]) -> Constraints:
    """Return the constraints by index, for knowledge with exact names; contradictions are errors."""
    d, at = len(names), {name: j for j, name in enumerate(names)}

    def shown(i: int, j: int) -> str:
        return f"'{names[i]} -> {names[j]}'"

    required = {(at[i], at[j]) for i, j in knowledge.required}
    excluded = _excluded_edges(knowledge, names, at)
    for pair in sorted(required):
        if pair in excluded:
            raise InputError(f"the edge {shown(*pair)} is required, but {excluded[pair]}: drop one of the two")
    reach = _reachability(required, names)
    for i, j in zip(*np.nonzero(reach)):
        reason = f"the required edges lead from {names[i]!r} to {names[j]!r}"
        excluded.setdefault((int(j), int(i)), reason)
    odds = []
    for (cause, effect), p in knowledge.probabilities.items():
        pair = at[cause], at[effect]
        conflict = "it is required" if pair in required else excluded.get(pair)
        if conflict is not None:
            raise InputError(f"the edge {shown(*pair)} has probability {p}, but {conflict}: drop one of the two")
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


def _excluded_edges(knowledge: Knowledge, names: Sequence[str], at: dict[str, int]) -> dict[Pair, str]:
    """Return the forbidden edges, each with the reason."""
    out: dict[Pair, str] = {}
    nodes = range(len(names))
    for cause, effect in knowledge.forbidden:
        out[at[cause], at[effect]] = "it is also forbidden"
    tier_of = _tier_numbers(knowledge.tiers)
    for cause, later in tier_of.items():
        for effect, earlier in tier_of.items():
            if earlier < later:
                reason = f"{cause!r} is in tier {later}, after {effect!r} in tier {earlier}"
                out.setdefault((at[cause], at[effect]), reason)
    for root in knowledge.roots:
        for i in nodes:
            if i != at[root]:
                out.setdefault((i, at[root]), f"{root!r} is a root")
    for leaf in knowledge.leaves:
        for j in nodes:
            if j != at[leaf]:
                out.setdefault((at[leaf], j), f"{leaf!r} is a leaf")
    return out


def _tier_numbers(tiers: Sequence[Sequence[str]]) -> dict[str, int]:
    """Return the tier number of each name, from 1."""
    out: dict[str, int] = {}
    for number, tier in enumerate(tiers, start=1):
        for name in tier:
            if name in out:
                raise InputError(f"{name!r} is in tier {out[name]} and again in tier {number}: name it once")
            out[name] = number
    return out


def _reachability(required: set[Pair], names: Sequence[str]) -> np.ndarray:
    """Return the transitive closure of the required edges; a cycle among them is an error."""
    d = len(names)
    graph = np.zeros((d, d), dtype=np.bool_)
    for pair in required:
        graph[pair] = True
    cycle = find_cycle(graph)
    if cycle is not None:
        path = " -> ".join(names[i] for i in [*cycle, cycle[0]])
        raise InputError(f"the required edges form a cycle: {path}: drop one of them")
    reach = graph
    while (further := reach | (reach.astype(np.int64) @ graph > 0)).sum() > reach.sum():
        reach = further
    return reach


Edge = str | tuple[str, str]
LARGEST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Knowledge:
    """Prior knowledge by column name: hard constraints on every graph, and probabilities of single edges.

    An edge is a pair (cause, effect) or a string "cause -> effect".

    Parameters
    ----------
    required
        Edges that must be present.
    forbidden
        Edges that must be absent.
    tiers
        Groups of names in causal order: names in a later tier cannot cause names in an earlier one. Columns without a
        tier are unrestricted.
    roots
        Names without parents.
    leaves
        Names without children.
    max_parents
        Largest number of parents of a node; None for no limit.
    probabilities
        Prior probability of an edge given all other edges; see `InformedPrior`.

    Examples
    --------
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
        """Return the constraints by index for columns with these names; unknown names and contradictions are errors."""
        return constraints_of(with_exact_names(self, names), names)

    def resolved(self, names: Sequence[str]) -> Knowledge:
        """Return the same knowledge with every edge as a pair and names exactly as in the table."""
        return with_exact_names(self, names)

    def as_dict(self) -> dict[str, Any]:
        """Return a dict of plain lists and numbers without empty fields; `as_knowledge` reads it back."""
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
    """Return knowledge given as an object, a mapping or a file.

    Parameters
    ----------
    knowledge
        A `Knowledge`, a mapping of its fields, the path of a TOML file with the same keys, or None.

    Returns
    -------
    Knowledge | None
        The knowledge; None if None was given.

    Notes
    -----
    A file looks like this:

        required = ["smoking -> cancer"]
        forbidden = [["a -> b", "c"]]           # a pair, for names that contain an arrow
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
        return _read_toml(knowledge)
    raise InputError(
        f"knowledge must be a Knowledge, a dict or the path of a TOML file, got {type(knowledge).__name__}"
    )


def _from_mapping(content: Mapping[Any, Any]) -> Knowledge:
    """Return the knowledge with these fields; unknown keys are errors."""
    for key in content:
        if key not in KEYS:
            raise InputError(f"unknown key {key!r} in knowledge: {nearest(str(key), KEYS)}")
    return Knowledge(**content)


def _read_toml(path: str | os.PathLike[str]) -> Knowledge:
    """Return the knowledge in a TOML file; errors name the file."""
    file, shown = existing_file(path, "knowledge file", ".toml")
    text, _ = decode_text(read_bytes(file, shown, LARGEST_BYTES, "shorten the file"), shown, "text file")
    try:
        return _from_mapping(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f'{shown} is not TOML: {error}; write, for example, required = ["a -> b"]') from None
    except InputError as error:
        raise InputError(f"{shown}: {error}") from None


# ---- checks of types; whether names exist is checked when the knowledge is bound to a table


def _items(where: str, given: Any) -> tuple[Any, ...]:
    """Return the items of a list; a single string is one item."""
    if isinstance(given, str):
        return (given,)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InputError(f"{where}={given!r}: give a list")
    return tuple(given)


def _name(where: str, given: Any) -> str:
    """Return a column name as a string."""
    if isinstance(given, bool) or not isinstance(given, str | int):
        raise InputError(f"{where}: {given!r} is not the name of a column")
    return str(given)


def _names(where: str, given: Any) -> tuple[str, ...]:
    """Return a list of column names as strings."""
    return tuple(_name(where, item) for item in _items(where, given))


def _edge(where: str, given: Any) -> Edge:
    """Return an edge as a string with an arrow or as a pair of names."""
    if isinstance(given, str):
        if "->" not in given:
            raise InputError(f"{where}: {given!r} is not an edge: write 'cause -> effect' or (cause, effect)")
        return given
    if isinstance(given, Mapping | set | frozenset) or not isinstance(given, Iterable) or len(tuple(given)) != 2:
        raise InputError(f"{where}: {given!r} is not an edge: write 'cause -> effect' or (cause, effect)")
    cause, effect = given
    return _name(where, cause), _name(where, effect)


def _edges(where: str, given: Any) -> tuple[Edge, ...]:
    """Return a list of edges."""
    return tuple(_edge(where, item) for item in _items(where, given))


def _probabilities(given: Any) -> dict[Edge, float]:
    """Return edge probabilities from a mapping or a list of [edge, probability] or [cause, effect, probability]."""
    rows = given.items() if isinstance(given, Mapping) else _items("probabilities", given)
    out: dict[Edge, float] = {}
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Iterable) or len(parts := tuple(row)) not in (2, 3):
            raise InputError(f"probabilities: {row!r} is not an edge with a probability")
        *edge, p = parts
        edge = _edge("probabilities", edge[0] if len(edge) == 1 else edge)
        if isinstance(p, str | bool) or not hasattr(p, "__float__") or not 0 < float(p) < 1:
            raise InputError(
                f"probability {p!r} of {_format_edge(edge)}: give a number above 0 and below 1, or list the edge as "
                "forbidden or required"
            )
        if out.setdefault(edge, float(p)) != float(p):
            raise InputError(f"{_format_edge(edge)} has two probabilities, {out[edge]} and {p}: give one")
    return out


def _format_edge(edge: Edge) -> str:
    """Return an edge as quoted text for messages."""
    return repr(edge if isinstance(edge, str) else " -> ".join(edge))


def _plain(item: Edge | Sequence[str]) -> Any:
    """Return a string as it is and a sequence as a list."""
    return item if isinstance(item, str) else list(item)
