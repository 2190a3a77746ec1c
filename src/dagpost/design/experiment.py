"""`next_experiment`: candidates for the next experiment, ranked by the information that they are expected to give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import jax
import numpy as np
import pandas as pd
from jaxtyping import Float

from dagpost._util.numerics import key_from_seed
from dagpost._util.progress import Advance, progress_bar
from dagpost.design.information import Question, effect_bins, effect_values, relevant_nodes
from dagpost.design.outcomes import Clamped, ClosedForm, Densities, Drawn, Result, Truths, truths_among, truths_of
from dagpost.errors import InputError, nearest, printable, whole_number
from dagpost.models import Model, Perturbed
from dagpost.posterior import Posterior
from dagpost.posterior.effects import contrast_of, pair_of
from dagpost.posterior.notebook import titled_table
from dagpost.posterior.parameters import clamped_values, raw_units
from dagpost.posterior.sample import group_equal

CLEAR = 2.0
"""Standard errors from which on a difference is called clear."""
OBSERVATION = "(no intervention)"
"""How rows without an intervention are called in tables."""
BOUNDS = {
    "closed": "parameters integrated out; on average not above the gain of the posterior that graphs are drawn from",
    "drawn": "with drawn parameters of each graph; on average not below the gain with parameters integrated out",
    "effect": "a lower bound on average, of the gain about the effect in bins",
}
"""What the estimate is, by its kind."""

Candidate = str | int | Sequence[str | int]


@dataclass(frozen=True, eq=False, repr=False)
class NextExperiment:
    """Experiments ranked by expected information gain, in nats.

    Attributes
    ----------
    table
        A row for each candidate, the best first: `experiment` (names of the nodes that are set), `sets` (to which
        values, in raw units), `gain`, its Monte Carlo standard error `error`, and how far it is `behind` the best, with
        `behind_error`, which is smaller, since all candidates are judged on the same simulated truths.
    batch
        A row for each chosen experiment, in the order of choice: `experiment`, `sets`, `gain` of all up to it together,
        `error`, and the gain that it `added`.
    about
        Cause and effect, where the gain is about an effect; None for the graph.
    entropy
        Uncertainty about the graph, or the bin of the effect, in nats: no gain is larger.
    rows
        Rows of each experiment.
    outcomes
        Simulated outcomes of each experiment.
    bound
        What the estimate is on average, compared with the gain itself.
    """

    table: pd.DataFrame
    batch: pd.DataFrame
    about: tuple[str, str] | None
    entropy: float
    rows: int
    outcomes: int
    bound: str
    choices: list[tuple[str, ...]] = field(default_factory=list)

    @property
    def best(self) -> tuple[str, ...]:
        """Names of the nodes to set in the next experiment."""
        return self.choices[0]

    @property
    def sentence(self) -> str:
        """The result in plain words."""
        what = "the graph" if self.about is None else f"the effect of {printable(self.about[0])} on {self._effect}"
        rows = f"{self.rows} row{'s' * (self.rows > 1)}"
        if self.entropy == 0:
            return f"There is nothing to learn about {what}: the posterior is certain."
        chosen = ", then ".join(printable(name) for name in self.batch["experiment"])
        last = self.batch.iloc[-1]
        text = (
            f"Set {chosen} next ({rows}{' each' * (len(self.batch) > 1)}): {last['gain']:.3g} ± "
            f"{CLEAR * last['error']:.2g} of {self.entropy:.3g} nats about {what} expected."
        )
        others = self.table.iloc[1:]
        close = others[others["behind"] <= CLEAR * others["behind_error"]]
        if len(self.batch) == 1 and len(close):
            more = f" and {len(close) - 3} more" if len(close) > 3 else ""
            names = ", ".join(printable(name) for name in close["experiment"][:3])
            text += f" Not clearly better than {names}{more}."
        return text

    @property
    def _effect(self) -> str:
        assert self.about is not None
        return printable(self.about[1])

    def plain(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON and reports."""
        out: dict[str, Any] = {name: getattr(self, name) for name in ("about", "entropy", "rows", "outcomes", "bound")}
        tables = {"experiments": self.table.to_dict("records"), "batch": self.batch.to_dict("records")}
        return {**out, "choices": [list(names) for names in self.choices], "sentence": self.sentence, **tables}

    def _repr_html_(self) -> str:
        """The ranking as a table, in notebooks."""
        title = "Expected information gain, nats"
        return titled_table(title, self.table.drop(columns=["behind", "behind_error"]), self.sentence)

    def __repr__(self) -> str:
        parts = [self.table.round(4).to_string(index=False)]
        if len(self.batch) > 1:
            parts.append(self.batch.round(4).to_string(index=False))
        return "\n".join([*parts, self.sentence])


