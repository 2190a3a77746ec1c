"""`dagpost simulate` draws a random network and data from it; `dagpost bench` times runs on such data."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from dagpost.errors import InputError
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import prepare
from dagpost.interfaces.cli.output import as_json, emit, output_folder, say, write

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
    nodes: Annotated[int, typer.Option(help="Number of nodes, the columns of the tables.")] = 20,
    observations: Annotated[int, typer.Option(help="Rows in train.csv.")] = 100,
    test_observations: Annotated[int, typer.Option(help="Rows in test.csv.")] = 100,
    interventional_sets: Annotated[int, typer.Option(help="Number of interventional data sets.")] = 0,
    interventional_observations: Annotated[int, typer.Option(help="Rows in each interventional data set.")] = 100,
    seed: o.Seed = 0,
    out: o.Out = "simulation",
    overwrite: o.Overwrite = False,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Draw a network from the prior and data from the model, as the paper's experiments do.

    Writes train.csv, test.csv, graph.csv with the edges and, on request, interventional.csv with a column `target`.
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
        files[INTERVENTIONAL] = _concatenate(sim.interventional)
    with output_folder(out, (*files, INTERVENTIONAL, GRAPH, SUMMARY), overwrite) as folder:
        for name, frame in files.items():
            write(folder / name, frame.to_csv(index=False))
        write(folder / GRAPH, "cause,effect\n" + "".join(f"{a},{b}\n" for a, b in edges))
        write(folder / SUMMARY, as_json(summary))
    say(f"{len(edges)} edges on {nodes} nodes, {observations} rows, written to {folder}", quiet)
    if json:
        emit(as_json(summary))


def _concatenate(sets: tuple[Any, ...]) -> Any:
    """Return all sets as one table, with a column `target` that names the nodes that were intervened on."""
    import pandas as pd

    def with_target(data):
        targets = [name for name, intervened in zip(data.names, data.intervened.any(axis=0)) if intervened]
        return data.frame().assign(target=";".join(targets))

    return pd.concat([with_target(data) for data in sets], ignore_index=True)


BENCH_EXAMPLES = """Examples:

\b
  dagpost bench
  dagpost bench --nodes 10,50 --model bge --json
"""


def bench(
    nodes: Annotated[str, typer.Option(help="Numbers of nodes, separated by commas.")] = "5,10,20",
    observations: Annotated[int, typer.Option(help="Number of rows.")] = 100,
    model: Annotated[str, typer.Option(help=", ".join(o.MODELS))] = "linear",
    method: Annotated[str, typer.Option(help=", ".join(o.METHODS))] = "auto",
    seed: o.Seed = 0,
    accelerator: o.Accelerator = None,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Time default runs on simulated data: a first run, which may compile, and a second, which does not."""
    try:
        sizes = [int(size) for size in nodes.split(",")]
    except ValueError:
        raise InputError(f"--nodes {nodes}: give whole numbers separated by commas") from None
    prepare(accelerator)
    results = []
    for size in sizes:
        say(f"{size} nodes …", quiet)
        progress = False if quiet else None
        results.append(time_runs(size, observations, model=model, method=method, seed=seed, progress=progress))
    if json:
        emit(as_json(results))
        return
    lines = [f"{model}, {method}, {observations} rows", "nodes   first run     second"]
    lines += [f"{r['nodes']:5}  {r['first']:8.1f} s {r['again']:8.1f} s" for r in results]
    emit("\n".join(lines))


def time_runs(
    nodes: int, observations: int, *, model: str, method: str, seed: int, progress: bool | None
) -> dict[str, Any]:
    """Return the seconds of two equal runs; the second finds everything compiled."""
    from dagpost.inference.fit import fit
    from dagpost.simulation import simulate

    sim = simulate(model, nodes=nodes, observations=observations, seed=seed)

    def run() -> float:
        began = time.perf_counter()
        fit(sim.train, model, method=method, seed=seed, progress=progress)
        return time.perf_counter() - began

    return {"nodes": nodes, "first": run(), "again": run()}
