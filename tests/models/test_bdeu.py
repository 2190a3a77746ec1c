"""Evidence of categorical families against predictive products, enumeration and pgmpy; tables and effects."""

from collections import defaultdict
from itertools import product

import jax
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import dagpost as dp
from dagpost.data import Dataset
from dagpost.errors import InputError
from dagpost.graphs import all_dags
from dagpost.models.counts import count_evidences
from dagpost.posterior import Posterior
from tests.models import pgmpy_scores
from tests.networks import asia, discrete_sachs

RNG = np.random.default_rng(0)
LEVELS = (3, 2, 4, 2, 3)
A = RNG.integers(0, 3, 200)
B, C, D, E = RNG.random(200) < 0.2 + 0.3 * A, RNG.integers(0, 4, 200), RNG.integers(0, 2, 200), RNG.integers(0, 2, 200)
VALUES = np.column_stack([A, B, C, D, (A + E) % 3]).astype(float)
NAMES = tuple(tuple(str(v) for v in range(r)) for r in LEVELS)
DATA = Dataset(VALUES, levels=NAMES)
MODELS = {"bdeu": dp.BDeu(3.0), "k2": dp.BDeu(variant="k2"), "bds": dp.BDeu(2.5, "bds")}


def prior_weight(model, parents, rows):
    """Weight of a cell, written from the definitions."""
    q = np.prod([LEVELS[p] for p in parents], dtype=float)
    seen = len({tuple(row[list(parents)]) for row in rows})
    return lambda r: {
        "bdeu": model.equivalent_sample_size / (q * r),
        "k2": 1.0,
        "bds": model.equivalent_sample_size / (max(seen, 1) * r),
    }[model.variant]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("j, parents", [(0, ()), (1, (0,)), (4, (0, 1)), (2, (0, 1, 3, 4)), (3, (2,))])
def test_evidence_is_the_product_of_predictive_probabilities(name, j, parents):
    model = MODELS[name]
    weight, counts, expected = prior_weight(model, parents, VALUES)(LEVELS[j]), defaultdict(lambda: np.zeros(4)), 0.0
    for row in VALUES:
        seen, value = counts[tuple(row[list(parents)])], int(row[j])
        expected += np.log((weight + seen[value]) / (LEVELS[j] * weight + seen.sum()))
        seen[value] += 1
    found = model.log_evidence(j, parents, model.summarise(DATA))
    assert found == pytest.approx(expected, rel=1e-12)


def test_equivalent_graphs_have_the_same_evidence_under_bdeu_alone():
    graphs = np.zeros((3, 5, 5), dtype=bool)
    graphs[0, 0, 1] = graphs[0, 1, 4] = True  # 0 -> 1 -> 4
    graphs[1, 1, 0] = graphs[1, 4, 1] = True  # 0 <- 1 <- 4
    graphs[2, 0, 1] = graphs[2, 4, 1] = True  # 0 -> 1 <- 4
    spreads = {}
    for name, model in MODELS.items():
        one, two, collider = model.log_evidence_of(graphs, model.summarise(DATA))
        spreads[name] = abs(one - two)
        assert abs(one - collider) > 1e-3
    assert spreads["bdeu"] < 1e-9 and spreads["k2"] > 1e-3


