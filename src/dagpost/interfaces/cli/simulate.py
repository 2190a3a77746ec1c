"""`dagpost simulate`: a random network, and data from it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.environment import prepare
from dagpost.interfaces.cli.messages import as_json, emit, say
from dagpost.interfaces.cli.output import output_folder, write

SIMULATE_EXAMPLES = """Examples:

\b
  dagpost simulate --nodes 10 --observations 200 --out sim
  dagpost fit sim/train.csv --out run
  dagpost fit sim/interventional.csv --interventions target --out run2
"""

TRAIN, TEST, GRAPH, INTERVENTIONAL, SUMMARY = (
    "train.csv", "test.csv", "graph.csv", "interventional.csv", "simulation.json",
)  # fmt: skip


def simulate(
    model: Annotated[str, typer.Option(help=", ".join(o.MODELS))] = "linear",
    prior: Annotated[str, typer.Option(help=", ".join(o.PRIORS))] = "erdos-renyi",
    nodes: Annotated[int, typer.Option(help="Columns.")] = 20,
    observations: Annotated[int, typer.Option(help="Rows of train.csv.")] = 100,
    test_observations: Annotated[int, typer.Option(help="Rows of test.csv.")] = 100,
    interventional_sets: Annotated[int, typer.Option(help="Sets of interventional rows.")] = 0,
    interventional_observations: Annotated[int, typer.Option(help="Rows of each such set.")] = 100,
    seed: o.Seed = 0,
    out: o.Out = "simulation",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Draw a network from the prior and data from the model, as the paper's experiments do.

    Writes train.csv, test.csv, the edges in graph.csv and, if asked for, interventional.csv with a column `target`.
    """
    prepare()
    from dagpost.simulation import simulate as draw

    sim = draw(
        model, prior, nodes, observations, seed, test_observations=test_observations,
        interventional_sets=interventional_sets, interventional_observations=interventional_observations,
    )  # fmt: skip
    names = sim.train.names
    edges = [(names[i], names[j]) for i, j in zip(*sim.graph.nonzero())]
    summary = {"model": model, "prior": prior, "nodes": nodes, "seed": seed, "edges": edges}
    files = {TRAIN: sim.train.frame(), TEST: sim.test.frame()}
    if sim.interventional:
        files[INTERVENTIONAL] = _joined(sim.interventional)
    with output_folder(out, (*files, INTERVENTIONAL, GRAPH, SUMMARY), overwrite) as folder:
        for name, frame in files.items():
            write(folder / name, frame.to_csv(index=False))
        write(folder / GRAPH, "cause,effect\n" + "".join(f"{a},{b}\n" for a, b in edges))
        write(folder / SUMMARY, as_json(summary))
    say(f"{len(edges)} edges on {nodes} nodes, {observations} rows, written to {folder}", quiet)
    if json:
        emit(as_json(summary))


def _joined(sets: tuple[Any, ...]) -> Any:
    """All sets in one table, with a column that names what was clamped."""
    import pandas as pd

    def one(data):
        clamped = [name for name, was in zip(data.names, data.intervened.any(axis=0)) if was]
        return data.frame().assign(target=";".join(clamped))

    return pd.concat([one(data) for data in sets], ignore_index=True)
