"""Knowledge meets a table: names are looked up, and contradictions named."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from math import log, log1p
from typing import TYPE_CHECKING

import numpy as np

from dagpost.errors import InputError, nearest
from dagpost.graphs import find_cycle
from dagpost.priors.constraints import Constraints

if TYPE_CHECKING:
    from dagpost.priors.knowledge import Edge, Knowledge

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
