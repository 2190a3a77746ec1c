"""`dagpost bench`: how long default runs take on this machine."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from dagpost.errors import InputError
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.environment import prepare
from dagpost.interfaces.cli.messages import as_json, emit, say

BENCH_EXAMPLES = """Examples:

\b
  dagpost bench
  dagpost bench --nodes 10,50 --model bge --json
"""


def bench(
    nodes: Annotated[str, typer.Option(help="Sizes, with commas between them.")] = "5,10,20",
    observations: Annotated[int, typer.Option(help="Rows.")] = 100,
    model: Annotated[str, typer.Option(help=", ".join(o.MODELS))] = "linear",
    method: Annotated[str, typer.Option(help=", ".join(o.METHODS))] = "auto",
    seed: o.Seed = 0,
    accelerator: o.Accelerator = None,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Time default runs on simulated data: the first with whatever has to be compiled, the second without."""
    try:
        sizes = [int(size) for size in nodes.split(",")]
    except ValueError:
        raise InputError(f"--nodes {nodes}: give whole numbers with commas between them") from None
    prepare(accelerator)
    results = []
    for size in sizes:
        say(f"{size} nodes …", quiet)
        results.append(timed(size, observations, model, method, seed, False if quiet else None))
    if json:
        emit(as_json(results))
        return
    lines = [f"{model}, {method}, {observations} rows", "nodes   first run      again"]
    lines += [f"{r['nodes']:5}  {r['first']:8.1f} s {r['again']:8.1f} s" for r in results]
    emit("\n".join(lines))


def timed(nodes: int, observations: int, model: str, method: str, seed: int, progress: bool | None) -> dict[str, Any]:
    """Seconds of two runs that differ in nothing but what is compiled already."""
    from dagpost.inference.fit import fit
    from dagpost.simulation import simulate

    sim = simulate(model, nodes=nodes, observations=observations, seed=seed)

    def run() -> float:
        began = time.perf_counter()
        fit(sim.train, model, method=method, seed=seed, progress=progress)
        return time.perf_counter() - began

    return {"nodes": nodes, "first": run(), "again": run()}
