import numpy as np
import pytest

from dagpost.errors import InputError
from dagpost.graphs import all_dags, is_acyclic
from dagpost.priors import Uniform


@pytest.mark.parametrize("d, count", [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281)])
def test_every_dag_once(d, count):
    graphs = all_dags(d)
    assert len(graphs) == count
    assert is_acyclic(graphs).all()
    assert len(np.unique(graphs.reshape(count, -1), axis=0)) == count


@pytest.mark.long
def test_every_dag_once_on_six_nodes():
    graphs = all_dags(6)
    assert len(graphs) == 3_781_503
    assert is_acyclic(graphs).all()


@pytest.mark.parametrize("d, count", [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29281), (6, 3781503), (7, 1138779265)])
def test_counting_by_layers(d, count):
    assert np.exp(Uniform().log_normaliser(d)) == pytest.approx(count, rel=1e-12)


@pytest.mark.parametrize("d", [0, 7])
def test_too_many_are_refused(d):
    with pytest.raises(InputError, match="1 to 6 nodes"):
        all_dags(d)
