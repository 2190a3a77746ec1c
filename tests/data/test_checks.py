import warnings

import numpy as np
import pytest

from dagpost.data import Dataset, check_for_inference
from dagpost.errors import DataWarning, InputError

GOOD = np.random.default_rng(0).normal(size=(50, 3))


def changed(column, values):
    out = GOOD.copy()
    out[:, column] = values
    return out


@pytest.mark.parametrize(
    "values, message",
    [
        (np.zeros((0, 3)), r"0 row\(s\)"),
        (GOOD[:1], r"1 row\(s\)"),
        (GOOD[:, :1], "1 column"),
        (changed(1, 7.0), r"column 'x1' is constant \(value 7\)"),
        (changed(1, 1e9 + 1e-7 * GOOD[:, 1]), "column 'x1' is nearly constant"),
        (changed(2, GOOD[:, 0]), "columns 'x0' and 'x2' are identical"),
        (changed(2, -3 * GOOD[:, 0] + 1), "columns 'x0' and 'x2' are the same up to scale and offset"),
        (changed(2, GOOD[:, 0] + 2 * GOOD[:, 1]), "is a linear combination of"),
        (changed(1, 1e200 * GOOD[:, 1]), "column 'x1' reaches .*overflows"),
        (changed(1, 1e-200 * GOOD[:, 1]), "column 'x1' has values too small"),
        (changed(1, 1e8 + GOOD[:, 1]), "column 'x1' is nearly constant"),
    ],
)
def test_faults_are_named(values, message):
    with pytest.raises(InputError, match=message):
        check_for_inference(Dataset(values))


def test_combination_names_all_involved():
    values = np.column_stack([GOOD, GOOD[:, 0] - GOOD[:, 1]])
    with pytest.raises(InputError) as error:
        check_for_inference(Dataset(values, ("a", "b", "c", "d")))
    assert all(f"'{n}'" in str(error.value) for n in "abd") and "'c'" not in str(error.value)


def test_node_intervened_on_everywhere():
    mask = np.zeros(GOOD.shape, dtype=bool)
    mask[:, 2] = True
    with pytest.raises(InputError, match="node 'x2' was intervened on in every row"):
        check_for_inference(Dataset(GOOD, intervened=mask))


def test_constant_where_left_alone():
    mask = np.zeros(GOOD.shape, dtype=bool)
    mask[10:, 2] = True
    values = GOOD.copy()
    values[:10, 2] = 1.0
    with pytest.raises(InputError, match="column 'x2' is constant"):
        check_for_inference(Dataset(values, intervened=mask))


def test_warnings():
    with pytest.warns(DataWarning, match="2 rows for 3 columns"):
        check_for_inference(Dataset(GOOD[:2]))
    with pytest.warns(DataWarning, match="differ in scale by a factor of"):
        check_for_inference(Dataset(changed(1, 1e8 * GOOD[:, 1])))


def test_good_and_nearly_dependent_data_pass():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        data = Dataset(GOOD)
        assert check_for_inference(data) is data
        noisy = GOOD[:, 0] + 2 * GOOD[:, 1] + 1e-4 * np.random.default_rng(1).normal(size=50)
        check_for_inference(Dataset(changed(2, noisy)))
