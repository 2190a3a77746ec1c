import jax
import numpy as np
import pytest

import dagpost as dp
from dagpost.errors import InputError, RunError
from dagpost.inference.dibs import infer, infer_batched, paper_settings
from dagpost.models import as_model

PRIOR = dp.ErdosRenyi()
SETS = [dp.simulate(nodes=4, observations=30, seed=seed, interventional_sets=0).train for seed in (1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bge", *(pytest.param(n, marks=pytest.mark.long) for n in ("linear", "mlp"))])
def test_together_is_as_alone(name):
    model = as_model(name)
    settings = paper_settings(model, 4, steps=8, cyclic="repair")
    seen = []
    together = infer_batched(
        SETS, model, PRIOR, settings, seeds=[5, 6], particles=3, callback=lambda k, s: seen.append((k, s.step)),
        watched=(5, 8),
    )  # fmt: skip
    assert seen == [(0, 5), (1, 5), (0, 8), (1, 8)]
    for one, data, seed in zip(together, SETS, (5, 6)):
        alone = infer(data, model, PRIOR, settings, particles=3, seed=seed, progress=False)
        assert np.array_equal(one.graphs, alone.graphs)
        assert one.log_joint == pytest.approx(alone.log_joint, rel=1e-3)
        for leaf, other in zip(jax.tree.leaves(one.theta), jax.tree.leaves(alone.theta)):
            assert np.allclose(leaf, other, rtol=1e-3, atol=1e-3)
    assert not np.array_equal(together[0].log_joint, together[1].log_joint)


@pytest.mark.slow
def test_one_that_fails_leaves_the_others():
    model = as_model("linear")
    settings = paper_settings(model, 4, steps=1, cyclic="drop")
    outcomes = infer_batched(SETS * 3, model, PRIOR, settings, seeds=range(6), particles=1)
    failed = [isinstance(one, InputError | RunError) for one in outcomes]
    assert any(failed) and not all(failed)


def test_sets_of_different_shapes_are_refused():
    other = dp.simulate(nodes=4, observations=20, seed=1, interventional_sets=0).train
    with pytest.raises(InputError, match="one shape"):
        infer_batched([SETS[0], other], as_model("bge"), PRIOR, paper_settings(as_model("bge"), 4), seeds=[0, 1])