def next_experiment(
    post: Posterior,
    candidates: str | Iterable[Candidate] | None = None,
    budget: int = 1,
    *,
    about: tuple[str | int, str | int] | None = None,
    rows: int = 10,
    values: Mapping[Any, float | str] | None = None,
    outcomes: int = 256,
    draws: int = 1000,
    seed: int = 0,
    progress: bool | None = None,
) -> NextExperiment:
    """Rank interventions by how much they are expected to say about the graph, or about one effect.

    Parameters
    ----------
    post
        The posterior. Models in closed form need the data at hand (`post.with_data`).
    candidates
        Nodes to set, by name or position, or tuples of several that are set at once; `()` stands for rows without an
        intervention. By default every node; "pairs" for all pairs of nodes.
    budget
        Number of experiments to choose. Each next one adds most to those before; the same may come again.
    about
        `(cause, effect)` for information about this effect; by default about the graph.
    rows
        Rows that each experiment observes.
    values
        Value in raw units, or level, that a node is set to, by name. By default one observed standard deviation above
        the mean, or the last level.
    outcomes
        Simulated outcomes of each experiment; the error falls with their square root.
    draws
        Draws of graphs with parameters, for effects and for models without closed forms.
    seed
        Fixes every random number.
    progress
        Whether to show a progress bar; by default on a terminal.

    Returns
    -------
    NextExperiment
        A table of the candidates, the best first, and the chosen batch.

    Examples
    --------
    >>> import dagpost as dp
    >>> post = dp.exact(dp.simulate(nodes=3, observations=50, seed=1).train)
    >>> found = dp.next_experiment(post, outcomes=20)
    >>> sorted(found.table["experiment"])
    ['x0', 'x1', 'x2']
    """
    if not isinstance(post, Posterior):
        raise InputError(f"{type(post).__name__} is no posterior: give what dp.fit returns")
    if post.record.provenance.lags:
        raise InputError("experiments on time series (lags=1) cannot be planned yet: fit without lags")
    if post.record.provenance.missing or post.model.latent:
        raise InputError(
            "experiments cannot be planned yet from a posterior with missing cells or latent columns: fit the complete "
            "rows (missing='drop', --missing drop) with another model than \"copula\""
        )
    if post.record.provenance.conditions or isinstance(post.model, Perturbed):
        raise InputError(
            "experiments cannot be planned yet from a posterior with unknown targets: fit without `conditions`"
        )
    rows, outcomes = whole_number("rows", rows, least=1), whole_number("outcomes", outcomes, least=2)
    budget, draws = whole_number("budget", budget, least=1), whole_number("draws", draws, least=2)
    chosen = _candidates(post, candidates)
    experiments = [_clamped(post, nodes, values or {}) for nodes in chosen]
    key_draws, key_truths, key_effect = jax.random.split(key_from_seed(seed), 3)
    closed = _has_closed_form(post)
    pair = None
    if about is None and closed:
        densities: Densities = ClosedForm(post)
        truths = truths_of(post, outcomes, key_truths)
        question = Question(np.arange(len(densities.weights)), densities.weights)
    else:
        densities = drawn = Drawn(post, draws, key_draws)
        truths, member = truths_among(drawn, outcomes, key_truths)
        question = Question(group_equal([drawn.graphs])[1], drawn.weights)
        if about is not None:
            pair = pair_of(post, *_pair(about))
            label = effect_bins(effect_values(post, drawn, *pair, key_effect), drawn.weights)
            question = Question(label, drawn.weights, member)
            if closed:
                drawn.restrict(post, relevant_nodes(post, drawn.graphs, *pair))
    with progress_bar("weighing experiments", budget * len(chosen) * outcomes, progress) as advance:
        steps, order = _greedy(post.model, densities, truths, question, experiments, rows, budget, advance)
    labels = [" + ".join(post.names[k] for k in nodes) or OBSERVATION for nodes in chosen]
    texts = [_sets(post, clamped) for clamped in experiments]
    return NextExperiment(
        _ranking(labels, texts, steps[0]),
        _batch(labels, texts, steps, order),
        None if pair is None else (post.names[pair[0]], post.names[pair[1]]),
        max(question.entropy, 0.0),
        rows,
        outcomes,
        BOUNDS["effect" if about is not None else "closed" if closed else "drawn"],
        [tuple(post.names[k] for k in chosen[c]) for c in order],
    )


