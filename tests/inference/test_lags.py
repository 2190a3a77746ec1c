"""Time series as two slices: against sums over all allowed graphs, chains against exact, and what is refused."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln
from scipy.stats import multivariate_normal

import dagpost as dp
from dagpost.data import lagged
from dagpost.errors import InputError
from dagpost.graphs import all_dags

WITHIN = [(0, 1), (3, 2)]
ACROSS = [(0, 0), (0, 2), (1, 3), (4, 4), (2, 4)]


def series(rows=300, d=5, seed=0, within=WITHIN, across=ACROSS, weight=0.6):
    """A linear process with these edges between columns of one row, and from a row to the next."""
    rng = np.random.default_rng(seed)
    order = [1, 0, 3, 2, 4] if (1, 0) in within else [0, 1, 3, 2, 4]
    x = rng.normal(size=(rows, d))
    for t in range(1, rows):
        for j in (j for j in order if j < d):
            x[t, j] += weight * sum(x[t - 1, i] for i, k in across if k == j)
            x[t, j] += 1.5 * weight * sum(x[t, i] for i, k in within if k == j)
    return pd.DataFrame(x, columns=[f"v{j}" for j in range(d)])


def chain(rows=60, d=2, seed=1, levels=3, copied=0.6):
    """Categories: the first column repeats itself mostly, the others copy the one before mostly."""
    rng = np.random.default_rng(seed)
    x = rng.integers(levels, size=(rows, d))
    for t in range(1, rows):
        for j in range(d):
            if rng.random() < copied:
                x[t, j] = x[t - 1, j] if j == 0 else x[t, j - 1]
    return pd.DataFrame(x, columns=[f"v{j}" for j in range(d)]).astype(str).map(lambda level: f"l{level}")


def slice_graphs(d):
    """Every allowed graph over d present nodes and then d past ones."""
    graphs = []
    for inside in all_dags(d):
        for bits in product([False, True], repeat=d * d):
            graph = np.zeros((2 * d, 2 * d), dtype=bool)
            graph[:d, :d], graph[d:, :d] = inside, np.reshape(bits, (d, d))
            graphs.append(graph)
    return np.array(graphs)


def linear_score(x, j, parents):
    """Known noise 0.1, weights N(0, 1): the column is Gaussian."""
    covariance = 0.1 * np.eye(len(x)) + x[:, parents] @ x[:, parents].T
    return multivariate_normal(np.zeros(len(x)), covariance).logpdf(x[:, j])


def bdeu_score(x, j, parents, levels=3):
    """Counts with a weight of one row divided among the cells."""
    cells = 1.0 / levels ** (len(parents) + 1)
    counts: dict[tuple, np.ndarray] = {}
    for row in x.astype(int):
        counts.setdefault(tuple(row[parents]), np.zeros(levels))[row[j]] += 1
    return sum(
        gammaln(levels * cells) - gammaln(levels * cells + n.sum()) + (gammaln(cells + n) - gammaln(cells)).sum()
        for n in counts.values()
    )


def summed(x, d, score, log_prior):
    """Edge probabilities by enumeration; families of the past do not count."""
    graphs, known = slice_graphs(d), {}

    def family(graph, j):
        key = (j, *np.flatnonzero(graph[:, j]).tolist())
        if key not in known:
            known[key] = score(x, j, list(key[1:]))
        return known[key]

    log_joint = np.array([sum(family(g, j) for j in range(d)) + log_prior(int(g.sum()), d) for g in graphs])
    weights = np.exp(log_joint - log_joint.max())
    return np.einsum("m,mij->ij", weights / weights.sum(), graphs)


def pairs_of(values):
    return np.hstack([values[1:], values[:-1]])


def uniform(edges, d):
    return 0.0


def erdos_renyi(edges, d):
    q = min(4 / (2 * d - 1), 0.5)
    return edges * np.log(q / (1 - q))


@pytest.mark.parametrize("d, prior, log_prior", [(2, "erdos-renyi", erdos_renyi), (3, "uniform", uniform)])
def test_linear_is_the_sum_over_two_slice_graphs(d, prior, log_prior):
    frame = series(30, d, within=[(0, 1)], across=[(0, 0), (1, 0)], weight=0.1) * 0.4
    expected = summed(pairs_of(frame.to_numpy()), d, linear_score, log_prior)
    post = dp.exact(frame, "linear", prior, lags=1)
    assert post.names == (*frame.columns, *(f"{name}[t-1]" for name in frame.columns))
    np.testing.assert_allclose(post.edge_marginals, expected, atol=1e-8)
    assert (expected[:d, :d] > 0.01).sum() >= d  # the comparison is of numbers that could differ


def test_bdeu_is_the_sum_over_two_slice_graphs():
    frame = chain()
    codes = frame.map(lambda level: int(level[1])).to_numpy()
    expected = summed(pairs_of(codes), 2, bdeu_score, uniform)
    np.testing.assert_allclose(dp.exact(frame, "bdeu", "uniform", lags=1).edge_marginals, expected, atol=1e-8)


@pytest.mark.parametrize("model", ["bge", "additive"])
def test_other_closed_forms_are_the_sum_of_their_families(model):
    frame = series(40, 2, within=[(0, 1)], across=[(0, 0)], weight=0.3)
    table = lagged(dp.Dataset(frame)).standardised()
    built = dp.models.as_model(model)
    stats = built.summarise(table)
    expected = summed(table.values, 2, lambda x, j, parents: built.log_evidence(j, parents, stats), uniform)
    np.testing.assert_allclose(dp.exact(table, model, "uniform").edge_marginals, expected, atol=1e-8)


def test_densities_are_equally_probable_among_two_slice_graphs():
    """The mixture by hand: each density normalised over the graphs of two slices, which leaves none preferred."""
    d, frame = 2, series(25, 2, within=[(0, 1)], across=[(0, 0)], weight=0.1) * 0.4
    sizes = slice_graphs(d).sum(axis=(1, 2))
    q = np.array(sorted({min(2 * density / (2 * d - 1), 0.5) for density in dp.UnknownDensity().edges_per_node}))
    odds = np.log(q / (1 - q))
    log_z = np.log(np.exp(odds[:, None] * sizes).sum(axis=1))

    def mixture(edges, d):
        return np.log(np.exp(odds * edges - log_z).mean())

    expected = summed(pairs_of(frame.to_numpy()), d, linear_score, mixture)
    post = dp.exact(frame, "linear", "unknown-density", lags=1)
    np.testing.assert_allclose(post.edge_marginals, expected, atol=1e-8)


def test_true_edges_are_found():
    post = dp.exact(series(400), lags=1)
    p = post.edge_probabilities
    for i, j in WITHIN:
        assert p.loc[f"v{i}", f"v{j}"] + p.loc[f"v{j}", f"v{i}"] > 0.95
    for i, j in ACROSS:
        assert p.loc[f"v{i}[t-1]", f"v{j}"] > 0.95
    rest = [(i, j) for i in range(5) for j in range(5) if (i, j) not in ACROSS]
    assert np.mean([p.loc[f"v{i}[t-1]", f"v{j}"] for i, j in rest]) < 0.1
    assert p.to_numpy()[:, 5:].max() == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("model", [None, "bdeu"])
def test_auto_is_exact_within_two_hundredths(model):
    frame = series(80, weight=0.4) if model is None else chain(150, 5, levels=2, copied=0.3)
    chains = dp.fit(frame, model, lags=1, start="empty", precision=0.006, time_limit=300)
    exact = dp.exact(frame, model, lags=1)
    assert ((exact.edge_marginals > 0.05) & (exact.edge_marginals < 0.95)).sum() >= 8
    assert dp.metrics.edge_marginal_maximum(chains, exact) < 0.02
    assert chains.edge_marginals[:, 5:].max() == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("method", ["mc3", "dibs"])
def test_other_methods_keep_the_past_without_causes(method):
    options = {"mc3": {"burn_in": 5000, "thin": 200}, "dibs": {"steps": 200}}[method]
    post = dp.fit(series(300, 3, across=[(0, 0), (0, 2)], within=[]), None, None, method, lags=1, **options)
    assert post.edge_marginals[:, 3:].max() == 0.0
    assert post.edge_probabilities.loc["v0[t-1]", "v2"] > 0.8


@pytest.mark.parametrize("method", ["bootstrap-ges", "bootstrap-pc"])
def test_methods_without_constraints_refuse(method):
    with pytest.raises(InputError, match=f"{method} cannot be held to prior knowledge or to lags: leave"):
        dp.fit(GOOD, None, None, method, lags=1)


def test_series_are_not_joined_with_each_other():
    first, second = series(20, 2, within=[], across=[]), series(15, 2, 5, within=[], across=[])
    whole = pd.concat([first.assign(unit="p"), second.assign(unit="q")])
    mixed = whole.iloc[np.random.default_rng(0).permutation(len(whole))].sort_index(kind="stable")
    table = dp.fit(mixed, "bge", "uniform", "exact", lags=1, series="unit").data
    assert table.names == ("v0", "v1", "v0[t-1]", "v1[t-1]") and table.series.column == "unit"
    expected = [pairs_of(first.to_numpy()), pairs_of(second.to_numpy())]
    assert sorted(map(tuple, table.values)) == sorted(map(tuple, np.vstack(expected)))
    for label, rows in zip("pq", expected):
        of_row = list(dict.fromkeys(mixed.unit)).index(label)
        np.testing.assert_array_equal(table.rows(table.series.of_row == of_row).values, rows)


def test_a_column_and_its_past_share_scaling_kinds_and_levels():
    frame = series(30, 2) * 7 + 3
    table = lagged(dp.Dataset(frame)).standardised()
    assert np.array_equal(table.scaling.scale[:2], table.scaling.scale[2:])
    both = np.concatenate([table.values[:, 0], table.values[:, 2]])
    assert abs(both.mean()) < 1e-12 and abs(both.std() - 1) < 1e-12
    np.testing.assert_allclose(table.raw().values, pairs_of(frame.to_numpy()))
    ends = pd.DataFrame({"a": [2, 0, 1, 0, 1, 1], "b": [0, 1, 1, 0, 1, 2]})  # 2 is in one slice only
    coded = lagged(dp.Dataset(ends)).with_kinds({"a": "categorical", "b": "categorical"})
    assert coded.levels == (("0", "1", "2"),) * 4


def test_a_missing_row_parts_the_series():
    frame = series(12, 2)
    frame.iloc[4, 1] = np.nan
    table = dp.data.as_dataset(frame, missing="drop", lags=1)
    expected = np.delete(pairs_of(frame.to_numpy()), [3, 4], axis=0)
    assert np.array_equal(table.values, expected)
    assert any("2 of 11 pairs" in note for note in table.notes)


def test_interventions_are_those_of_the_row():
    frame = series(6, 2).assign(target=["", "v0", "", "v1", "", ""])
    mask = dp.data.as_dataset(frame, interventions="target", lags=1).intervened
    assert mask.astype(int).tolist() == [[1, 0, 0, 0], [0] * 4, [0, 1, 0, 0], [0] * 4, [0] * 4]


def test_knowledge_names_both_slices():
    frame = series(60, 2, within=[(0, 1)], across=[(0, 0)], weight=0.2)
    known = {"required": ["v1[t-1] -> v0"], "forbidden": ["v0 -> v1"], "max_parents": 2}
    post = dp.exact(frame, lags=1, knowledge=known)
    p = post.edge_probabilities
    assert p.loc["v1[t-1]", "v0"] == pytest.approx(1) and p.loc["v0", "v1"] == 0
    assert post.record.provenance.knowledge["required"] == [["v1[t-1]", "v0"]]
    for field in ({"required": ["v0 -> v1[t-1]"]}, {"probabilities": {"v0[t-1] -> v1[t-1]": 0.5}}):
        with pytest.raises(InputError, match=r"-> v1.t-1.' of the knowledge leads into the past"):
            dp.exact(frame, lags=1, knowledge=field)


def test_saved_posteriors_know_their_lags(tmp_path):
    frame = series(30, 2).assign(unit=["p"] * 12 + ["q"] * 18)
    post = dp.exact(frame, lags=1, series="unit")
    post.save(tmp_path / "post.nc")
    again = dp.load(tmp_path / "post.nc")
    assert again.record.provenance.lags == 1 and again.record.provenance.series == "unit"
    assert again.with_data(frame).data.fingerprint == post.data.fingerprint
    assert again.with_data(post.data).data.fingerprint == post.data.fingerprint
    assert again.prior == post.prior


def test_held_out_rows_are_put_in_slices_as_those_of_the_fit():
    frame = series(60, 2).assign(unit=["p"] * 30 + ["q"] * 30, drug=["", "A"] * 30)
    post = dp.exact(frame[:50], lags=1, series="unit", conditions="drug")
    slices = dp.data.as_dataset(frame[30:], lags=1, series="unit", conditions="drug")
    expected = dp.metrics.log_predictive_density(post, slices)
    assert dp.metrics.log_predictive_density(post, frame[30:]) == pytest.approx(expected, rel=1e-12)
    without = dp.metrics.log_predictive_density(post, frame[30:].drop(columns="drug"))
    assert abs(without - expected) > 1e-6


GOOD = series(20, 2)
REFUSED = {
    "two lags": (GOOD, {"lags": 2}, "lags=2: give 1"),
    "no lags": (GOOD, {"lags": 0}, "lags=0: give 1"),
    "true": (GOOD, {"lags": True}, "lags=True: give 1"),
    "text": (GOOD, {"lags": "1"}, "lags='1': give 1"),
    "series alone": (GOOD, {"series": "v0"}, "no lags: add lags=1"),
    "unknown series": (GOOD, {"lags": 1, "series": "unti"}, "names the series, 'unti', is unknown"),
    "single row": (GOOD.assign(u=["p"] * 19 + ["q"]), {"lags": 1, "series": "u"}, "series 'q' has a single row"),
    "no label": (GOOD.assign(u=["p"] * 19 + [None]), {"lags": 1, "series": "u"}, "the series of row 20 is missing"),
    "wrong length": (GOOD, {"lags": 1, "series": [1, 2]}, "2 entries of series for 20 rows"),
    "few rows": (GOOD[:2], {"lags": 1}, r"2 row\(s\) leave 1 with a row before"),
    "named like the past": (GOOD.assign(**{"v0[t-1]": 1.0}), {"lags": 1}, "'v0.t-1.' is named like a past column"),
    "twice": (lagged(dp.Dataset(GOOD)), {"lags": 1}, "past columns already"),
    "a clock": (GOOD.assign(hour=np.arange(20) * 2.0), {"lags": 1}, "'hour' and 'hour.t-1.' are the same up to"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_named(case):
    data, options, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        dp.fit(data, "bge", **options)
