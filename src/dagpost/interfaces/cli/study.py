"""`dagpost study`: run the paper's experiments, and write their tables and figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dagpost.errors import InputError, RunError, printable, whole_number
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.options import compile_quickly, prepare
from dagpost.interfaces.cli.output import as_json, emit, say

if TYPE_CHECKING:
    from dagpost.studies import Executor, Store, Study, Task
    from dagpost.studies.collect import Collected

EXAMPLES = """Examples:

\b
  dagpost study                                  list the studies
  dagpost study bge-20 --smoke                   a quick check at tiny sizes
  dagpost study bge-20 --workers 8               the paper's size, 8 tasks at a time; run again to continue
  dagpost study bge-20 --only method=auto,mc3    some of the tasks; the table covers finished tasks
  dagpost study bge-20 --list                    list the tasks with their indices
  dagpost study bge-20 --task 17                 one task, for job arrays; then --collect writes the table
  dagpost study linear-20 --only method=dibs-paper --together 30 --accelerator gpu
  dagpost study bge-20 --cluster tcp://10.0.0.1:8786
  dagpost study --page docs/results.md           update the page from finished tables
"""


def study(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Names of studies, or `all`.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of data sets or restarts [as in the paper]")] = None,
    out: Annotated[
        str, typer.Option(metavar="FOLDER", help="Folder of results; finished tasks in it are reused.")
    ] = "results",
    workers: Annotated[int | None, typer.Option(help="Number of processes [one per core]")] = None,
    together: Annotated[
        int | None,
        typer.Option(metavar="N", help="Batch N data sets of DiBS, dibs-lib, M-MC³ or G-MC³, for a GPU."),
    ] = None,
    cluster: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Address of a Dask scheduler to run tasks on.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUES", help="Run only tasks with these values; repeatable.")
    ] = None,
    include: Annotated[
        list[str] | None, typer.Option(metavar="METHOD", help="Optional method to add: dibs-lib.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="INDEX", help="Run these tasks only, in this process: 7, 0-9.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List tasks and whether they are finished.")] = False,
    collect: Annotated[
        bool, typer.Option("--collect", help="Run nothing; write the tables of finished tasks.")
    ] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes, to check that everything works.")] = False,
    page: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Update the generated parts of this page; repeatable.")
    ] = None,
    accelerator: o.Accelerator = None,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Run the paper's experiments with its methods and ours, and write their tables and figures.

    The result of a finished task is kept in a file and the task is never run again; Ctrl-C loses only tasks that are
    running. Each study writes table.csv, table.md, figure.png, provenance.json and tasks.csv into a folder of its name.
    Where these files exist and no task has been run yet, as in a fresh clone, the tasks in them count as finished.
    """
    if workers is not None:
        whole_number("--workers", workers, least=1)
    if seeds is not None:
        whole_number("--seeds", seeds, least=1)
    if together is not None:
        whole_number("--together", together, least=1)
    from dagpost import studies

    for one_page in page or ():
        say(f"{printable(one_page)}: {', '.join(studies.update_page(one_page, out)) or 'no results yet'}", quiet)
    if not names:
        if not page:
            emit(as_json(_catalogue()) if json else _overview())
        return
    selected = list(studies.STUDIES.values()) if names == ["all"] else [studies.study_by_name(name) for name in names]
    if (task is not None or list_) and len(selected) > 1:
        raise InputError("--task and --list take one study: name one")
    if not any(one.alone for one in selected):
        studies.use_one_thread()
    if smoke:
        compile_quickly()
    prepare(accelerator)
    store = None if list_ else _store(out, quiet)
    records, failed = [], []
    for one in selected:
        scale = studies.Scale(one.seeds if seeds is None else seeds, smoke, studies.known_extras(include or ()))
        tasks = one.tasks(scale)
        chosen = studies.select_tasks(tasks, only or ())
        if task is not None:
            chosen = [t for t in studies.tasks_by_index(tasks, task) if t in chosen]
        if store is None:
            _print_list(tasks, set(chosen), studies.finished_keys(out, tasks), json)
            return
        if not collect:
            execute = _executor(
                one, workers=workers, batch=together, cluster=cluster, in_this_process=task is not None
            )  # fmt: skip
            failures = studies.run(chosen, store, execute, one.name, False if quiet else None)
            failed += failures
            for failure in failures[:5]:
                say(f"dagpost: {one.name}: failed: {failure.task}: {failure.why}"[:400])
        if task is None:
            records.append(_report_collected(one, studies.collect(one, scale, store), quiet))
    if json:
        emit(as_json(records))
    if failed:
        raise RunError(f"{len(failed)} tasks failed, the first with {failed[0].why}; run again to retry them")


def _store(out: str, quiet: bool) -> Store:
    """Return the folder of results; the tables of a fresh clone become finished tasks."""
    from dagpost import studies

    if count := studies.unpack(out):
        say(f"{printable(out)}: {count} tasks of earlier runs restored from its tables", quiet)
    return studies.Store.at(out)


def _executor(
    study: Study, *, workers: int | None, batch: int | None, cluster: str | None, in_this_process: bool
) -> Executor:
    """Return the executor that the options ask for; studies that measure time always run serially."""
    from dagpost import studies
    from dagpost._util.environment import available_cores

    if in_this_process or study.alone:
        return studies.serial
    if cluster is not None:
        return studies.cluster(cluster)
    if batch is not None:
        from dagpost.studies.batched import batched

        return batched(batch)
    return studies.processes(available_cores() if workers is None else workers)


def _report_collected(study: Study, collected: Collected, quiet: bool) -> dict[str, Any]:
    """Print which files were written, and return the same as a record for JSON."""
    if collected.finished < collected.tasks:
        say(f"{study.name}: the table covers {collected.finished} of {collected.tasks} tasks", quiet)
    if collected.files:
        say(f"{study.name}: written to {printable(collected.folder)}: {', '.join(collected.files)}", quiet)
        if "figure.png" not in collected.files:
            say("no figure.png: matplotlib is not installed: pip install 'dagpost[report]'", quiet)
    return {
        "study": study.name, "tasks": collected.tasks, "finished": collected.finished,
        "folder": str(collected.folder), "files": list(collected.files),
    }  # fmt: skip


def _print_list(tasks: list[Task], chosen: set[Task], done: set[str], json: bool) -> None:
    """Print the chosen tasks with their indices among all tasks, and whether they are finished."""
    listed = [(k, one) for k, one in enumerate(tasks) if one in chosen]
    if json:
        emit(as_json([{"index": k, "finished": one.key in done, **one.labels} for k, one in listed]))
    else:
        emit("\n".join(f"{k:5} {'done' if one.key in done else '    '} {one}" for k, one in listed))


def _catalogue() -> list[dict[str, Any]]:
    """Return name, title, place in the paper and description of every study."""
    from dagpost.studies import STUDIES

    return [{"study": s.name, "title": s.title, "paper": s.source, "about": s.shows} for s in STUDIES.values()]


def _overview() -> str:
    """Return the list of studies as text."""
    lines = [f"{s['study']:22} {s['title']} ({s['paper']})" for s in _catalogue()]
    return "\n".join([*lines, "", "run one with `dagpost study NAME`, or try it with `dagpost study NAME --smoke`"])
