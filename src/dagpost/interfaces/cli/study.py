"""`dagpost study`: the paper's tables and figures, regenerated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from dagpost.errors import InputError, RunError, printable, whole_number
from dagpost.interfaces.cli import options as o
from dagpost.interfaces.cli.messages import as_json, emit, say
from dagpost.interfaces.cli.options import compile_quickly, prepare

if TYPE_CHECKING:
    from dagpost.studies import Executor, Store, Study, Task

EXAMPLES = """Examples:

\b
  dagpost study                                  what there is
  dagpost study bge-20 --smoke                   does it work? tiny sizes
  dagpost study bge-20 --workers 8               the paper's size, 8 tasks at a time; start again after a stop
  dagpost study bge-20 --only method=auto,mc3    some of the tasks; the table covers what is finished
  dagpost study bge-20 --list                    tasks with their indices
  dagpost study bge-20 --task 17                 one task, for job arrays; then --collect writes the table
  dagpost study linear-20 --only method=dibs-paper --together 30 --accelerator gpu
  dagpost study bge-20 --cluster tcp://10.0.0.1:8786
  dagpost study --page docs/results.md           renew the page from finished tables; may be repeated
"""


def study(
    names: Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Studies, or `all`.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Data sets or restarts [as many as the paper has]")] = None,
    out: Annotated[str, typer.Option(metavar="FOLDER", help="Where results go, and are found again.")] = "results",
    workers: Annotated[int | None, typer.Option(help="Processes [one for each core]")] = None,
    together: Annotated[
        int | None, typer.Option(metavar="N", help="Run DiBS on so many data sets at once, in one process: for a GPU.")
    ] = None,
    cluster: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler to run tasks on.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUES", help="Some tasks; may be repeated.")] = None,
    include: Annotated[list[str] | None, typer.Option(metavar="METHOD", help="Also run dibs-lib.")] = None,
    task: Annotated[str | None, typer.Option(metavar="INDEX", help="These tasks alone, here: 7, 0-9.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="Print tasks and whether they are finished.")] = False,
    collect: Annotated[bool, typer.Option("--collect", help="Run nothing; write tables of what is finished.")] = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Tiny sizes: does everything work?")] = False,
    page: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Renew what is generated on this page.")
    ] = None,
    accelerator: o.Accelerator = None,
    quiet: o.Quiet = False,
    json: o.Json = False,
) -> None:
    """Run studies of the paper: every table and figure, on its methods and ours.

    A finished task is a file and is never run again; Ctrl-C loses the tasks that are running. Each study writes
    table.csv, table.md, figure.png, provenance.json and tasks.csv into a folder of its name; where there are such
    files and no tasks yet, as in a fresh clone, their tasks count as finished.
    """
    if workers is not None:
        whole_number("--workers", workers, least=1)
    if seeds is not None:
        whole_number("--seeds", seeds, least=1)
    if together is not None:
        whole_number("--together", together, least=1)
    from dagpost import studies

    for one_page in page or ():
        say(f"{printable(one_page)}: {', '.join(studies.renew_page(one_page, out)) or 'no results yet'}", quiet)
    if not names:
        if not page:
            emit(as_json(_catalogue()) if json else _overview())
        return
    wanted = list(studies.STUDIES.values()) if names == ["all"] else [studies.study_by_name(name) for name in names]
    if (task is not None or list_) and len(wanted) > 1:
        raise InputError("--task and --list are for one study: name one")
    if not any(one.alone for one in wanted):
        studies.use_one_thread()
    if smoke:
        compile_quickly()
    prepare(accelerator)
    store = _store(out, quiet)
    told, failed = [], []
    for one in wanted:
        scale = studies.Scale(one.seeds if seeds is None else seeds, smoke, studies.known_extras(include or ()))
        tasks = one.tasks(scale)
        picked = studies.chosen(tasks, only or ())
        if task is not None:
            picked = [t for t in studies.numbered(tasks, task) if t in picked]
        if list_:
            _print_list(tasks, set(picked), store, json)
            return
        if not collect:
            execute = _executor(one, workers, together, cluster, in_this_process=task is not None)
            failures = studies.run(picked, store, execute, one.name, False if quiet else None)
            failed += failures
            for failure in failures[:5]:
                say(f"dagpost: {one.name}: failed: {failure.task}: {failure.why}"[:400])
        if task is None:
            told.append(_collected(one, studies.collect(one, scale, store), quiet))
    if json:
        emit(as_json(told))
    if failed:
        raise RunError(f"{len(failed)} tasks failed, the first: {failed[0].why}; run again to try them once more")


def _store(out: str, quiet: bool) -> Store:
    """The folder of results; the tables of a fresh clone become finished tasks."""
    from dagpost import studies

    if count := studies.unpack(out):
        say(f"{printable(out)}: {count} tasks of earlier runs taken over from its tables", quiet)
    return studies.Store.at(out)


def _executor(
    study: Study, workers: int | None, together: int | None, cluster: str | None, in_this_process: bool
) -> Executor:
    from dagpost import studies
    from dagpost.studies.provenance import cores

    if in_this_process or study.alone:
        return studies.here
    if cluster is not None:
        return studies.cluster(cluster)
    if together is not None:
        from dagpost.studies.batched import together as joined

        return joined(together)
    return studies.processes(cores() if workers is None else workers)


def _collected(study: Study, found: Any, quiet: bool) -> dict[str, Any]:
    if found.finished < found.tasks:
        say(f"{study.name}: the table covers {found.finished} of {found.tasks} tasks", quiet)
    if found.files:
        say(f"{study.name}: written to {printable(found.folder)}: {', '.join(found.files)}", quiet)
        if "figure.png" not in found.files:
            say("no figure.png: matplotlib is not installed; pip install 'dagpost[report]' brings it", quiet)
    return {
        "study": study.name, "tasks": found.tasks, "finished": found.finished, "folder": str(found.folder),
        "files": list(found.files),
    }  # fmt: skip


def _print_list(tasks: list[Task], picked: set[Task], store: Any, json: bool) -> None:
    done = store.finished(tasks)
    shown = [(k, one) for k, one in enumerate(tasks) if one in picked]
    if json:
        emit(as_json([{"index": k, "finished": one.key in done, **one.labels} for k, one in shown]))
    else:
        emit("\n".join(f"{k:5} {'done' if one.key in done else '    '} {one}" for k, one in shown))


def _catalogue() -> list[dict[str, Any]]:
    from dagpost.studies import STUDIES

    return [{"study": s.name, "title": s.title, "paper": s.source, "about": s.shows} for s in STUDIES.values()]


def _overview() -> str:
    lines = [f"{s['study']:22} {s['title']} ({s['paper']})" for s in _catalogue()]
    return "\n".join([*lines, "", "run one with `dagpost study NAME`, or `dagpost study NAME --smoke` to try it"])
