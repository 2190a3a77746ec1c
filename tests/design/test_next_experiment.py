"""Expected information gain against brute force: every graph, every outcome."""

from dataclasses import replace
from itertools import product

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp, xlogy

import dagpost as dp
from dagpost.data import Dataset
from dagpost.design.information import (
    FEWEST_OUTCOMES,
    Question,
    Strata,
    effect_bins,
    effect_values,
    outcomes_by_bin,
)
from dagpost.design.outcomes import ClosedForm, Drawn, truths_among, with_path
from dagpost.errors import InputError

SIGMAS = 4.0
"""Standard errors that an estimate may be off; 3 in 100,000 of right ones are further."""


def information(log_density, log_prior, log_volume):
    """Mutual information of graph and outcome; rows of `log_density` are all outcomes, columns graphs."""
    joint = log_density + log_prior + log_volume
    total = logsumexp(joint, axis=1, keepdims=True)
    return float((np.exp(joint) * (joint - log_prior - total)).sum())


def categorical_table(rows=40, levels=2, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.integers(levels, size=rows)
    b = np.where(rng.random(rows) < 0.8, a, rng.integers(levels, size=rows))
    c = np.where(rng.random(rows) < 0.7, b, rng.integers(levels, size=rows))
    names = tuple("abc")
    return Dataset(np.column_stack([a, b, c]), names=names, levels=(tuple("xyz"[:levels]),) * 3)


@pytest.fixture(scope="module")
def categories():
    return dp.exact(categorical_table(), model=dp.BDeu(2.0))


@pytest.fixture(scope="module")
def numbers():
    return dp.exact(dp.simulate(nodes=3, observations=12, seed=3).train, model="bge")


def all_outcomes(post, targets, rows):
    """Every table of this many rows with some nodes at their last level."""
    free = [j for j in range(post.nodes) if j not in targets]
    for cells in product(range(2), repeat=rows * len(free)):
        values = np.ones((rows, post.nodes))
        values[:, free] = np.reshape(cells, (rows, len(free)))
        yield Dataset(values, names=post.names, levels=post.levels, intervened=mask_of(values, targets))


def mask_of(values, targets):
    mask = np.zeros(values.shape, dtype=bool)
    mask[:, list(targets)] = True
    return mask


def exact_gain(post, targets, rows):
    """The gain as a sum over all outcomes, by ratios of evidences of whole tables."""
    found = [post.model.log_predictive_of(post.graphs, post.data, y) for y in all_outcomes(post, targets, rows)]
    assert np.isclose(logsumexp(np.array(found), axis=0), 0, atol=1e-9).all()  # a density given every graph
    return information(np.array(found), post.log_weights, 0.0)


@pytest.mark.parametrize("rows", [1, 3])
def test_gain_of_categories_is_the_sum_over_all_outcomes(categories, rows):
    candidates = ["a", "b", ("a", "c"), ()]
    found = dp.next_experiment(categories, candidates, rows=rows, outcomes=1024, seed=rows).table
    for name, targets in {"a": (0,), "b": (1,), "a + c": (0, 2), "(no intervention)": ()}.items():
        if rows == 3 and not targets:
            continue  # 512 outcomes
        row = found[found["experiment"] == name].iloc[0]
        assert abs(row["gain"] - exact_gain(categories, targets, rows)) < SIGMAS * row["error"]
        assert 0 < row["error"] < 0.02


@pytest.mark.slow
def test_gain_of_numbers_is_the_integral_over_all_outcomes(numbers):
    """By quadrature over the two observed nodes, on a grid that is wide for the Student-t tails of one row."""
    post, value = numbers, 1.5
    u, weight = np.polynomial.legendre.leggauss(36)
    centre, spread = post.data.values.mean(axis=0), 2 * post.data.values.std(axis=0)
    t = np.tan(u * np.pi / 2 * 0.98)  # fine in the middle, wide outside
    log_step = np.log(weight * np.pi / 2 * 0.98 * (1 + t**2))
    log_density, log_volume = [], []
    for (p, a), (q, b) in product(enumerate(t), repeat=2):
        y = np.array([[centre[0] + spread[0] * a, value, centre[2] + spread[2] * b]])
        new = Dataset(y, names=post.names, intervened=mask_of(y, (1,)))
        log_density.append(post.model.log_predictive_of(post.graphs, post.data, new))
        log_volume.append(log_step[p] + log_step[q] + np.log(spread[0] * spread[2]))
    log_volume = np.array(log_volume)[:, None]
    assert abs(logsumexp(np.array(log_density) + log_volume, axis=0)).max() < 0.01  # the grid holds the mass
    exact = information(np.array(log_density), post.log_weights, log_volume)
    row = dp.next_experiment(post, ["x1"], rows=1, values={"x1": value}, outcomes=1024).table.iloc[0]
    assert abs(row["gain"] - exact) < SIGMAS * row["error"] + 0.01 * exact
    assert row["error"] < 0.1 * exact


def test_a_batch_is_judged_as_a_whole(categories):
    found = dp.next_experiment(categories, budget=2, rows=1, outcomes=1024, seed=1)
    first, second = (categories.index(name) for (name,) in found.choices)
    log_density = []
    for y, z in product(all_outcomes(categories, (first,), 1), all_outcomes(categories, (second,), 1)):
        both = y.followed_by(z)
        log_density.append(categories.model.log_predictive_of(categories.graphs, categories.data, both))
    exact = information(np.array(log_density), categories.log_weights, 0.0)
    last = found.batch.iloc[-1]
    assert abs(last["gain"] - exact) < SIGMAS * last["error"]
    assert found.batch["gain"].iloc[0] == found.table["gain"].iloc[0]
    assert np.isclose(found.batch["added"].sum(), last["gain"])
    assert "then" in found.sentence


@pytest.mark.slow
def test_a_greedy_choice_is_the_best_addition(categories):
    """The chosen second experiment is the one with the largest exact gain beside the first, up to the error."""
    found = dp.next_experiment(categories, budget=2, rows=1, outcomes=1024, seed=1)
    first = categories.index(found.choices[0][0])

    def together(second):
        tables = product(all_outcomes(categories, (first,), 1), all_outcomes(categories, (second,), 1))
        model, graphs, data = categories.model, categories.graphs, categories.data
        density = [model.log_predictive_of(graphs, data, y.followed_by(z)) for y, z in tables]
        return information(np.array(density), categories.log_weights, 0.0)

    gains = [together(j) for j in range(3)]
    chosen = gains[categories.index(found.choices[1][0])]
    assert chosen > max(gains) - SIGMAS * found.batch["error"].iloc[1]


def test_a_certain_graph_leaves_nothing_to_learn(numbers):
    sure = dp.Posterior(
        numbers.graphs[-1:], np.zeros(1), numbers.names, numbers.model, numbers.prior, data=numbers.data
    )
    found = dp.next_experiment(sure, outcomes=20)
    assert (found.table[["gain", "error", "behind"]] == 0).all(axis=None)
    assert found.entropy == 0 and "nothing to learn" in found.sentence


@pytest.mark.slow
def test_symmetric_nodes_have_equal_gain():
    x = dp.simulate(nodes=2, observations=20, seed=5).train.values
    post = dp.exact(Dataset(np.concatenate([x, x[:, ::-1]]), names=("A", "B")), model="bge")
    table = dp.next_experiment(post, outcomes=256).table
    assert table["gain"].min() > 5 * table["error"].max()
    assert table["behind"].iloc[1] < SIGMAS * table["behind_error"].iloc[1]


@pytest.mark.slow
def test_names_and_order_of_candidates(numbers):
    table = dp.next_experiment(numbers, outcomes=50).table
    other = dp.next_experiment(numbers, ["x2", 0, ["x1"]], outcomes=50).table
    assert table.equals(other)
    assert sorted(table["experiment"]) == ["x0", "x1", "x2"] and (table["gain"].diff().dropna() <= 0).all()
    assert table["sets"].str.startswith(tuple(f"{name} = " for name in numbers.names)).all()
    pairs = dp.next_experiment(numbers, "pairs", outcomes=10)
    assert sorted(pairs.table["experiment"]) == ["x0 + x1", "x0 + x2", "x1 + x2"] and len(pairs.best) == 2


def test_defaults_are_one_deviation_above_the_mean_in_raw_units(categories):
    data = Dataset(100 + 7 * dp.simulate(nodes=2, observations=30, seed=0).train.values, names=("a", "b"))
    post = dp.exact(data.standardised(), model="bge")
    expected = data.values[:, 0].mean() + data.values[:, 0].std()
    table = dp.next_experiment(post, ["a"], outcomes=5).table
    assert table["sets"].iloc[0] == f"a = {expected:.4g}"
    assert dp.next_experiment(post, ["a"], outcomes=5, values={"a": 90.0}).table["sets"].iloc[0] == "a = 90"
    assert dp.next_experiment(categories, ["a"], outcomes=5).table["sets"].iloc[0] == "a = y"
    assert dp.next_experiment(categories, ["a"], outcomes=5, values={"a": "x"}).table["sets"].iloc[0] == "a = x"


def drawn_information(drawn, question, post, targets):
    """Mutual information of label and outcome where the draws are the whole posterior, summed over all outcomes."""
    found = [drawn.model.log_likelihoods(drawn.graphs, drawn.theta, y) for y in all_outcomes(post, targets, 1)]
    joint = np.exp(np.array(found)) * drawn.weights  # outcomes x draws
    labels = np.stack([joint[:, question.label == k].sum(axis=1) for k in range(len(question.prior))], axis=1)
    apart = question.prior * labels.sum(axis=1, keepdims=True)
    return float((xlogy(labels, labels) - xlogy(labels, apart)).sum())


def test_drawn_parameters_give_the_information_of_the_draws():
    """BDs has no predictive ratio of evidences: its tables are drawn, and the gain is that of the draws as they are."""
    post = dp.exact(categorical_table(), model=dp.BDeu(2.0, "bds"))
    found = dp.next_experiment(post, ["b"], rows=1, draws=60, outcomes=256, seed=2)
    assert "not below" in found.bound
    key_draws = jax.random.split(jax.random.key(2), 3)[0]
    drawn = Drawn(post, 60, key_draws)
    codes = np.unique(drawn.graphs.reshape(60, -1), axis=0, return_inverse=True)[1].reshape(-1)
    exact = drawn_information(drawn, Question(codes, drawn.weights), post, (1,))
    row = found.table.iloc[0]
    assert abs(row["gain"] - exact) < SIGMAS * row["error"] and row["error"] < 0.04


@pytest.mark.slow
def test_more_draws_of_parameters_come_down_to_the_closed_form(categories, monkeypatch):
    """Drawn parameters are too optimistic on average, less so with more of them."""
    closed = exact_gain(categories, (1,), 1)
    monkeypatch.setattr(dp.BDeu, "extended", lambda *_: None)
    few, many = (
        dp.next_experiment(categories, ["b"], rows=1, draws=draws, outcomes=512).table.iloc[0] for draws in (50, 2000)
    )
    assert few["gain"] > many["gain"] > closed - SIGMAS * many["error"]
    assert many["gain"] < closed + 0.02


def effect_question(post, seed, draws, outcomes):
    """The draws and the question about the effect of a on b, as `next_experiment` has them."""
    key_draws, key_truths, key_effect = jax.random.split(jax.random.key(seed), 3)
    drawn = Drawn(post, draws, key_draws, (0, 1))
    label = effect_bins(effect_values(post, drawn, 0, 1, key_effect), drawn.weights)
    counts = outcomes_by_bin(np.bincount(label, weights=drawn.weights), outcomes)
    return drawn, Question(label, drawn.weights, truths_among(drawn, counts, label, key_truths)[1])


def test_information_about_an_effect_is_that_of_its_draws(categories):
    """Between the sum over all outcomes, and that less what the draws of the sum know of themselves."""
    found = dp.next_experiment(categories, about=("a", "b"), rows=1, draws=400, outcomes=512, seed=4)
    drawn, question = effect_question(categories, 4, 400, 512)
    assert np.isclose(question.entropy, found.entropy) and len(question.prior) > 4
    for name, targets in {"a": (0,), "b": (1,), "c": (2,)}.items():
        row = found.table[found.table["experiment"] == name].iloc[0]
        exact = drawn_information(drawn, question, categories, targets)
        assert exact - SIGMAS * row["error"] - 0.005 < row["gain"] < exact + SIGMAS * row["error"]
        assert row["error"] < 0.02
    assert found.about == ("a", "b") and found.best in (("a",), ("b",)) and "effect of a on b" in found.sentence


@pytest.fixture(scope="module")
def rare():
    """A path from a to b has a probability of a few per cent."""
    x = np.random.default_rng(1).normal(size=(150, 3))
    return dp.exact(Dataset(x[:, [0, 2, 1]], names=("a", "b", "c")), model="bge", prior="uniform")


@pytest.mark.slow
@pytest.mark.parametrize("rows", [5, pytest.param(40, marks=pytest.mark.long)])
def test_gains_about_a_rare_path_average_to_the_long_run(rare, rows):
    def gains(outcomes, seeds):
        options = {"about": ("a", "b"), "values": {"a": 3.0}, "rows": rows, "draws": 300, "outcomes": outcomes}
        found = [dp.next_experiment(rare, ["a"], seed=seed, progress=False, **options) for seed in seeds]
        return np.array([tuple(one.table[["gain", "error"]].iloc[0]) for one in found]).T

    assert 0.01 < 1 - rare.effect("a", "b").zero < 0.1
    gain, error = gains(64, range(20))
    long_run, its_error = gains(1000, [100, 101])
    truth, spread = long_run.mean(), np.sqrt((its_error**2).mean() / 2)
    assert abs(gain.mean() - truth) < SIGMAS * np.hypot(spread, gain.std(ddof=1) / np.sqrt(20))
    assert 0.5 < gain.std(ddof=1) / np.sqrt((error**2).mean()) < 2
    # no estimate is far from the truth and claims otherwise
    assert (abs(gain - truth) / np.hypot(error, spread)).max() < 6


def test_rare_bins_have_draws_and_outcomes(rare):
    drawn, question = effect_question(rare, 0, 400, 64)
    path = question.label[drawn.weights < drawn.weights.max()]
    assert len(path) >= 100 and np.isclose(drawn.weights.sum(), 1)
    reach = with_path(rare, 0, 1)
    assert np.isclose(question.prior.max(), rare.weights[~reach].sum())
    assert np.bincount(question.label[question.leave_out]).min() >= FEWEST_OUTCOMES
    found = dp.next_experiment(rare, ["a"], about=("a", "b"), outcomes=2, rows=2, draws=300)
    assert found.outcomes >= FEWEST_OUTCOMES * 4 and f"only {FEWEST_OUTCOMES} simulated outcomes" in found.sentence


def test_strata_weigh_their_means():
    rng = np.random.default_rng(0)
    label = np.repeat([0, 1], [30, 10])
    values = rng.normal(size=(1, 1, 40)) + 5 * label
    one = Strata(label, np.array([0.9, 0.1]), np.arange(40))
    first, second = values[0, 0, :30], values[0, 0, 30:]
    assert np.isclose(one.mean(values)[0], 0.9 * first.mean() + 0.1 * second.mean())
    expected = 0.81 * first.var(ddof=1) / 30 + 0.01 * second.var(ddof=1) / 10
    assert np.isclose(one.error(values)[0], np.sqrt(expected))
    # an outcome that is there twice says nothing more
    twice = Strata(np.repeat(label, 2), one.prior, np.repeat(np.arange(40), 2))
    assert np.isclose(twice.error(values.repeat(2, axis=2))[0], np.sqrt(expected))


def ranked(gain, error, entropy, notes=()):
    table = pd.DataFrame([{"experiment": "a", "sets": "a = 1", "gain": gain, "error": error}])
    ranking = table.assign(behind=0.0, behind_error=0.0)
    return dp.NextExperiment(ranking, table, ("a", "b"), entropy, 10, 64, "", [("a",)], list(notes)).sentence


def test_no_gain_above_the_entropy_is_told():
    assert "0.05 ± 0.004 of 0.0779 nats" in ranked(0.05, 0.002, 0.0779)
    assert "between 0.0579 and all of 0.0779 nats" in ranked(0.0779, 0.01, 0.0779)
    told = ranked(0.167, 0.11, 0.0779)
    assert "between 0 and all (the estimate, 0.167, is above that by chance) of 0.0779 nats" in told and "±" not in told


@pytest.mark.slow
def test_few_draws_are_told(numbers, rare):
    few = dp.Posterior(numbers.graphs[:5], np.zeros(5), numbers.names, numbers.model, numbers.prior, data=numbers.data)
    assert "few draws, 5 in effect" in dp.next_experiment(few, outcomes=10).sentence
    assert "few draws" not in dp.next_experiment(numbers, outcomes=10).sentence  # all graphs are there
    sample = rare.sample(200, 0)
    drawn = dp.Posterior(sample, np.zeros(200), rare.names, rare.model, rare.prior, data=rare.data)
    path = int(with_path(drawn, 0, 1).sum())
    assert 0 < path < 20
    told = dp.next_experiment(drawn, ["a"], about=("a", "b"), rows=2, draws=100, outcomes=80).sentence
    assert f"{path} of 200 have a path from a to b" in told
    many = dp.Posterior(
        numbers.sample(200, 0), np.zeros(200), numbers.names, numbers.model, numbers.prior, data=numbers.data
    )
    assert "nats that the draws hold" in dp.next_experiment(many, budget=3, rows=50_000, outcomes=16).sentence


@pytest.mark.slow
def test_an_experiment_on_the_cause_tells_of_its_effect():
    """With the graph known, rows under do(cause) sharpen the effect, and rows of a node apart from both do not."""
    sim = dp.simulate(nodes=3, observations=20, seed=0)
    graph = np.zeros((1, 3, 3), dtype=bool)
    graph[0, 0, 1] = True
    post = dp.Posterior(graph, np.zeros(1), sim.train.names, dp.BGe(), dp.Uniform(), data=sim.train)
    values = {"x0": 3.0, "x1": 0.0, "x2": 0.0}
    found = dp.next_experiment(post, about=("x0", "x1"), rows=20, values=values, draws=1000).table
    gain = found.set_index("experiment")["gain"]
    assert found["experiment"].iloc[0] == "x0" and gain["x0"] > gain["x1"] + 0.2
    none = dp.next_experiment(post, about=("x1", "x0"), outcomes=20, draws=100)
    assert none.entropy == 0 and np.allclose(none.table["gain"], 0)


@pytest.mark.slow
def test_effects_of_draws_are_those_of_the_posterior(categories, numbers):
    for post in (categories, numbers):
        drawn = Drawn(post, 4000, jax.random.key(0))
        values = effect_values(post, drawn, 0, 1, jax.random.key(1))
        expected = post.effect(0, 1)
        assert abs(values.mean() - expected.mean) < SIGMAS * expected.sd / np.sqrt(4000)
        assert abs((values == 0).mean() - expected.zero) < 0.01


def test_bins_of_an_effect_have_equal_probability():
    values = np.concatenate([np.zeros(40), np.random.default_rng(0).normal(size=160)])
    label = effect_bins(values, np.full(200, 1 / 200))
    assert np.bincount(label).tolist() == [40] + [20] * 8
    assert len(set(label[values == 0])) == 1
    for one in range(1, 8):
        assert values[label == one].max() < values[label == one + 1].min()
    assert effect_bins(np.zeros(5), np.full(5, 0.2)).tolist() == [0] * 5


def test_repeated_graphs_are_one(numbers):
    """Splitting the weight of a graph over copies changes nothing."""
    twice = dp.Posterior(
        np.concatenate([numbers.graphs, numbers.graphs]), np.concatenate([numbers.log_weights] * 2), numbers.names,
        numbers.model, numbers.prior, data=numbers.data,
    )  # fmt: skip
    once, double = ClosedForm(numbers), ClosedForm(twice)
    assert len(once.weights) == len(double.weights) and np.allclose(np.sort(once.weights), np.sort(double.weights))


def test_same_seed_same_ranking(numbers):
    one, two = (dp.next_experiment(numbers, outcomes=20, seed=7).table for _ in range(2))
    assert one.equals(two)
    assert not one.equals(dp.next_experiment(numbers, outcomes=20, seed=8).table)


@pytest.mark.parametrize("model", ["linear", "additive", "gp", "mlp"])
@pytest.mark.slow
def test_every_model_ranks_experiments(model):
    data = dp.simulate(nodes=3, observations=30, seed=1).train.standardised()
    options = {} if model != "mlp" else {"method": "dibs", "particles": 8, "steps": 60}
    post = dp.fit(data, model, seed=0, **options)
    for about in (None, ("x0", "x1")):
        found = dp.next_experiment(post, about=about, outcomes=20, draws=100, rows=3)
        assert np.isfinite(found.table[["gain", "error"]].to_numpy()).all() and len(found.table) == 3
        assert (found.table["gain"] <= found.entropy + 1e-9).all() or about is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"candidates": ["x9"]}, "unknown node 'x9'"),
        ({"candidates": "x0"}, r"did you mean \['x0'\]"),
        ({"candidates": []}, "at least one node"),
        ({"candidates": [("x0", "x0")]}, "'x0' twice"),
        ({"candidates": ["x0", "x0"]}, "there twice"),
        ({"budget": 0}, "budget=0"),
        ({"rows": 0}, "rows=0"),
        ({"outcomes": 1}, "outcomes=1"),
        ({"about": "x0"}, "about='x0'"),
        ({"about": ("x0", "x0")}, "give two nodes"),
        ({"about": ("x0", "y")}, "unknown node 'y'"),
        ({"values": {"x0": "high"}}, "finite number"),
        ({"values": {"x9": 1.0}}, "unknown node 'x9'"),
        ({"candidates": ["x1", ("x1", "x2")], "values": {"x0": 1.0}}, "no candidate sets 'x0'"),
    ],
)
def test_bad_input_is_named(numbers, options, message):
    with pytest.raises(InputError, match=message):
        dp.next_experiment(numbers, **options)


def test_posteriors_that_cannot_be_asked(numbers, categories):
    with pytest.raises(InputError, match="with_data"):
        dp.next_experiment(replace(numbers, data=None))
    with pytest.raises(InputError, match="no level of 'a'"):
        dp.next_experiment(categories, values={"a": "q"})
    with pytest.raises(InputError, match="no posterior"):
        dp.next_experiment([1.0])  # type: ignore[arg-type]
    series = dp.simulate(nodes=2, observations=40, seed=0).train
    with pytest.raises(InputError, match="lags"):
        dp.next_experiment(dp.exact(series, model="bge", lags=1))


def test_posteriors_with_missing_cells_are_refused():
    frame = dp.simulate(nodes=3, observations=40, seed=1).train.frame()
    holes = frame.copy()
    holes.iloc[0, 0] = np.nan
    with pytest.raises(InputError, match="missing cells"):
        dp.next_experiment(dp.fit(holes, "bge", time_limit=1, progress=False))
