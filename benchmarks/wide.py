"""Do results stay usable with 1,000 columns? Seconds, memory and sizes of everything that is done with a posterior.

    python benchmarks/wide.py [--nodes 1000] [--draws 1000] [--rows 200] [--only report show]

The posterior is made up: sparse random DAGs around a common one, with a table to draw parameters from. Each operation
runs in a process of its own; memory is how far it raises the peak that making the posterior left.
"""

from __future__ import annotations

import argparse
import io
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np

import dagpost as dp
from dagpost.data import Dataset
from dagpost.models import BGe
from dagpost.posterior.records import ChainDiagnostics, RunRecord, Sampling, Verdict
from dagpost.priors import ErdosRenyi


def made_up(nodes: int, draws: int, rows: int) -> dp.Posterior:
    """Return DAGs with two edges per node, a tenth of which differ from draw to draw, and a table."""
    rng = np.random.default_rng(0)
    order = rng.permutation(nodes)
    edges = 2 * nodes
    common = rng.integers(nodes, size=(edges, 2))
    graphs = np.zeros((draws, nodes, nodes), np.bool_)
    for graph in graphs:
        pairs = np.vstack([common[rng.random(edges) < 0.9], rng.integers(nodes, size=(edges // 10, 2))])
        early, late = pairs.min(axis=1), pairs.max(axis=1)
        graph[order[early[early < late]], order[late[early < late]]] = True
    values = np.zeros((rows, nodes))
    for node in order:  # causes come first in this order
        values[:, node] = rng.standard_normal(rows) + 0.5 * values @ graphs[0][:, node]
    data = Dataset(values, tuple(f"gene{k}" for k in range(nodes))).standardised()
    errors = np.full((nodes, nodes), 0.005).tolist()
    diagnostics = ChainDiagnostics(
        rhat=1.01, ess=400.0, error=0.01, rhat_log_posterior=1.0, ess_log_posterior=500.0, edge_errors=errors,
        acceptance={"pair": 0.1}, swap_rates=[0.3], heats=[1.0, 0.5], ensembles=4, rounds=draws, moves=10**9,
        seconds=60.0, ended_by="diagnostics", start="empty",
    )  # fmt: skip
    record = RunRecord("auto", Sampling(sample=True, chain_lengths=[draws // 4] * 4), diagnostics, Verdict("Made up."))
    post = dp.Posterior(graphs, np.zeros(draws), data.names, BGe(), ErdosRenyi(), record=record, data=data)
    return replace(post, marginals=post.edge_marginals)


def peak() -> float:
    """Return the largest memory of this process so far, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def summary_of(post: dp.Posterior) -> dict:
    from dagpost.inference.defaults import assume
    from dagpost.interfaces.cli.output import summarise

    assert post.data is not None
    return summarise(post, "genes.csv", assume(post.data, "bge", None, "auto"), 0, 1.0)


def operations(post: dp.Posterior, folder: Path) -> dict:
    """Return each operation as a function; what it returns is the size of its output in bytes, if any."""
    from dagpost.interfaces.cli import main
    from dagpost.interfaces.cli.output import as_json, save
    from dagpost.report import html_report, png_report, text_report

    def run_folder() -> None:
        save(post, folder, summary_of(post), "")

    def command(*words: str) -> int:
        run_folder()
        began, out = time.perf_counter(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(io.StringIO()):
            assert main([words[0], str(folder), *words[1:]]) == 0
        print(f"({words[0]} alone: {time.perf_counter() - began:.1f} s) ", end="")
        return len(out.getvalue())

    def export(suffix: str) -> int:
        path = folder / f"edges{suffix}"
        post.export(path)
        return path.stat().st_size

    return {
        "save": lambda: post.save(folder / "p.nc").stat().st_size,
        "summary": lambda: len(as_json(summary_of(post))),
        "html": lambda: len(html_report(post, {"table": "genes.csv"})),
        "png": lambda: len(png_report({**summary_of(post)}, post)),
        "text": lambda: len(text_report(summary_of(post))),
        "show": lambda: command("show"),
        "report": lambda: command("report"),
        ".csv": lambda: export(".csv"),
        ".graphml": lambda: export(".graphml"),
        ".dot": lambda: export(".dot"),
        ".dagitty": lambda: export(".dagitty"),
        "edge_table": lambda: len(post.edge_table()),
        "pair_table": lambda: len(post.pair_table()),
        "ancestors": lambda: post.ancestor_probabilities.size,
        "intervals": lambda: post.edge_intervals().size,
        "classes": lambda: len(post.essential_graphs(5)),
        "parents": lambda: len(post.parents("gene7").sets),
        "consensus": lambda: int(post.consensus_graph().sum()),
        "effect": lambda: 0 if post.effect("gene1", "gene2") is None else 1,
        "merged": lambda: len(post.merged()),
        "heat map": lambda: 0 if dp.plot.heat_map(post) is None else 1,
        "graph": lambda: 0 if dp.plot.graph(post) is None else 1,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--only", nargs="+", help="names of operations")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one operation")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        post = made_up(options.nodes, options.draws, options.rows)
        with tempfile.TemporaryDirectory() as folder:
            before, began = peak(), time.perf_counter()
            size = operations(post, Path(folder))[options.one]()
            seconds = time.perf_counter() - began
        print(f"{seconds:8.1f} s  {max(peak() - before, 0):6.2f} GiB more than {before:.2f}  size {size:,}", flush=True)
        return
    names = options.only or list(operations(made_up(5, 4, 5), Path()))
    print(
        f"{options.nodes} columns, {options.draws} draws: {options.draws * options.nodes**2 / 2**30:.2f} GiB of graphs"
    )
    for name in names:
        print(f"{name:12}", end="", flush=True)
        sizes = ["--nodes", options.nodes, "--draws", options.draws, "--rows", options.rows]
        try:
            subprocess.run([sys.executable, __file__, "--one", name, *map(str, sizes)], timeout=options.limit)
        except subprocess.TimeoutExpired:
            print(f"  more than {options.limit:.0f} s", flush=True)


if __name__ == "__main__":
    main()
