"""Markdown tables that compare methods on the same networks, from the committed tables."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log, sqrt
from typing import Any

from dagpost.errors import InputError, nearest
from dagpost.studies.experiments import study_by_name
from dagpost.studies.numbers import Number, Share, Tables, matching, paired_metric
from dagpost.studies.study import EXTRAS, Scale
from dagpost.studies.tables import AS_PUBLISHED, Row, display_name, sort_key

GRAPHS = ("erdos-renyi", "scale-free")
WEIGHTS = {"": "equal", "+": "posterior"}
"""Weights of the particles by the suffix of a method's name."""
SIMULATED = ("bge-20", "linear-20", "mlp-20")
"""Studies of simulated networks with 20 nodes."""
AGREEMENT = {"shd": "E-SHD", "auroc": "AUROC", "nll": "neg. (M)LL", "edges": "edges"}
"""Metrics in the table of `agreement`, and their headings."""
PUBLISHED_STEPS = 3000
"""DiBS steps in the paper; measured times of dibs-lib are scaled to them."""


def table(headings: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table."""
    out = [[*headings], ["---"] * len(headings), *([str(cell) for cell in line] for line in lines)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in out)


def comparison(
    tables: Tables,
    studies: Sequence[str],
    methods: Sequence[str],
    metrics: Sequence[str] = ("shd", "auroc"),
    trusted: bool = False,
) -> str:
    """Return a table of metrics by study and kind of graphs, on the networks that all methods ran on.

    Parameters
    ----------
    tables
        Committed tables.
    studies, methods
        Rows (each for both kinds of graphs) and columns.
    metrics
        Metrics in each cell, as means; "median nll" in place of "nll" gives the median.
    trusted
        Use only networks on which the chains of `auto` agreed, and add a column that counts them.
    """
    lines = []
    for study in studies:
        for graphs in GRAPHS:
            networks = tables.common(study, methods, trusted, graphs=graphs)
            line: list[object] = [study, display_name("graphs", graphs)]
            if trusted:
                line.append(tables.share(study, "trusted", graphs=graphs, method="auto"))
            lines.append([*line, len(networks), *(_cell(tables, study, networks, m, metrics) for m in methods)])
    agreed = ["`auto` agreed"] if trusted else []
    return table(["study", "graphs", *agreed, "networks", *(display_name("method", m) for m in methods)], lines)


def _cell(tables: Tables, study: str, networks: Sequence[Any], method: str, metrics: Sequence[str]) -> str:
    """Return the metrics of one method on these networks, separated by slashes; a dash without values."""
    parts = []
    for name in metrics:
        metric = name.removeprefix("median ")
        values = paired_metric(networks, metric, [method], tables.digits(study, metric))
        if not values.networks:
            return "–"
        parts.append(str(values[method] if metric == name else values.median(method)))
    return " / ".join(parts)


RELATIONS = ("below", "above", "lower", "higher", "level")
"""Properties of `Paired`; the first two compare means, the others use two standard errors."""


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
    """Raise an error unless a method has this relation to each of the others, in each study and on each kind of graphs.

    Parameters
    ----------
    tables
        Committed tables.
    relation
        One of `RELATIONS`.
    studies, graphs, others
        A name or several; all combinations are checked.
    metric, method
        What is compared.
    trusted
        Use only networks on which the chains of `auto` agreed.
    """
    if relation not in RELATIONS:
        raise InputError(f"{relation!r}: {nearest(relation, RELATIONS)}")
    for study, kind, other in itertools.product(*map(_as_sequence, (studies, graphs, others))):
        paired = tables.paired(study, metric, (method, other), trusted, graphs=kind)
        if not getattr(paired, relation):
            raise InputError(
                f"{study}, {kind}, {metric}: {method} ({paired[0]}) is not {relation}, compared with {other} "
                f"({paired[1]}): {paired.errors} standard errors on {paired.networks} networks; correct the text"
            )


def _as_sequence(names: str | Sequence[str]) -> Sequence[str]:
    """Return a single name as a sequence of one."""
    return (names,) if isinstance(names, str) else names


def agreement(tables: Tables, studies: Sequence[str] = SIMULATED) -> str:
    """Return a table of `dibs-paper` and dibs-lib: both means, and their difference in standard errors."""
    lines = []
    for study, graphs, plus, methods in _agreement_cases(studies):
        paired = [tables.paired(study, metric, methods, graphs=graphs) for metric in AGREEMENT]
        cells = [f"{p[0]}, {p[1]} ({float(p.errors):+.1f})" for p in paired]
        lines.append([study, display_name("graphs", graphs), WEIGHTS[plus], *cells, paired[0].networks])
    return table(["study", "graphs", "weights", *AGREEMENT.values(), "networks"], lines)


def disagreeing(tables: Tables, studies: Sequence[str] = SIMULATED, errors: float = 2) -> Share:
    """Return how many differences in the table of `agreement` exceed this number of standard errors."""
    each = [
        abs(tables.paired(study, metric, methods, graphs=graphs).errors) > errors
        for study, graphs, _, methods in _agreement_cases(studies)
        for metric in AGREEMENT
    ]
    return Share(sum(each), len(each))


def _agreement_cases(studies: Sequence[str]) -> list[tuple[str, str, str, tuple[str, str]]]:
    """Return study, graphs, suffix of the methods and the two methods for each row of `agreement`."""
    return [(s, g, plus, (f"dibs-paper{plus}", f"dibs-lib{plus}")) for s in studies for plus in WEIGHTS for g in GRAPHS]


def beside_paper(tables: Tables, study: str, metrics: Sequence[str] = ("shd", "auroc", "edges")) -> str:
    """Return a table of our means beside the published ones, for protein data scored as published."""
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
            lines.append([*(display_name(k, v) for k, v in where.items()), *cells, tables.runs(study, **where)])
    return table([*columns, *(layout.metrics[metric] for metric in metrics), "runs"], lines)


def _groups(rows: Iterable[Row], columns: Sequence[str]) -> list[dict[str, Any]]:
    """Return the combinations of values that these columns have, in the order of tables."""
    groups = [dict(zip(columns, values)) for values in dict.fromkeys(tuple(r.get(c) for c in columns) for r in rows)]
    first_seen = {column: list(dict.fromkeys(group[column] for group in groups)) for column in columns}
    return sorted(groups, key=lambda g: [(sort_key(c, v), first_seen[c].index(v)) for c, v in g.items()])


def missing_runs(tables: Tables, studies: Sequence[str]) -> str:
    """Return a table of the methods that have fewer runs than the study declares, and how many they have."""
    lines = []
    for study in map(study_by_name, studies):
        columns = [name for name in study.layout.rows if name not in ("method", "truth")]
        groups: dict[tuple[Any, ...], dict[str, None]] = {}
        for task in study.tasks(Scale(1, include=EXTRAS)):
            if task.run["method"] != "exact":
                groups.setdefault(tuple(task.labels.get(c) for c in columns), {})[task.run["method"]] = None
        for values, methods in groups.items():
            where = dict(zip(columns, values))
            in_order = sorted(methods, key=lambda method: sort_key("method", method))
            counts = {m: tables.runs(study.name, method=(m, f"{m}*"), **where) for m in in_order}
            fewer = [f"{display_name('method', m)} {n or 'none'}" for m, n in counts.items() if n < study.seeds]
            if fewer:
                names = [("noise " if k == "noise" else "") + display_name(k, v) for k, v in where.items()]
                lines.append([study.name, ", ".join(names), study.seeds, ", ".join(fewer)])
    return table(["study", "of it", "runs asked for", "fewer"], lines)


# ---- tables of README.md and docs/accuracy.md


def dibs_lib_quality(tables: Tables, studies: Sequence[str] = SIMULATED) -> str:
    """Return a table of E-SHD and AUROC of `dibs` and dibs-lib (DiBS and DiBS+) on the paper's protocol."""
    methods, lines = ("dibs-lib", "dibs-lib+", "dibs"), []
    for study in studies:
        for graphs in GRAPHS:
            networks = tables.common(study, methods, graphs=graphs)
            e_shd, auroc = (
                paired_metric(networks, metric, methods, digits) for metric, digits in (("shd", 1), ("auroc", 3))
            )
            shd = paired_metric(networks, "shd", ("dibs", "dibs-lib"), 1)
            cells = [f"{e_shd[k]}, {auroc[k]}" for k in range(3)]
            difference = f"{shd.difference:+.1f} ({shd.errors:+.1f})"
            lines.append([_setting(study), display_name("graphs", graphs), len(networks), *cells, difference])
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
    """Return a table of the seconds of dibs-lib, scaled to the published number of steps, and of `dibs`."""
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
    """Return a table of requested and taken seconds by number of nodes and model."""
    rows, lines = tables.benchmark("time_limits"), []
    models = list(dict.fromkeys(row["model"] for row in rows))
    for d in dict.fromkeys(row["d"] for row in rows):
        taken = [next(iter(matching(rows, {"model": model, "d": d}))) for model in models]
        cells = [f"{Number(row['taken'], 1)} s ({Number(row['compiling'], 1)} s)" for row in taken]
        lines.append([d, f"{Number(taken[0]['requested'], 0)} s", *cells])
    return table(
        ["nodes", "requested", *(f"{display_name('model', model)}: taken (compiling)" for model in models)], lines
    )


def first_answers(tables: Tables) -> str:
    """Return a table of the seconds until `dagpost fit` has an answer, and of what it says of itself."""
    lines = []
    for row in tables.benchmark("first_answer"):
        error = "exact" if "algorithm" in row else f"{row['error']:.3f}, {row['rhat']:.3f}"
        times = [f"{row['seconds']:.0f} s", f"{row['compiling']:.0f} s", f"{row['load']:.1f}"]
        lines.append([row["columns"], *times, error, "yes" if row["trusted"] else "not yet"])
    return table(["columns", "seconds", "compiling", "load before", "largest error of an edge, R̂", "trusted"], lines)


STARTS = ("dibs", "ges", "empty", "random")  # that are compared
START_PRECISION = 0.01
"""Standard error of an edge at which `benchmarks/starts.py` stops the clock."""


def seconds_needed(run: Mapping[str, Any]) -> float:
    """Return the seconds until every edge has `START_PRECISION`.

    A run that stopped earlier is extrapolated: its error falls with the square root of time.
    """
    return run["seconds"] * max(1.0, (run["error"] / START_PRECISION) ** 2)


def starts(tables: Tables) -> str:
    """Return a table of median seconds to a standard error of 0.01 on every edge, by start of the chains."""
    rows, lines = tables.benchmark("starts"), []
    for d, model, prior in dict.fromkeys((row["d"], row["model"], row["prior"]) for row in rows):
        cells = []
        for start in STARTS:
            runs = list(matching(rows, {"d": d, "model": model, "prior": prior, "start": start}))
            needed = [seconds_needed(row) for row in runs]
            reached = sum(row["error"] <= START_PRECISION for row in runs)
            cells.append(f"{Number(statistics.median(needed), 0)} ({reached} of {len(needed)})" if needed else "–")
        lines.append([d, display_name("model", model), display_name("graphs", prior), *cells])
    return table(["nodes", "model", "prior", *STARTS], sorted(lines, key=lambda line: line[:3]))


def start_ratios(tables: Tables) -> str:
    """Return a sentence: how much longer than from DiBS chains need from each other start, over all data sets."""
    needed: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in tables.benchmark("starts"):
        case = (row["d"], row["model"], row["prior"], row["set"])
        needed.setdefault(case, {})[row["start"]] = log(seconds_needed(row))
    complete = [case for case in needed.values() if set(case) == set(STARTS)]
    told = []
    for start in STARTS:
        if start != "dibs":
            ratios = [case[start] - case["dibs"] for case in complete]
            mean, error = statistics.fmean(ratios), statistics.stdev(ratios) / sqrt(len(ratios))
            told.append(f"{exp(mean):.2f} ({exp(mean - error):.2f} to {exp(mean + error):.2f}) from {start!r}")
    return (
        f"Geometric mean of the time over that from DiBS, on {len(complete)} data sets, with one standard error: "
        f"{', '.join(told)}.\n"
    )


def weights(tables: Tables) -> str:
    """Return a table of the mean largest edge error, with a method's own weights and with `weighted("posterior")`."""
    rows, lines = [row for row in tables.benchmark("accuracy") if "weighted_error" in row], []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = list(matching(rows, {"method": method}))
        means = [Number(statistics.fmean(row[name] for row in own), 3) for name in ("error", "weighted_error")]
        lines.append([f"`{method}`", *means, len(own)])
    return table(["", "own weights", '`weighted("posterior")`', "data sets"], lines)


def _setting(name: str) -> str:
    """Return model and number of nodes of a name like "bge-20"."""
    model, _, nodes = name.partition("-")
    return f"{display_name('model', model)}, d = {nodes}"


def accuracy(tables: Tables) -> str:
    """Return a table of the largest error of an edge probability against the exact posterior, by method and d.

    Cells give the worst and the median data set.
    """
    rows = tables.benchmark("accuracy")
    sizes = sorted({row["d"] for row in rows})
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        cells = []
        for d in sizes:
            errors = [row["error"] for row in own if row["d"] == d]
            cells.append(f"{max(errors):.3f}, {statistics.median(errors):.3f}" if errors else "–")
        seconds = [row["seconds"] for row in own if "seconds" in row]
        took = f"{min(seconds):.1f} to {max(seconds):.1f}" if seconds else "–"
        lines.append([f"`{method}`", *cells, took, round(len(own) / len(sizes))])
    headings = [f"d = {d}: worst, median" if k == 0 else f"d = {d}" for k, d in enumerate(sizes)]
    return table(["", *headings, "seconds", "data sets for each d"], lines)


def _one(rows: Iterable[Row]) -> Row:
    return next(iter(rows))


def foreign_networks(tables: Tables) -> str:
    """Return a table of E-SHD and AUROC on networks from the literature: the defaults and their rivals."""
    rows, lines = tables.benchmark("foreign_networks"), []
    fixed = [("bge", "erdos-renyi 1"), ("bge", "erdos-renyi 2"), ("linear", "erdos-renyi 2")]
    ways = [("bge", "unknown-density"), ("linear", "unknown-density"), *fixed]
    for network, n in dict.fromkeys((row["network"], row["rows"]) for row in rows):
        own = list(matching(rows, {"network": network, "rows": n}))
        cells = []
        for model, prior in ways:
            run = _one(matching(own, {"method": "auto", "model": model, "prior": prior}))
            cells.append(f"{run['eshd']:.0f} / {run['auroc']:.2f}")
        pc, correlation = (_one(matching(own, {"method": method})) for method in ("pc", "correlation"))
        empty = own[0]["true_edges"]
        best = f"{pc['eshd']:.0f} / {pc['auroc']:.2f}", empty, f"{correlation['auroc']:.2f}"
        lines.append([f"{network} ({own[0]['nodes']})", n, *cells, *best])
    lines.sort(key=lambda line: (line[0], line[1]))
    names = [f"{display_name('model', model)}, {prior}" for model, prior in ways]
    return table(["network (nodes)", "rows", *names, "PC", "empty", "correlation"], lines)


def foreign_counts(tables: Tables) -> str:
    """Return sentences: where the defaults are better than the empty graph, PC and correlations, and where not."""
    rows = tables.benchmark("foreign_networks")
    worse: dict[str, list[str]] = {"the empty graph in E-SHD": [], "PC in E-SHD": [], "correlations in AUROC": []}
    count = 0
    for run in matching(rows, {"method": "auto", "model": "bge", "prior": "unknown-density"}):
        count += 1
        same = list(matching(rows, {"network": run["network"], "rows": run["rows"]}))
        pc, correlation = (_one(matching(same, {"method": method})) for method in ("pc", "correlation"))
        found = (run["eshd"] < run["true_edges"], run["eshd"] < pc["eshd"], run["auroc"] > correlation["auroc"])
        for cases, better in zip(worse.values(), found):
            if not better:
                cases.append(f"{run['network']} with {run['rows']} rows")
    told = [
        f"better than {name} on {count - len(cases)} of {count}" + (f" (not on {', '.join(cases)})" if cases else "")
        for name, cases in worse.items()
    ]
    return f"The defaults are {'; '.join(told)}.\n"


BLOCKS: dict[str, Callable[[Tables], str]] = {
    "accuracy": accuracy,
    "dibs-lib-quality": dibs_lib_quality,
    "dibs-lib-times": dibs_lib_times,
    "time-limits": time_limits,
    "first-answers": first_answers,
    "starts": starts,
    "start-ratios": start_ratios,
    "weights": weights,
    "foreign-networks": foreign_networks,
    "foreign-counts": foreign_counts,
}
"""Tables that a page can have between `<!-- table NAME -->` and `<!-- end NAME -->`."""
