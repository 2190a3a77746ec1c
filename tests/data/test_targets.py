"""Interventions by name: row by row, in a column of the table, or one file for each condition."""

import numpy as np
import pandas as pd
import pytest

import dagpost as dp
from dagpost.data import as_dataset, check_for_inference
from dagpost.data.sachs import CONDITIONS
from dagpost.errors import InputError

GOOD = np.random.default_rng(0).normal(size=(4, 3))
NAMES = ("a", "b", "c;d")
MASK = [[1, 0, 0], [0, 0, 0], [1, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    "targets",
    [
        ["a", "", "a;b", "c;d"],
        ["a", None, "b; a", " c;d "],
        ["a", float("nan"), ["a", "b"], ["c;d"]],
        [("a",), (), {"a", "b"}, ("c;d",)],
        np.array(["a", "", "b;a", "c;d"]),
        np.array(["a", None, "b;a", "c;d"], dtype=object),
        pd.Series(["a", None, "a;b", "c;d"], index=[7, 8, 9, 10]),
        pd.Series(["a", pd.NA, "a;b", "c;d"], dtype="string"),
        pd.Series(pd.Categorical(["a", None, "a;b", "c;d"])),
        MASK,
    ],
    ids=lambda t: type(t).__name__,
)
def test_names_become_a_mask(targets):
    np.testing.assert_array_equal(as_dataset(GOOD, NAMES, targets).intervened, MASK)


@pytest.mark.parametrize("targets", [[None] * 4, np.full(4, np.nan), [""] * 4, [[], [], [], []]])
def test_nothing_means_observed(targets):
    assert not as_dataset(GOOD, NAMES, targets).intervened.any()


@pytest.mark.parametrize(
    "targets, message",
    [
        (["a", "", "aa;b", ""], "row 3 was intervened on at 'aa', which is not a column: did you mean 'a'"),
        (["a", "b"], "2 intervention targets for 4 rows"),
        (pd.Series([1, 0, 0, 1]), "the intervention target in row 1 is 1: give the name of a column"),
        (np.array([1, 0, 0, 1]), "mask has shape"),
        ("a", "interventions 'a': neither a column of the table nor a file"),
    ],
)
def test_faults_are_named(targets, message):
    with pytest.raises(InputError, match=message):
        as_dataset(GOOD, NAMES, targets)


def test_a_column_of_the_table_can_hold_the_targets(tmp_path):
    frame = pd.DataFrame(GOOD, columns=NAMES)
    frame.insert(1, "target", ["a", None, "a;b", "c;d"])
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (frame, tmp_path / "t.csv", str(tmp_path / "t.parquet")):
        data = as_dataset(source, interventions="target")
        assert data.names == NAMES
        np.testing.assert_array_equal(data.intervened, MASK)
        np.testing.assert_allclose(data.values, GOOD)
    with pytest.raises(InputError, match=r"neither a column of the table nor a file \(did you mean 'target'"):
        as_dataset(frame, interventions="tarket")
    with pytest.raises(InputError, match="column 'target', row 1 holds 'a', not a number"):
        as_dataset(frame)


def test_a_node_intervened_on_in_every_row_is_named():
    data = as_dataset(np.random.default_rng(1).normal(size=(20, 3)), NAMES, ["b"] * 20)
    with pytest.raises(InputError, match="node 'b' was intervened on in every row"):
        check_for_inference(data)


def test_interventions_by_name_reach_the_fit():
    sim = dp.simulate(nodes=3, observations=40, seed=0, interventional_sets=0)
    targets = ["x1"] * 15 + [""] * 25
    mask = np.zeros((40, 3), dtype=bool)
    mask[:15, 1] = True
    by_name = dp.fit(sim.train, "bge", method="exact", interventions=targets)
    by_mask = dp.fit(sim.train, "bge", method="exact", interventions=mask)
    np.testing.assert_array_equal(by_name.edge_marginals, by_mask.edge_marginals)
    assert by_name.info["data_hash"] == by_mask.info["data_hash"] != dp.exact(sim.train).info["data_hash"]


@pytest.mark.slow
def test_the_nine_conditions_of_sachs(tmp_path):
    """One file for each condition, columns in another order each: the same data and mask as the bundled ones."""
    conditions = {}
    for number, (name, _, target) in enumerate(CONDITIONS):
        frame = dp.sachs(condition=name).frame()
        path = tmp_path / f"{number}.csv"
        frame[np.roll(frame.columns, number)].to_csv(path, index=False)
        conditions[path] = target
    data, bundled = dp.read_conditions(conditions), dp.sachs(interventions=True)
    assert data.names == bundled.names
    np.testing.assert_array_equal(data.values, bundled.values)
    np.testing.assert_array_equal(data.intervened, bundled.intervened)
    post = dp.exact(data.standardised(), "bge", draws=10)
    edges = post.edge_probabilities
    assert edges.loc["praf", "pmek"] + edges.loc["pmek", "praf"] > 0.99


def test_conditions_in_memory_and_their_faults():
    first, second = pd.DataFrame(GOOD, columns=NAMES), pd.DataFrame(GOOD[:, ::-1], columns=NAMES[::-1])
    data = dp.read_conditions([(first, None), (second, ["a", "b"])])
    np.testing.assert_array_equal(data.values, np.concatenate([GOOD, GOOD]))
    np.testing.assert_array_equal(data.intervened.sum(axis=0), [4, 4, 0])
    with pytest.raises(InputError, match="table 2 has no column 'b'"):
        dp.read_conditions([(first, None), (second.drop(columns="b"), None)])
    with pytest.raises(InputError, match="table 2 has a column 'z'"):
        dp.read_conditions([(first, None), (second.assign(z=1.0), None)])
    with pytest.raises(InputError, match="table 2: row 1 was intervened on at 'q'"):
        dp.read_conditions([(first, None), (second, "q")])
    with pytest.raises(InputError, match="standardise the whole"):
        dp.read_conditions([(dp.Dataset(first).standardised(), None)])
    with pytest.raises(InputError, match="no condition"):
        dp.read_conditions({})
