"""The paper's experiments as declarations, and their runner.

* A `Study` (`experiments/`) lists its tasks and declares the layout of its table and figure.
* A `Task` is plain data; its content fixes its random numbers and the name of its result file.
* `runner.perform` turns a task into rows of a table; `runner.run` does so for all tasks that are not finished, in this
  process, in several, or on a cluster. `batched` runs tasks that differ in data or restart alone as one.
* `collect` writes the table, the figure and their provenance; `unpack` restores finished tasks from these files.
* `page` puts tables and numbers into docs/results.md.
"""

from dagpost.studies.collect import collect, finished_keys, unpack
from dagpost.studies.experiments import STUDIES, study_by_name
from dagpost.studies.page import update_page
from dagpost.studies.runner import (
    Executor,
    cluster,
    processes,
    run,
    select_tasks,
    serial,
    tasks_by_index,
    use_one_thread,
)
from dagpost.studies.study import Layout, Scale, Study, known_extras
from dagpost.studies.task import Store, Task

__all__ = [
    "STUDIES",
    "Executor",
    "Layout",
    "Scale",
    "Store",
    "Study",
    "Task",
    "cluster",
    "collect",
    "finished_keys",
    "known_extras",
    "processes",
    "run",
    "select_tasks",
    "serial",
    "study_by_name",
    "tasks_by_index",
    "unpack",
    "update_page",
    "use_one_thread",
]
