"""The contract of an inference method: a frozen dataclass of options with one method, `run(problem)`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

from dagpost._util.clock import Clock
from dagpost.data import Dataset
from dagpost.errors import InputError, nearest
from dagpost.inference.checkpoints.recorder import Sections
from dagpost.models import Model
from dagpost.posterior import Posterior
from dagpost.priors import GraphPrior


@dataclass(frozen=True)
class Problem:
    """What `fit` hands to a method, checked once.

    Attributes
    ----------
    data
        Table to learn from.
    model, prior
        Model of the families and prior over graphs; the prior includes prior knowledge.
    seed
        Fixes every random number of the run.
    clock
        Time of the run. When it expires, `run` returns what there is.
    checkpoint
        Factory of checkpoint sections; None for a run without checkpoints.
    callback, every
        Called with a snapshot after `every` steps, by methods that are `watchable`.
    progress
        Whether to show a progress bar; None shows one on a terminal.
    """

    data: Dataset
    model: Model
    prior: GraphPrior
    seed: int
    clock: Clock
    checkpoint: Sections | None = None
    callback: Callable[[Any], None] | None = None
    every: int | None = None
    progress: bool | None = None

    @property
    def unobserved(self) -> str:
        """What is drawn together with the graphs, in words; empty if the data are all that a model needs."""
        if self.model.latent:
            return "latent columns"
        cells = int(self.data.is_missing.sum())
        return f"{cells:,} missing cell{'s' * (cells > 1)}" if cells else ""


@dataclass(frozen=True)
class Method(ABC):
    """Base class of inference methods. Subclasses are frozen dataclasses whose fields are the options."""

    watchable: ClassVar[bool] = False
    """Whether the method calls `problem.callback`."""
    interruptible: ClassVar[bool] = True
    """Whether the method honours time limits and checkpoints."""
    takes_missing: ClassVar[bool] = False
    """Whether the method takes tables with missing cells, with models that can draw them (`Model.completion`)."""
    takes_conditions: ClassVar[bool] = False
    """Whether the method takes models with the targets of conditions summed out (`Perturbed`)."""
    spreads: ClassVar[bool] = False
    """Whether the method has work for other processes (`workers`, `cluster`)."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The word for the method in results and on the command line."""

    @abstractmethod
    def run(self, problem: Problem) -> Posterior:
        """Infer the posterior."""

    @classmethod
    def option_names(cls) -> tuple[str, ...]:
        """Names of the options that `from_options` takes."""
        return tuple(field.name for field in fields(cls))

    @classmethod
    def from_options(cls, **options: Any) -> Self:
        """Build the method from keyword options."""
        return cls(**options)

    def options(self) -> dict[str, Any]:
        """Options that are set, by name."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def plan(self, problem: Problem) -> str:
        """Say in a sentence what the run will do, and about how long it takes where that is known."""
        return f"method {self.name}"

    def default_time_limit(self, problem: Problem) -> float | None:
        """Seconds after which the run ends if the caller sets no limit; None for no limit."""
        return None

    def compile_seconds(self, problem: Problem) -> int:
        """Roughly how long the first run on a new installation compiles."""
        return 20

    def graphs_kept(self, model: Model) -> int:
        """Number of graphs in the result, for the estimate of memory."""
        return int(getattr(self, "particles", 0))


@dataclass(frozen=True)
class MethodName:
    """A word for a method: its class, the options that the word fixes, and those that it leaves without meaning."""

    kind: type[Method]
    fixed: tuple[tuple[str, Any], ...] = ()
    without: tuple[str, ...] = ()

    def option_names(self) -> tuple[str, ...]:
        """Names of the options that are open."""
        closed = {*dict(self.fixed), *self.without}
        return tuple(name for name in self.kind.option_names() if name not in closed)

    def build(self, options: dict[str, Any]) -> Method:
        """Build the method; an unknown option is an error that names the nearest."""
        known = self.option_names()
        for name in options:
            if name not in known:
                raise InputError(f"unknown option {name!r}: {nearest(name, known)}")
        return self.kind.from_options(**dict(self.fixed), **options)
