"""Markdown tables that compare methods, always on the same networks, from the committed tables."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dagpost.errors import InputError, nearest
from dagpost.inference.auto import STARTS
from dagpost.studies.experiments import study_by_name
from dagpost.studies.numbers import Number, Share, Tables, matching, of_metric
from dagpost.studies.study import EXTRAS, Scale
from dagpost.studies.tables import AS_PUBLISHED, Row, place, shown

GRAPHS = ("erdos-renyi", "scale-free")
WEIGHTS = {"": "equal", "+": "posterior"}
"""What a method's name ends with, and how its particles are weighted."""
SIMULATED = ("bge-20", "linear-20", "mlp-20")
AGREEMENT = {"shd": "E-SHD", "auroc": "AUROC", "nll": "neg. (M)LL", "edges": "edges"}
PUBLISHED_STEPS = 3000
"""Of DiBS, and of dibs-lib where its time is scaled."""


def table(headings: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    out = [[*headings], ["---"] * len(headings), *([str(cell) for cell in line] for line in lines)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in out)


def comparison(
    tables: Tables,
    studies: Sequence[str],
    methods: Sequence[str],
    metrics: Sequence[str] = ("shd", "auroc"),
    trusted: bool = False,
) -> str:
    """A line for each study and kind of graphs, a column for each method, on the networks that all methods ran on.

    A cell lists the means of the metrics; "median nll" in place of "nll" lists the median. With `trusted` these are the
    networks on which `auto` agreed with itself, and a column says of how many.
    """
    lines = []
    for study in studies:
        for graphs in GRAPHS:
            networks = tables.common(study, methods, trusted, graphs=graphs)
            line: list[object] = [study, shown("graphs", graphs)]
            if trusted:
                line.append(tables.share(study, "trusted", graphs=graphs, method="auto"))
            lines.append([*line, len(networks), *(_cell(tables, study, networks, m, metrics) for m in methods)])
    agreed = ["`auto` agreed"] if trusted else []
    return table(["study", "graphs", *agreed, "networks", *(shown("method", m) for m in methods)], lines)


def _cell(tables: Tables, study: str, networks: Sequence[Any], method: str, metrics: Sequence[str]) -> str:
    parts = []
    for name in metrics:
        metric = name.removeprefix("median ")
        found = of_metric(networks, metric, [method], tables.digits(study, metric))
        if not found.networks:
            return "–"
        parts.append(str(found[method] if metric == name else found.median(method)))
    return " / ".join(parts)


RELATIONS = ("below", "above", "lower", "higher", "level")
"""Properties of `Paired`: by their means, and by two standard errors."""


def everywhere(
    tables: Tables,
    relation: str,
    studies: str | Sequence[str],
    metric: str,
    method: str,
    others: str | Sequence[str],
    graphs: str | Sequence[str] = GRAPHS,
    trusted: bool = False,
) -> None:
    """Check that a method stands in this relation to each of the others, in each study, on each kind of graphs."""
    if relation not in RELATIONS:
        raise InputError(f"{relation!r}: {nearest(relation, RELATIONS)}")
    for study, kind, other in itertools.product(*map(_several, (studies, graphs, others))):
        found = tables.paired(study, metric, (method, other), trusted, graphs=kind)
        if not getattr(found, relation):
            raise InputError(
                f"{study}, {kind}, {metric}: {method} ({found[0]}) is not {relation}, compared with {other} "
                f"({found[1]}): {found.errors} standard errors on {found.networks} networks; mend the sentence"
            )


def _several(names: str | Sequence[str]) -> Sequence[str]:
    return (names,) if isinstance(names, str) else names


def agreement(tables: Tables, studies: Sequence[str] = SIMULATED) -> str:
    """`dibs-paper` and dibs-lib: both means, and the difference in its standard errors."""
    lines = []
    for study, graphs, plus, methods in _agreeing(studies):
        found = [tables.paired(study, metric, methods, graphs=graphs) for metric in AGREEMENT]
        cells = [f"{p[0]}, {p[1]} ({float(p.errors):+.1f})" for p in found]
        lines.append([study, shown("graphs", graphs), WEIGHTS[plus], *cells, found[0].networks])
    return table(["study", "graphs", "weights", *AGREEMENT.values(), "networks"], lines)


def disagreeing(tables: Tables, studies: Sequence[str] = SIMULATED, errors: float = 2) -> Share:
    """How many of the differences in that table are beyond so many standard errors."""
    each = [
        abs(tables.paired(study, metric, methods, graphs=graphs).errors) > errors
        for study, graphs, _, methods in _agreeing(studies)
        for metric in AGREEMENT
    ]
    return Share(sum(each), len(each))


def _agreeing(studies: Sequence[str]) -> list[tuple[str, str, str, tuple[str, str]]]:
    return [(s, g, plus, (f"dibs-paper{plus}", f"dibs-lib{plus}")) for s in studies for plus in WEIGHTS for g in GRAPHS]


def beside_paper(tables: Tables, study: str, metrics: Sequence[str] = ("shd", "auroc", "edges")) -> str:
    """Our means beside the published ones, for the protein data in file order."""
    layout = study_by_name(study).layout
    columns = [name for name in layout.rows if name != "truth"]
    rows = [row for row in tables.rows(study) if row["truth"] == AS_PUBLISHED]
    lines = []
    for where in _groups(rows, columns):
        cells = []
        for metric in metrics:
            try:
                theirs = tables.paper(study, metric, **where)
            except ValueError:
                cells.append("")
                continue
            cells.append(f"{tables.mean(study, metric, truth=AS_PUBLISHED, **where)} ({theirs})")
        if any(cells):
            lines.append([*(shown(k, v) for k, v in where.items()), *cells, tables.runs(study, **where)])
    return table([*columns, *(layout.metrics[metric] for metric in metrics), "runs"], lines)


def _groups(rows: Iterable[Row], columns: Sequence[str]) -> list[dict[str, Any]]:
    """The combinations of values that these columns have, in the order of tables."""
    found = [dict(zip(columns, values)) for values in dict.fromkeys(tuple(r.get(c) for c in columns) for r in rows)]
    came = {column: list(dict.fromkeys(group[column] for group in found)) for column in columns}
    return sorted(found, key=lambda g: [(place(c, v), came[c].index(v)) for c, v in g.items()])


def missing_runs(tables: Tables, studies: Sequence[str]) -> str:
    """Which methods have fewer runs than the study asks for, and how many they have."""
    lines = []
    for study in map(study_by_name, studies):
        columns = [name for name in study.layout.rows if name not in ("method", "truth")]
        groups: dict[tuple[Any, ...], dict[str, None]] = {}
        for task in study.tasks(Scale(1, include=EXTRAS)):
            if task.run["method"] != "exact":
                groups.setdefault(tuple(task.labels.get(c) for c in columns), {})[task.run["method"]] = None
        for values, methods in groups.items():
            where = dict(zip(columns, values))
            by_place = sorted(methods, key=lambda method: place("method", method))
            counts = {m: tables.runs(study.name, method=(m, f"{m}*"), **where) for m in by_place}
            fewer = [f"{shown('method', m)} {n or 'none'}" for m, n in counts.items() if n < study.seeds]
            if fewer:
                group = ", ".join(f"noise {shown(k, v)}" if k == "noise" else shown(k, v) for k, v in where.items())
                lines.append([study.name, group, study.seeds, ", ".join(fewer)])
    return table(["study", "of it", "runs asked for", "fewer"], lines)


# ---- README.md and docs/accuracy.md


def dibs_lib_quality(tables: Tables, studies: Sequence[str] = SIMULATED) -> str:
    """`dibs` beside dibs-lib on the paper's protocol: E-SHD and AUROC, of dibs-lib weighted as well."""
    methods, lines = ("dibs-lib", "dibs-lib+", "dibs"), []
    for study in studies:
        for graphs in GRAPHS:
            networks = tables.common(study, methods, graphs=graphs)
            e_shd, auroc = (
                of_metric(networks, metric, methods, digits) for metric, digits in (("shd", 1), ("auroc", 3))
            )
            better = of_metric(networks, "shd", ("dibs", "dibs-lib"), 1)
            cells = [f"{e_shd[k]}, {auroc[k]}" for k in range(3)]
            differs = f"{better.difference:+.1f} ({better.errors:+.1f})"
            lines.append([_setting(study), shown("graphs", graphs), len(networks), *cells, differs])
    headings = [
        "",
        "graphs",
        "networks",
        "dibs-lib: DiBS",
        "dibs-lib: DiBS+",
        "dagpost: `dibs`",
        "difference of E-SHD (s.e.)",
    ]
    return table(headings, lines)


def dibs_lib_times(tables: Tables) -> str:
    """Seconds of a run of dibs-lib, scaled to the published number of steps, and of `dibs`; measured settings alone."""
    rows, lines = tables.benchmark("dibs_lib"), []
    for setting in dict.fromkeys(row["setting"] for row in rows):
        timed = [row for row in matching(rows, {"setting": setting}) if "time" in row]
        theirs = [row["time"] / row["steps"] for row in timed if row["library"] == "dibs-lib"]
        ours = [row for row in timed if row["library"] == "dagpost"]
        if theirs and ours:
            total, own = PUBLISHED_STEPS * statistics.median(theirs), statistics.median(r["time"] for r in ours)
            steps = statistics.median(r["steps"] for r in ours)
            cells = [f"{Number(total, 0)} s", f"{own:.1f} s", Number(steps, 0), Number(total / own, 0)]
            lines.append([_setting(setting), *cells])
    return table(["", f"dibs-lib, {PUBLISHED_STEPS:,} steps", "dagpost", "its steps", "ratio"], lines)


def time_limits(tables: Tables) -> str:
    """Requested and taken seconds, for each number of nodes."""
    rows, lines = tables.benchmark("time_limits"), []
    models = list(dict.fromkeys(row["model"] for row in rows))
    for d in dict.fromkeys(row["d"] for row in rows):
        taken = [next(iter(matching(rows, {"model": model, "d": d}))) for model in models]
        cells = [f"{Number(row['taken'], 1)} s ({Number(row['compiling'], 1)} s)" for row in taken]
        lines.append([d, f"{Number(taken[0]['requested'], 0)} s", *cells])
    return table(["nodes", "requested", *(f"{shown('model', model)}: taken (compiling)" for model in models)], lines)


START_PRECISION = 0.01
"""Standard error of an edge at which `benchmarks/starts.py` stops the clock."""


def seconds_needed(run: Mapping[str, Any]) -> float:
    """Until every edge has that precision; a run that did not get there goes on, its error falling with the root of
    time."""
    return run["seconds"] * max(1.0, (run["error"] / START_PRECISION) ** 2)


def starts(tables: Tables) -> str:
    """Seconds to a standard error of 0.01 on every edge by where chains start: medians over data sets."""
    rows, lines = tables.benchmark("starts"), []
    for d, model, prior in dict.fromkeys((row["d"], row["model"], row["prior"]) for row in rows):
        cells = []
        for start in STARTS:
            runs = list(matching(rows, {"d": d, "model": model, "prior": prior, "start": start}))
            needed = [seconds_needed(row) for row in runs]
            reached = sum(row["error"] <= START_PRECISION for row in runs)
            cells.append(f"{Number(statistics.median(needed), 0)} ({reached} of {len(needed)})" if needed else "–")
        lines.append([d, shown("model", model), shown("graphs", prior), *cells])
    return table(["nodes", "model", "prior", *STARTS], sorted(lines, key=lambda line: line[0]))


def weights(tables: Tables) -> str:
    """Mean over data sets of the largest edge error, with a method's own weights and with `weighted("posterior")`."""
    rows, lines = [row for row in tables.benchmark("accuracy") if "weighted_error" in row], []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = list(matching(rows, {"method": method}))
        means = [Number(statistics.fmean(row[name] for row in own), 3) for name in ("error", "weighted_error")]
        lines.append([f"`{method}`", *means, len(own)])
    return table(["", "own weights", '`weighted("posterior")`', "data sets"], lines)


def _setting(name: str) -> str:
    """The model and the number of nodes in a name like "bge-20"."""
    model, _, nodes = name.partition("-")
    return f"{shown('model', model)}, d = {nodes}"


def accuracy(tables: Tables) -> str:
    """Largest error of an edge probability against the exact posterior: worst and median data set, by method and d."""
    rows = tables.benchmark("accuracy")
    sizes = sorted({row["d"] for row in rows})
    kinds = dict.fromkeys((row["method"], row.get("weighting")) for row in rows)
    lines = []
    for method, weighting in kinds:
        own = [row for row in rows if (row["method"], row.get("weighting")) == (method, weighting)]
        several = sum(kind[0] == method for kind in kinds) > 1
        cells = []
        for d in sizes:
            errors = [row["error"] for row in own if row["d"] == d]
            cells.append(f"{max(errors):.3f}, {statistics.median(errors):.3f}" if errors else "–")
        seconds = [row["seconds"] for row in own if "seconds" in row]
        took = f"{min(seconds):.1f} to {max(seconds):.1f}" if seconds else "–"
        label = f"`{method}`, {weighting} weights" if several and weighting else f"`{method}`"
        lines.append([label, *cells, took, round(len(own) / len(sizes))])
    headings = [f"d = {d}: worst, median" if k == 0 else f"d = {d}" for k, d in enumerate(sizes)]
    return table(["", *headings, "seconds", "data sets for each d"], lines)


BLOCKS: dict[str, Callable[[Tables], str]] = {
    "accuracy": accuracy,
    "dibs-lib-quality": dibs_lib_quality,
    "dibs-lib-times": dibs_lib_times,
    "time-limits": time_limits,
    "starts": starts,
    "weights": weights,
}
"""What a page can have between `<!-- table NAME -->` and `<!-- end NAME -->`."""