def test_many_parents_do_not_overflow():
    """Sixty parents have more combinations than any integer: rows alone in theirs have probability 1 / r each."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 3, size=(40, 61)).astype(float)
    model, levels = dp.BDeu(), (("a", "b", "c"),) * 61
    stats = model.summarise(Dataset(values, levels=levels))
    assert model.log_evidence(0, np.arange(1, 61), stats) == pytest.approx(-40 * np.log(3), rel=1e-9)


def test_interventions_and_repeated_rows():
    mask = np.zeros(VALUES.shape, dtype=bool)
    mask[:60, 1] = True
    model, parents = MODELS["bdeu"], np.array([[True, False, True, False, False]])
    partly = model.summarise(Dataset(VALUES, levels=NAMES, intervened=mask))
    rest = model.summarise(Dataset(VALUES[60:], levels=NAMES))
    one, other = (count_evidences(s.shared, np.array([1]), parents)[0] for s in (partly, rest))
    assert one == pytest.approx(other, rel=1e-12)
    whole = model.log_evidence(1, [0, 2], model.summarise(DATA))
    assert abs(one - whole) > 1


@pytest.mark.slow
def test_exact_posterior_is_the_sum_over_all_dags():
    data, model = DATA.columns(["x0", "x1", "x3", "x4"]), MODELS["bdeu"]
    graphs = all_dags(4)
    scores = model.log_evidence_of(graphs, model.summarise(data))
    weights = np.exp(scores - logsumexp(scores))
    post = dp.exact(data, model, "uniform")
    np.testing.assert_allclose(post.edge_marginals, np.einsum("m,mij->ij", weights, graphs), atol=1e-10)
    layers = dp.exact(data, model, "uniform", algorithm="layers")
    np.testing.assert_allclose(layers.edge_marginals, post.edge_marginals, atol=1e-10)


def test_relabelling_levels_and_reordering_columns_change_nothing():
    names = ["x4", "x0", "x1"]
    other = VALUES.copy()
    other[:, 0] = (other[:, 0] + 1) % 3
    one = dp.exact(DATA.columns(names), "bdeu").edge_probabilities
    two = dp.exact(Dataset(other, levels=NAMES).columns(names[::-1]), "bdeu").edge_probabilities
    np.testing.assert_allclose(one, two.loc[names, names], atol=1e-12)


@pytest.mark.parametrize("table", pgmpy_scores.FAMILIES)
def test_pgmpy_has_the_same_scores(table):
    theirs = pd.read_csv(pgmpy_scores.FILE, comment="#").query("table == @table")
    data, compared = Dataset(pgmpy_scores.tables()[table]), set()
    for (variant, size), rows in theirs.groupby(["variant", "equivalent_sample_size"], dropna=False):
        model = dp.BDeu(variant="k2") if variant == "k2" else dp.BDeu(size, variant)
        stats = model.summarise(data)
        for family, score in zip(rows.family, rows.score):
            j, *parents = (data.names.index(name) for name in family.split())
            assert model.log_evidence(j, parents, stats) == pytest.approx(score, rel=0, abs=1e-8)
            compared.add((variant, family))
    assert {family for variant, family in compared if variant == "bdeu"} == {*pgmpy_scores.FAMILIES[table]}
    assert {"k2", "bds"} < {variant for variant, _ in compared}


@pytest.mark.oracle
def test_the_file_is_what_pgmpy_says():
    pytest.importorskip("pgmpy.structure_score")
    expected = pd.read_csv(pgmpy_scores.FILE, comment="#")
    pd.testing.assert_frame_equal(pgmpy_scores.scores(), expected, rtol=1e-12)


# ---- tables and effects


def test_tables_are_draws_of_their_dirichlet_posterior():
    model, stats = MODELS["bdeu"], MODELS["bdeu"].summarise(DATA)
    cells = model.cells(1, np.array([0]), stats)
    draws = model.draw_tables(np.random.default_rng(0), 1, np.array([0]), stats, 20_000)
    total = cells.sum(axis=1, keepdims=True)
    mean, variance = cells / total, cells / total * (1 - cells / total) / (total + 1)
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=6 * np.sqrt(variance.max() / 20_000))
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.06)
    # without data: cells of weight 1/6, whose gamma draws a float can hardly hold
    empty = model.summarise(DATA.rows(slice(0, 0)))
    prior = dp.BDeu(1e-3).draw_tables(np.random.default_rng(0), 0, np.array([], int), empty, 1000)
    assert np.isfinite(prior).all() and np.allclose(prior.sum(axis=2), 1)


def test_a_drawn_network_has_the_likelihood_of_its_rows():
    graph = np.zeros((5, 5), dtype=bool)
    graph[0, 1] = graph[1, 4] = graph[0, 4] = graph[3, 4] = True
    model, stats = MODELS["bdeu"], MODELS["bdeu"].summarise(DATA)
    theta = model.draw_theta(jax.random.key(3), graph, stats)
    expected = 0.0
    for row in VALUES.astype(int):
        for j, (parents, place) in enumerate(
            [((), 0), ((0,), row[0]), ((), 0), ((), 0), ((0, 1, 3), 4 * row[0] + 2 * row[1] + row[3])]
        ):
            assert [p for p in range(5) if graph[p, j]] == list(parents)
            expected += np.log(theta.table[j, place, row[j]])
    assert model.log_likelihood(graph, theta, DATA) == pytest.approx(expected, rel=1e-9)


def fixed_posterior(network, frame):
    data = Dataset(frame)
    return Posterior(network.graph[None], np.zeros(1), data.names, dp.BDeu(), dp.Uniform(), data=data)


def enumerated(post, do, node):
    """Distribution of a node under do(…), by a sum over all combinations of levels with the mean tables."""
    model, stats, graph = post.model, post.model.summarise(post.data), post.graphs[0]
    tables = [model.cells(j, np.flatnonzero(graph[:, j]), stats) for j in range(post.nodes)]
    tables = [cells / cells.sum(axis=1, keepdims=True) for cells in tables]
    out = np.zeros(len(post.levels[node]))
    for x in product(*(range(len(levels)) for levels in post.levels)):
        if any(x[k] != v for k, v in do.items()):
            continue
        p = 1.0
        for j in set(range(post.nodes)) - set(do):
            place = 0
            for i in np.flatnonzero(graph[:, j]):
                place = place * len(post.levels[i]) + x[i]
            p *= tables[j][place, x[j]]
        out[x[node]] += p
    return out


def test_effects_are_differences_of_probabilities():
    network = asia()
    post = fixed_posterior(network, network.sample(2000, seed=1))
    smoke, dysp = 2, 7
    expected = enumerated(post, {smoke: 1}, dysp)[1] - enumerated(post, {smoke: 0}, dysp)[1]
    found = post.effect("smoke", "dysp", draws=2000)
    assert found.meaning == "P(dysp = yes | do(smoke = yes)) - P(dysp = yes | do(smoke = no))"
    assert found.mean == pytest.approx(expected, abs=1e-12) and found.error == 0
    assert found.draws.mean() == pytest.approx(expected, abs=5 * found.sd / np.sqrt(2000))
    turned = post.effect("smoke", "dysp", contrast=("yes", "no"), outcome="no", draws=10)
    assert turned.mean == pytest.approx(expected, abs=1e-12)
    assert post.effects().loc["smoke", "dysp"] == pytest.approx(expected, abs=1e-12)
    assert post.effect("xray", "smoke").mean == 0.0
    table = post.effect_table(draws=50).set_index(["cause", "effect"])
    assert table.loc[("smoke", "dysp"), ["from", "to", "outcome"]].tolist() == ["no", "yes", "yes"]
    rows = network.sample(200_000, seed=2, do={"smoke": "yes"}), network.sample(200_000, seed=3, do={"smoke": "no"})
    truth = (rows[0].dysp == "yes").mean() - (rows[1].dysp == "yes").mean()
    low, high = post.effect("smoke", "dysp", level=0.999).interval
    assert low < truth < high


def test_other_causes_of_the_effect_count():
    """P(y | do(x)) depends on the distribution of parents of y that x does not reach, at three levels each."""
    graph = np.zeros((5, 5), dtype=bool)
    graph[0, 4] = graph[1, 4] = graph[2, 1] = True
    post = Posterior(graph[None], np.zeros(1), DATA.names, dp.BDeu(), dp.Uniform(), data=DATA)
    expected = enumerated(post, {0: 2}, 4)[1] - enumerated(post, {0: 1}, 4)[1]
    found = post.effect("x0", "x4", contrast=("1", "2"), outcome="1", draws=10)
    assert found.mean == pytest.approx(expected, abs=1e-12)


def test_questions_with_levels_that_are_not_there():
    network = asia()
    post = fixed_posterior(network, network.sample(200, seed=1))
    for options, message in [
        ({"contrast": ("no", "ys")}, "'ys' is no level of 'smoke': did you mean 'yes'"),
        ({"contrast": ("no", "no")}, "two different levels"),
        ({"contrast": "yes"}, "give two levels of 'smoke'"),
        ({"outcome": "maybe"}, "'maybe' is no level of 'dysp'"),
    ]:
        with pytest.raises(InputError, match=message):
            post.effect("smoke", "dysp", **options)
    with pytest.raises(InputError, match="'sometimes' is no level of 'smoke'"):
        post.predict({"smoke": "sometimes"})
    for curve in (post.mechanism, post.effect_curve):
        with pytest.raises(InputError, match="a curve needs numbers, and 'smoke' has levels"):
            curve("smoke", "dysp")
    with pytest.raises(InputError, match="outcome='yes': a level of the effect, which has none in the model 'bge'"):
        dp.exact(np.random.default_rng(0).normal(size=(30, 3))).effect("x0", "x1", outcome="yes")
    with pytest.raises(InputError, match="the model 'bge' has no tables"):
        dp.exact(np.random.default_rng(0).normal(size=(30, 3))).probability_table("x0")


def test_predictions_under_interventions():
    network = asia()
    post = fixed_posterior(network, network.sample(2000, seed=1))
    rows = post.predict({"smoke": "yes"}, samples=4000, seed=1)
    assert (rows.smoke == "yes").all() and list(rows.bronc.cat.categories) == ["no", "yes"]
    p = enumerated(post, {2: 1}, 7)[1]
    assert (rows.dysp == "yes").mean() == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / 4000))
    table = post.probability_table("dysp", network.graph)
    assert table.index.names == ["bronc", "either"] and list(table.columns) == ["no", "yes"]
    frame = post.data.frame()
    chosen = frame[(frame.bronc == "yes") & (frame.either == "no")]
    n = len(chosen)
    expected = ((chosen.dysp == "yes").sum() + 1 / 8) / (n + 1 / 4)
    assert table.loc[("yes", "no"), "yes"] == pytest.approx(expected, rel=1e-12)


def test_held_out_density_and_levels_of_other_tables():
    network, names = asia(), ["smoke", "lung", "bronc", "dysp"]
    train, held_out = network.sample(300, seed=1)[names], network.sample(50, seed=2)[names]
    post = dp.exact(train, "bdeu", "uniform")
    both = dp.exact(dp.Dataset(train).followed_by(dp.Dataset(held_out)), "bdeu", "uniform")
    expected = both.log_evidence - post.log_evidence
    assert dp.metrics.log_predictive_density(post, held_out[names[::-1]]) == pytest.approx(expected, rel=1e-9)
    one_level = held_out[held_out.lung == "no"].astype(str)  # its own levels would be others
    assert np.isfinite(dp.metrics.log_predictive_density(post, one_level))
    with pytest.raises(InputError, match="column 'lung', row 1 holds 'perhaps', which is none of its levels"):
        dp.metrics.log_predictive_density(post, held_out.astype(str).assign(lung="perhaps"))


def test_numbers_are_taken_as_categories_if_they_are_few_and_whole():
    frame = DATA.with_kinds({f"x{j}": "continuous" for j in range(5)}).frame()
    post = dp.exact(frame, "bdeu")
    assert post.levels == NAMES and "of whole numbers taken as categories" in post.record.assumptions["table"]
    np.testing.assert_allclose(post.edge_marginals, dp.exact(DATA, "bdeu").edge_marginals, atol=1e-12)
    wrong = frame.assign(x0=np.linspace(0, 1, 200), x1=np.arange(200))
    with pytest.raises(
        InputError, match=r"columns 'x0', 'x1' hold numbers, and the model 'bdeu' takes categories alone"
    ):
        dp.exact(wrong, "bdeu")


def test_methods_that_need_more_say_so():
    frame = asia().sample(100, seed=1)[["smoke", "bronc", "dysp"]]
    for method in ("m-mc3", "g-mc3"):
        with pytest.raises(InputError, match="samples parameters, which the model 'bdeu' integrates out: use 'mc3'"):
            dp.fit(frame, "bdeu", method=method)
    for kind in ("flip", "gumbel"):
        with pytest.raises(InputError, match=r"the model 'bdeu' .*hard graphs"):
            dp.fit(frame, "bdeu", method="dibs", estimator=dp.dibs.Estimator(kind))
    with pytest.raises(InputError, match="use method='dibs' with the estimator 'score'"):
        dp.fit(frame, "bdeu", method="dibs-paper")


def test_prior_knowledge_holds():
    frame = asia().sample(300, seed=1)[["smoke", "bronc", "dysp"]]
    post = dp.exact(frame, knowledge={"forbidden": [["bronc", "smoke"], ["dysp", "bronc"]]})
    assert post.edge_probabilities.loc["bronc", "smoke"] == 0 and post.edge_probabilities.loc["smoke", "bronc"] > 0.9


def test_settings_are_checked():
    for settings, message in [
        ({"equivalent_sample_size": 0.0}, "equivalent_sample_size=0.0"),
        ({"variant": "k3"}, "variant='k3': known: 'bdeu', 'k2', 'bds'"),
        ({"simulated_levels": 1}, "simulated_levels=1"),
    ]:
        with pytest.raises(InputError, match=message):
            dp.BDeu(**settings)


def test_files_restore_levels(tmp_path):
    frame = asia().sample(200, seed=1)[["smoke", "lung", "bronc"]]
    post = dp.exact(frame, dp.BDeu(2.0, "bds"))
    again = dp.load(post.save(tmp_path / "p.nc"))
    assert again.model == post.model and again.levels == (("no", "yes"),) * 3
    assert again.record.provenance.kinds == ["categorical"] * 3
    with pytest.raises(InputError, match="needs the data"):
        again.effect("smoke", "bronc")
    whole = again.with_data(frame.astype(str))
    assert whole.effect("smoke", "bronc").mean == pytest.approx(post.effect("smoke", "bronc").mean, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("network", [asia, pytest.param(discrete_sachs, marks=pytest.mark.long)])
def test_auto_is_exact_within_two_hundredths(network):
    """Chains, 1,000 simulated rows; errors of edge probabilities are 0.004 or so."""
    data = dp.Dataset(network().sample(1000, seed=1))
    chains = dp.fit(data, "bdeu", start="empty", precision=0.006, time_limit=300)
    assert dp.metrics.edge_marginal_maximum(chains, dp.exact(data, "bdeu")) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mc3", "bootstrap-pc", "bootstrap-ges", "dibs"])
def test_every_method_finds_the_strong_edges(method):
    """Chains of dependence that no method can miss; the pairs of the other nodes are far less probable."""
    network = asia()
    names = ["smoke", "bronc", "either", "xray", "dysp"]
    frame = network.sample(1500, seed=4)[names]
    options = {"mc3": {"burn_in": 5000, "thin": 200}, "dibs": {"steps": 200}}.get(method, {})
    post = dp.fit(frame, "bdeu", method=method, particles=30, progress=False, **options)
    joined = post.edge_marginals + post.edge_marginals.T
    place = {name: j for j, name in enumerate(names)}
    for one, other in [("smoke", "bronc"), ("either", "xray"), ("bronc", "dysp")]:
        assert joined[place[one], place[other]] > 0.9
    assert joined[place["xray"], place["smoke"]] < 0.5
