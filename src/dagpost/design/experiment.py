"""`next_experiment`: candidates for the next experiment, ranked by the information that they are expected to give."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from dagpost._util.numerics import key_from_seed
from dagpost._util.progress import Advance, progress_bar
from dagpost.design.information import (
    Question,
    Strata,
    effect_bins,
    effect_values,
    outcomes_by_bin,
    relevant_nodes,
)
from dagpost.design.outcomes import (
    Clamped,
    ClosedForm,
    Densities,
    Drawn,
    Result,
    Truths,
    truths_among,
    truths_of,
)
from dagpost.design.ranking import NextExperiment, batch_of, notes_of, ranking_of
from dagpost.errors import InputError, nearest, printable, whole_number
from dagpost.models import Model
from dagpost.posterior import Posterior
from dagpost.posterior.effects import contrast_of, pair_of
from dagpost.posterior.parameters import clamped_values, raw_units
from dagpost.posterior.sample import group_equal

OBSERVATION = "(no intervention)"
"""How rows without an intervention are called in tables."""
BOUNDS = {
    "closed": "parameters integrated out; on average not above the gain of the posterior that graphs are drawn from",
    "drawn": "with drawn parameters of each graph; on average not below the gain with parameters integrated out",
    "effect": "a lower bound on average, of the gain about the effect in bins",
}
"""What the estimate is, by its kind."""

Candidate = str | int | Sequence[str | int]


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
        Simulated outcomes of each experiment; the error falls with their square root. About an effect, at least four
        in each bin of it.
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
    rows, outcomes = whole_number("rows", rows, least=1), whole_number("outcomes", outcomes, least=2)
    budget, draws = whole_number("budget", budget, least=1), whole_number("draws", draws, least=2)
    chosen = _candidates(post, candidates)
    experiments = [_clamped(post, nodes, values or {}) for nodes in chosen]
    for j in clamped_values(post, values or {}, "values"):
        if not any(j in nodes for nodes in chosen):
            name = printable(post.names[j])
            raise InputError(f"values: no candidate sets {name!r}: add it to the candidates, or leave its value out")
    key_draws, key_truths, key_effect = jax.random.split(key_from_seed(seed), 3)
    closed = _has_closed_form(post)
    pair = None
    if about is not None:
        pair = pair_of(post, *_pair(about))
    if pair is None and closed:
        densities: Densities = ClosedForm(post)
        truths = truths_of(post, outcomes, key_truths)
        question = Question(np.arange(len(densities.weights)), densities.weights)
    else:
        densities = drawn = Drawn(post, draws, key_draws, pair)
        if pair is None:
            together = np.zeros(len(drawn.weights), dtype=np.int64)
            truths, _ = truths_among(drawn, np.array([outcomes]), together, key_truths)
            question = Question(group_equal([drawn.graphs])[1], drawn.weights)
        else:
            label = effect_bins(effect_values(post, drawn, *pair, key_effect), drawn.weights)
            question = Question(label, drawn.weights)
            truths, member = truths_among(drawn, outcomes_by_bin(question.prior, outcomes), label, key_truths)
            question = question._replace(leave_out=member)
            if closed:
                drawn.restrict(post, relevant_nodes(post, drawn.graphs, *pair))
    outcomes = len(truths.graphs)
    strata = question.strata(outcomes)
    with progress_bar("weighing experiments", budget * len(chosen) * outcomes, progress) as advance:
        steps, order = _greedy(post.model, densities, truths, question, experiments, rows, budget, strata, advance)
    labels = [" + ".join(post.names[k] for k in nodes) or OBSERVATION for nodes in chosen]
    texts = [_sets(post, clamped) for clamped in experiments]
    return NextExperiment(
        ranking_of(labels, texts, steps[0], strata),
        batch_of(labels, texts, steps, order, strata),
        None if pair is None else (post.names[pair[0]], post.names[pair[1]]),
        max(question.entropy, 0.0),
        rows,
        outcomes,
        BOUNDS["effect" if about is not None else "closed" if closed else "drawn"],
        [tuple(post.names[k] for k in chosen[c]) for c in order],
        notes_of(post, pair, question.entropy, float(strata.mean(steps[-1]).max()), strata),
    )


def _greedy(
    model: Model, densities: Densities, truths: Truths, question: Question, experiments: list[Clamped], rows: int,
    budget: int, strata: Strata, advance: Advance,
) -> tuple[list[Float[np.ndarray, "c r s"]], list[int]]:  # fmt: skip
    """Return the gains of every candidate together with those chosen before it, at each step, and the choices."""
    done: list[Result] = []
    steps, order = [], []
    for number in range(budget):
        results = [truths.simulate(model, clamped, rows, number) for clamped in experiments]
        steps.append(np.array([question.replicates(densities.of([*done, result], advance)) for result in results]))
        order.append(int(strata.mean(steps[-1]).argmax()))
        done.append(results[order[-1]])
    return steps, order


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
