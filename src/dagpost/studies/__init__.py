"""The paper's experiments as declarations, and their runner.

A `Study` (`declared/`) lists its tasks and says how its table and figure are laid out. A `Task` is plain data; its
words fix its random numbers and the name of its result file. `perform` turns a task into rows by one of the measures
(`measures/`); `runner.run` does so for all tasks that are not finished, in this process, in several, or on a cluster;
`collect` writes tables, a figure and where they come from; `unpack` makes tasks of them again; `page` puts them into
docs/results.md.
"""

from dagpost.studies.collect import collect, unpack
from dagpost.studies.experiments import STUDIES, study_by_name
from dagpost.studies.page import renew_page
from dagpost.studies.runner import Executor, chosen, cluster, here, numbered, processes, run, use_one_thread
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
    "chosen",
    "cluster",
    "collect",
    "here",
    "known_extras",
    "numbered",
    "processes",
    "renew_page",
    "run",
    "study_by_name",
    "unpack",
    "use_one_thread",
]
