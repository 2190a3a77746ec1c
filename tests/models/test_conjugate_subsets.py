"""Evidence of all parent sets against that of one family after the other."""

import numpy as np
import pytest

import dagpost as dp
from dagpost.models.conjugate import family_evidence
from dagpost.models.conjugate_subsets import evidence_of_subsets

D = 6


@pytest.mark.slow  # compiling
@pytest.mark.parametrize("model", [dp.BGe(), dp.LinearGaussian(), dp.Additive()])
@pytest.mark.parametrize("interventions", [False, True])
def test_every_set_is_scored_like_a_single_family(model, interventions):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(30, D)) @ (np.eye(D) + np.triu(rng.normal(size=(D, D)), 1))
    targets = rng.random((30, D)) < 0.2 if interventions else None
    data = dp.Dataset(values, intervened=targets)
    table = model.evidence_table(model.summarise(data))
    found = evidence_of_subsets(table)
    for j in range(D):
        for subset in range(1 << D):
            parents = np.flatnonzero(subset >> np.arange(D) & 1)
            if j in parents:
                assert found[j, subset] == -np.inf
            else:
                expected = family_evidence(table, j, parents, len(parents))
                assert found[j, subset] == pytest.approx(expected, rel=1e-11, abs=1e-9)
