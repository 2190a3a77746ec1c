"""Export of a posterior to networkx, GraphML, DOT, dagitty and CSV, with names escaped for each format."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dagpost._util.files import check_target, write_atomically
from dagpost.errors import InputError, nearest, printable
from dagpost.posterior.features import consensus
from dagpost.posterior.sample import GraphSample
from dagpost.posterior.targets import conditions_of, target_matrix
from dagpost.typing import Graph

if TYPE_CHECKING:
    from networkx import DiGraph

FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets read a text that begins like this as a formula."""


def to_networkx(post: GraphSample, threshold: float = 0.0) -> DiGraph:
    """Return a networkx graph of the edges above a threshold.

    It can have cycles: different graphs of the posterior can hold edges that contradict each other.

    Parameters
    ----------
    post
        The posterior.
    threshold
        Probability from 0, below 1; only edges above it are included.

    Returns
    -------
    networkx.DiGraph
        Nodes by name; each edge has an attribute `probability`.
    """
    from networkx import DiGraph

    graph = DiGraph()
    graph.add_nodes_from(post.names)
    for i, j, probability in _edges(post, threshold):
        graph.add_edge(post.names[i], post.names[j], probability=probability)
    return graph


def _edges(post: GraphSample, threshold: float) -> list[tuple[int, int, float]]:
    """Return the edges above the threshold as (cause, effect, probability)."""
    if isinstance(threshold, bool) or not 0 <= threshold < 1:
        raise InputError(f"threshold={threshold!r}: give a probability from 0, below 1")
    marginals = post.edge_marginals
    return [(int(i), int(j), float(marginals[i, j])) for i, j in zip(*np.nonzero(marginals > threshold))]


def to_graphml(post: GraphSample, threshold: float = 0.0) -> str:
    """Return the graph of `to_networkx` as GraphML, with the conditions of the data and edges to their targets.

    Where there are conditions, nodes have a `kind` ("variable", "condition") and a `label`, edges a `kind` ("cause",
    "target").
    """
    from networkx import generate_graphml

    graph, conditions = to_networkx(post, threshold), conditions_of(post)
    if conditions:
        for name in post.names:
            graph.nodes[name].update(kind="variable", label=name)
        for edge in graph.edges:
            graph.edges[edge]["kind"] = "cause"
        nodes = _condition_nodes(conditions, post.names)
        for node, condition in zip(nodes, conditions):
            graph.add_node(node, kind="condition", label=printable(condition))
        for k, j, probability in _target_edges(post, threshold):
            graph.add_edge(nodes[k], post.names[j], probability=probability, kind="target")
    return "\n".join(generate_graphml(graph)) + "\n"


def _condition_nodes(conditions: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return a node for each condition that is no name of a column and no other condition's."""
    taken, out = set(names), []
    for condition in conditions:
        node = f"condition {printable(condition)}"
        while node in taken:
            node += "'"
        taken.add(node)
        out.append(node)
    return out


def _target_edges(post: GraphSample, threshold: float) -> list[tuple[int, int, float]]:
    """Return the targets above the threshold as (condition, node, probability)."""
    p = target_matrix(post)
    return [(int(k), int(j), float(p[k, j])) for k, j in zip(*np.nonzero(p > threshold))]


def to_dot(post: GraphSample, threshold: float = 0.05) -> str:
    """Return the edges above the threshold in the DOT language of Graphviz, labelled with their probabilities.

    Conditions of the data are ellipses, with edges to their targets; nodes and edges then have a `kind`, as in
    `to_graphml`.
    """
    conditions = conditions_of(post)
    variable, cause = (", kind=variable", ", kind=cause") if conditions else ("", "")
    lines = ["digraph posterior {", "  node [shape=box, style=rounded];"]
    lines += [f"  n{j} [label={_dot_text(name)}{variable}];" for j, name in enumerate(post.names)]
    lines += [
        f"  c{k} [label={_dot_text(printable(condition))}, shape=ellipse, style=solid, kind=condition];"
        for k, condition in enumerate(conditions)
    ]
    for i, j, p in _edges(post, threshold):
        lines.append(f"  n{i} -> n{j} [{_dot_edge(p)}{cause}];")
    for k, j, p in _target_edges(post, threshold):
        lines.append(f"  c{k} -> n{j} [{_dot_edge(p)}, style=dashed, kind=target];")
    return "\n".join([*lines, "}", ""])


def _dot_edge(p: float) -> str:
    """Return the attributes of an edge with this probability."""
    return f'label="{p:.2f}", penwidth={0.5 + 2.5 * p:.2f}, probability={p!r}'


def _dot_text(text: str) -> str:
    """Return the quoted text, backslashes doubled because Graphviz interprets `\\N` and the like in labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def to_dagitty(post: GraphSample, graph: Graph | None = None) -> str:
    """Return a DAG in the language of dagitty: the given graph, or else the consensus graph."""
    chosen = consensus(post.edge_marginals, threshold=0.5) if graph is None else np.asarray(graph, dtype=np.bool_)
    names = [_dagitty_text(name) for name in post.names]
    edges = [f"{names[i]} -> {names[j]}" for i, j in zip(*np.nonzero(chosen))]
    return "dag {\n" + "\n".join([*names, *edges]) + "\n}\n"


def _dagitty_text(text: str) -> str:
    """Return the quoted text; dagitty can escape only the quotation mark, so a name must not end in a backslash."""
    if text.endswith("\\"):
        raise InputError(f"dagitty cannot represent the name {printable(text)!r} (final backslash): rename the column")
    return '"' + text.replace('"', '\\"') + '"'


def to_csv(post: GraphSample) -> str:
    """Return the edge table as CSV; names that a spreadsheet would read as a formula get a leading apostrophe."""
    table, cells = post.edge_table(), {name: neutral(name) for name in post.names}
    for column in ("cause", "effect"):
        table[column] = [cells[name] for name in table[column].tolist()]
    return table.to_csv(index=False, lineterminator="\n")


def neutral(text: str) -> str:
    """Return the text as a cell that no spreadsheet evaluates.

    >>> neutral("=cmd()")
    "'=cmd()"
    """
    return f"'{text}" if text.startswith(FORMULA_PREFIXES) or text.lstrip().startswith(FORMULA_PREFIXES) else text


FORMATS: dict[str, Callable[[GraphSample], str]] = {
    ".csv": to_csv,
    ".graphml": to_graphml,
    ".dot": to_dot,
    ".dagitty": to_dagitty,
}


def export(post: GraphSample, path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Write a posterior in the format given by the file extension.

    Parameters
    ----------
    post
        The posterior.
    path
        File to write: .csv, .graphml, .dot or .dagitty.
    overwrite
        Whether to replace an existing file; otherwise it is an error.

    Returns
    -------
    pathlib.Path
        The file written.
    """
    target = check_target(path, overwrite)
    if target.suffix not in FORMATS:
        raise InputError(f"unknown file extension {target.suffix!r}: {nearest(target.suffix, FORMATS)}")
    return write_atomically(target, FORMATS[target.suffix](post).encode(), overwrite)