def _greedy(
    model: Model, densities: Densities, truths: Truths, question: Question, experiments: list[Clamped], rows: int,
    budget: int, advance: Advance,
) -> tuple[list[Float[np.ndarray, "c s"]], list[int]]:  # fmt: skip
    """Return the gains of every candidate together with those chosen before it, at each step, and the choices."""
    done: list[Result] = []
    steps, order = [], []
    for number in range(budget):
        results = [truths.simulate(model, clamped, rows, number) for clamped in experiments]
        steps.append(np.array([question.gains(densities.of([*done, result], advance)) for result in results]))
        order.append(int(steps[-1].mean(axis=1).argmax()))
        done.append(results[order[-1]])
    return steps, order


def _ranking(labels: list[str], texts: list[str], gains: Float[np.ndarray, "c s"]) -> pd.DataFrame:
    """Return the candidates with gains and errors, the best first."""
    means = gains.mean(axis=1)
    order = np.argsort(-means, kind="stable")
    behind = gains[order[0]] - gains[order]
    columns = {
        "experiment": [labels[c] for c in order],
        "sets": [texts[c] for c in order],
        "gain": means[order],
        "error": _error(gains[order]),
        "behind": behind.mean(axis=1),
        "behind_error": _error(behind),
    }
    return pd.DataFrame(columns)


def _batch(labels: list[str], texts: list[str], steps: list[np.ndarray], order: list[int]) -> pd.DataFrame:
    """Return the chosen experiments with the gain of all up to each."""
    gains = np.array([step[c] for step, c in zip(steps, order)])
    total = gains.mean(axis=1)
    columns = {
        "experiment": [labels[c] for c in order],
        "sets": [texts[c] for c in order],
        "gain": total,
        "error": _error(gains),
        "added": np.diff(total, prepend=0.0),
    }
    return pd.DataFrame(columns)


def _error(values: Float[np.ndarray, "c s"]) -> Float[np.ndarray, " c"]:
    """Return the standard error of the mean of each row."""
    return values.std(axis=1, ddof=1) / np.sqrt(values.shape[1])


def _has_closed_form(post: Posterior) -> bool:
    """Return whether the evidence of further rows has a closed form that is quick to compute."""
    if post.data is None or not post.model.has_compiled_evidence:
        return False
    return post.model.extended(post.model.summarise(post.data), np.zeros((1, post.nodes))) is not None


def _candidates(post: Posterior, candidates: Any) -> list[tuple[int, ...]]:
    """Return the indices of the nodes that each candidate sets."""
    if candidates is None:
        return [(j,) for j in range(post.nodes)]
    if isinstance(candidates, str):
        if candidates == "pairs" and "pairs" not in post.names:
            return list(combinations(range(post.nodes), 2))
        hint = nearest(candidates, ["pairs"]) if candidates not in post.names else f"did you mean [{candidates!r}]?"
        raise InputError(f"candidates={candidates!r}: give a list of names, or 'pairs'; {hint}")
    out = []
    for entry in candidates:
        nodes = tuple(post.index(node) for node in (entry if isinstance(entry, list | tuple) else (entry,)))
        if len(set(nodes)) < len(nodes):
            raise InputError(f"candidates: {entry!r} names '{printable(post.names[nodes[0]])}' twice")
        if sorted(nodes) in [sorted(other) for other in out]:
            raise InputError(f"candidates: {entry!r} is there twice: leave one out")
        out.append(nodes)
    if not out:
        raise InputError("candidates=[]: give at least one node, or None for all")
    return out


def _clamped(post: Posterior, nodes: tuple[int, ...], values: Mapping[Any, float | str]) -> Clamped:
    """Return the values that an experiment sets its nodes to."""
    given = clamped_values(post, values, "values")
    return {j: given[j] if j in given else _default(post, j) for j in nodes}


def _default(post: Posterior, j: int) -> float:
    """Return one standard deviation above the mean of a column, or its last level."""
    return float(len(post.levels[j]) - 1) if post.levels[j] else contrast_of(post, j, None, "raw")[1]


def _sets(post: Posterior, clamped: Clamped) -> str:
    """Return the values of an experiment in raw units, as text."""
    mean, scale = raw_units(post)
    parts = []
    for j, value in clamped.items():
        shown = post.levels[j][int(value)] if post.levels[j] else f"{value * scale[j] + mean[j]:.4g}"
        parts.append(f"{post.names[j]} = {shown}")
    return ", ".join(parts)


def _pair(about: Any) -> tuple[Any, Any]:
    """Return cause and effect, or raise an error that says how to give them."""
    if isinstance(about, str) or not isinstance(about, Sequence) or len(about) != 2:
        raise InputError(f"about={about!r}: give a cause and an effect, such as about=('a', 'b')")
    return about[0], about[1]
