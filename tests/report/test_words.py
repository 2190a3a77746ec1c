"""What the page says in words: trust, prior knowledge, options, data."""

from dataclasses import replace

import numpy as np
import pytest

import dagpost as dp
from dagpost.posterior.records import ChainDiagnostics
from dagpost.priors import InformedPrior
from dagpost.priors.constraints import Constraints
from dagpost.report import sections
from dagpost.report.sections import assess
from tests.report.made_up import HOSTILE, made_up

CASES = [
    ({"method": "exact"}, "good", "exact"),
    ({"method": "auto", "trusted": True, "verdict": "The chains agree (…)."}, "good", "agree"),
    ({"method": "auto", "trusted": False, "verdict": "Do not trust this run yet."}, "bad", "not mixed"),
    ({"method": "dibs", "particles": 30, "cyclic": 4, "cyclic_handling": "drop"}, "caution", "particles"),
    (
        {"method": "auto", "particles": 30, "cyclic": 0, "verdict": "DiBS alone, not refined by MCMC."},
        "caution",
        "particles",
    ),
    ({"method": "mc3", "burn_in": 10}, "caution", "no diagnostic"),
    ({"method": "bootstrap-pc", "resamples": 30, "dropped": 0}, "caution", "bootstrap"),
]


@pytest.mark.parametrize(("info", "level", "word"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_each_method_is_judged_by_what_it_says_of_itself(info, level, word):
    assessment = assess(made_up(4, **info))
    assert assessment.level == level and word in assessment.headline
    texts = " ".join(reason.text for reason in assessment.reasons)
    assert info.get("verdict", "") in texts and "no unmeasured common cause" in texts
    assert ("4 of 30 particles had a cycle and were dropped" in texts) == (info.get("cyclic") == 4)
    assert sections.trust(assessment).count("<li") == len(assessment.reasons)


def test_few_rows_and_open_directions_are_mentioned():
    post = made_up(4, rows=10)
    both = np.zeros((2, 4, 4), dtype=bool)
    both[0, 0, 1] = both[1, 1, 0] = True
    assessment = assess(replace(post, graphs=both, log_weights=np.zeros(2), theta=()))
    texts = " ".join(reason.text for reason in assessment.reasons)
    assert "10 rows for 4 columns are few" in texts
    assert "1 of 1 pairs that are adjacent with probability 0.9 or more may point either way" in texts


def test_measures_are_shown_with_their_meaning():
    diagnostics = ChainDiagnostics(
        rhat=1.02, ess=512.3, error=0.003, rhat_log_posterior=1.0, ess_log_posterior=np.inf, edge_errors=[],
        acceptance={"pair": 0.25}, swap_rates=[], heats=[], ensembles=4, rounds=10, moves=100, seconds=1.0,
    )  # fmt: skip
    post = made_up(4).with_record(diagnostics=diagnostics)
    text = sections.measures(assess(post))
    for part in ("1.02", "512.3", "0.003", "pair 0.25", "infinite", "at most 1.01"):
        assert part in text


@pytest.fixture(scope="module")
def informed():
    data = dp.simulate(nodes=4, observations=60, seed=2, interventional_sets=0).train
    known = {"required": ["x0 -> x1"], "forbidden": ["x3 -> x0"], "roots": ["x2"], "max_parents": 2,
             "probabilities": {"x1 -> x3": 0.25}}  # fmt: skip
    return dp.exact(data, model="bge", knowledge=known)


def test_knowledge_is_listed_and_checked(informed):
    text = sections.knowledge(informed)
    for part in ("Honoured", "x0 → x1", "x3 → x0", "roots", "x2", "most parents", "0.250"):
        assert part in text
    assert f"{informed.edge_marginals[1, 3]:.3f}" in text
    broken = replace(informed, prior=InformedPrior(dp.ErdosRenyi(), Constraints(4, absent=((0, 1),))))
    assert "✗" in sections.knowledge(broken) and "Honoured" not in sections.knowledge(broken)
    assert "None was given" in sections.knowledge(made_up(3))


def test_data_and_options(informed):
    text = sections.data(informed)
    assert "smallest" in text and f"{informed.data.values[:, 0].mean():.4g}" in text
    assert "smallest" not in sections.data(made_up(3))
    said = sections.options(informed, {"table": "<b>.csv", "assumed": {"units": "none"}})
    assert "&lt;b&gt;.csv" in said and "assumed: units" in said and informed.info["data_hash"] in said


def test_every_section_escapes_names():
    post = made_up(len(HOSTILE), names=HOSTILE)
    known = Constraints(6, present=((0, 1),), odds=((2, 3, 0.0),))
    texts = [sections.data(post), sections.knowledge(replace(post, prior=InformedPrior(dp.ErdosRenyi(), known)))]
    for text in texts:
        assert "<script" not in text and "<img" not in text and "&lt;script&gt;" in text
