"""The cache of family scores, against a dictionary."""

import numpy as np
import pytest

from dagpost.inference.mcmc.scoring import empty_cache, find, store
from dagpost.inference.mcmc.structure import insert, words_for


def random_family(rng, d):
    words = np.zeros(words_for(d), np.uint64)
    for i in rng.choice(d, rng.integers(0, 4), replace=False):
        insert(words, i)
    return int(rng.integers(d)), words


@pytest.mark.parametrize("d", [4, 64, 100])
def test_it_remembers_what_a_dictionary_would(d):
    rng = np.random.default_rng(d)
    cache, expected = empty_cache(d, 1 << 12), {}
    for _ in range(2000):
        node, parents = random_family(rng, d)
        key = (node, parents.tobytes())
        slot, known = find(cache, node, parents)
        assert known == (key in expected)
        if known:
            assert tuple(cache.scores[slot]) == expected[key]
        expected[key] = tuple(rng.standard_normal(2))
        store(cache, node, parents, *expected[key])
    assert cache.used[0] == len(expected)


def test_a_full_cache_starts_over():
    rng = np.random.default_rng(0)
    cache = empty_cache(70, 16)
    for _ in range(200):
        node, parents = random_family(rng, 70)
        slot = store(cache, node, parents, 1.0, 2.0)
        assert find(cache, node, parents) == (slot, True)
        assert cache.used[0] <= 12
