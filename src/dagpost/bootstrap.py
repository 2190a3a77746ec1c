"""The DAG bootstrap (Friedman, Goldszmidt and Wyner, 1999): one graph learned from each resampled data set.

PC (of causal-learn) or GES gives an essential graph for each resample of the rows; a random DAG stands for each class.
Unique graphs are weighted by their unnormalised posterior, as DiBS+ weighs its particles. For the linear model the
closed-form maximum-likelihood parameters come along and `p(G, Theta, D)` weighs (the starred variants of the paper).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import jax
import numpy as np
from jaxtyping import Float

from dagpost.checkpoints import State
from dagpost.checkpoints.section import Sections, section_of
from dagpost.clock import Clock
from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.graphs import consistent_extension
from dagpost.greedy_search import greedy_search
from dagpost.models import LinearGaussian, Model
from dagpost.models.linear_gaussian import LinearTheta
from dagpost.posterior import Posterior, log_joint_of
from dagpost.priors import GraphPrior
from dagpost.progress import progress_bar
from dagpost.randomness import generator, key_from_seed
from dagpost.typing import Graph, Graphs, Theta

SIGNIFICANCE = 0.01  # of PC's tests, as published


def essential_by_pc(values: Float[np.ndarray, "n d"]) -> Graph:
    """PC with Fisher's z; undirected edges in both directions."""
    try:
        from causallearn.search.ConstraintBased.PC import pc
    except ImportError as error:
        raise InputError("bootstrap-pc needs causal-learn: pip install causal-learn") from error
    found = pc(values, alpha=SIGNIFICANCE, indep_test="fisherz", show_progress=False)
    return _adjacency(found.G.graph)


LEARNERS: dict[str, Callable[[np.ndarray], Graph]] = {"pc": essential_by_pc, "ges": greedy_search}


def _adjacency(marks: np.ndarray) -> Graph:
    """From causal-learn's end marks: [i, j] is the mark at i of the edge between i and j, -1 a tail and 1 an arrow.

    i -> j is there if the end at i is a tail: a directed edge once, an undirected one in both directions. An edge with
    two arrows (PC's conflicting evidence) has no direction either, and counts as undirected.
    """
    tails = marks == -1
    both_arrows = (marks == 1) & (marks.T == 1)
    return tails | both_arrows


def bootstrap(
    data: Dataset, model: Model, prior: GraphPrior, *, learner: Literal["pc", "ges"], particles: int, seed: int,
    progress: bool | None = None, checkpoint: Sections | None = None, clock: Clock | None = None,
) -> Posterior:  # fmt: skip
    """`particles` resamples of the rows, one graph from each; essential graphs without a DAG in them are dropped. When
    the clock expires, fewer resamples, at least one."""
    if not model.has_evidence:
        raise InputError(f"the DAG bootstrap weighs graphs by their evidence, which {model.name!r} does not have")
    if prior.constraints is not None:
        raise InputError(
            f"bootstrap-{learner} cannot be held to prior knowledge: leave it out, or use a method that honours it, "
            "'auto', 'exact', 'dibs', 'dibs-paper', 'mc3', 'm-mc3' or 'g-mc3'"
        )
    if data.intervened.any():
        raise InputError("PC and GES take observational data: leave out the rows with interventions, or use 'auto'")
    rng = generator(key_from_seed(seed))
    learn = LEARNERS[learner]
    classes: dict[bytes, Graph] = {}
    done = dropped = 0
    section = section_of(checkpoint, "resamples")
    if section.found is not None:
        done, dropped = section.found.facts["done"], section.found.facts["dropped"]
        rng.bit_generator.state = section.found.facts["rng"]
        arrays = section.found.arrays
        classes = {essential.tobytes(): dag for essential, dag in zip(arrays["essential"], arrays["dags"])}
    with progress_bar(f"bootstrap-{learner}", particles, progress) as advance:
        advance(done)
        for resample in range(done, particles):
            if classes and clock is not None and clock.expired:
                break
            done = resample + 1
            rows = rng.integers(data.observations, size=data.observations)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                essential = learn(data.values[rows])
            if essential.tobytes() not in classes:
                try:
                    classes[essential.tobytes()] = consistent_extension(essential, rng)
                except InputError:
                    dropped += 1
            advance(1)
            facts = {"done": resample + 1, "dropped": dropped, "rng": rng.bit_generator.state}
            section.reached(partial(_state, dict(classes), data.nodes, facts))
    if not classes:
        raise InputError(f"none of {particles} graphs learned by {learner.upper()} contains a DAG: take more rows")
    info = {"method": f"bootstrap-{learner}", "resamples": done, "without_dag": dropped}
    return weighed(np.stack(list(classes.values())), data, model, prior, info)


def weighed(graphs: Graphs, data: Dataset, model: Model, prior: GraphPrior, info: Mapping[str, Any]) -> Posterior:
    """Learned graphs, weighted by their posterior under a model; with their best parameters if it has any."""
    theta: Theta = ()
    if isinstance(model, LinearGaussian):
        fits = [most_likely(model, graph, data.values) for graph in graphs]
        theta = jax.tree.map(lambda *leaves: np.stack(leaves), *fits)
    joint = log_joint_of(graphs, theta, model, prior, model.summarise(data))
    return Posterior(
        graphs=graphs, log_weights=joint, names=data.names, model=model, prior=prior, theta=theta, log_joint=joint,
        info=info,
    )  # fmt: skip


def _state(classes: dict[bytes, Graph], d: int, facts: dict[str, Any]) -> State:
    essential = np.frombuffer(b"".join(classes), np.bool_).reshape(-1, d, d)
    return State({"essential": essential, "dags": np.array([*classes.values()], np.bool_).reshape(-1, d, d)}, facts)


def most_likely(model: LinearGaussian, graph: Graph, values: Float[np.ndarray, "n d"]) -> Theta:
    """Maximum-likelihood weights (least squares on the parents), and noise where it is unknown."""
    d = graph.shape[0]
    weights, variance = np.zeros((d, d)), np.zeros(d)
    for j in range(d):
        parents = np.flatnonzero(graph[:, j])
        weights[parents, j] = np.linalg.lstsq(values[:, parents], values[:, j])[0]
        variance[j] = np.mean((values[:, j] - values @ weights[:, j]) ** 2)
    return LinearTheta(weights, np.log(variance)) if model.noise.learned else weights
