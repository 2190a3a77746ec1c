"""The page of results: what people wrote stays, tables are those of the files, nothing is shown without results."""

import pytest

from dagpost.errors import InputError
from dagpost.studies import Scale, Store, collect, update_page
from dagpost.studies.experiments import STUDIES
from dagpost.studies.study import Study


@pytest.fixture
def results(tmp_path):
    """A finished study with one row, as if it had run."""
    study: Study = STUDIES["four-node"]
    store = Store.at(tmp_path / "results")
    task = study.tasks(Scale())[0]
    rows = [{"method": "exact", "feature": "x1 → x0 → x2", "probability": 0.3125}]
    versions = {"dagpost": "0.1.0", "jax": "1", "python": "3"}
    hardware = {"processor": "abacus", "cores": 2, "device": "cpu"}
    store.put(task, {"rows": rows, "seconds": 1.5, "versions": versions, "hardware": hardware})
    collect(study, Scale(), store)
    return tmp_path / "results"


def test_tables_are_put_between_marks_and_text_stays(results, tmp_path):
    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    page.write_text(
        "# Results\n\nbefore\n\n<!-- study four-node -->\nold\n<!-- end four-node -->\n\nafter: why it differs\n"
    )
    assert update_page(page, results) == ["four-node"]
    text = page.read_text()
    assert text.startswith("# Results\n\nbefore\n") and text.endswith("after: why it differs\n")
    assert "old" not in text and "| x1 → x0 → x2 | 0.312 | 0.298 | 1 |" in text
    assert "(../results/four-node/figure.png)" in text and "abacus, 2 cores (1 tasks)" in text
    assert "`dagpost study four-node --seeds 30`, 1 of 121 tasks" in text
    update_page(page, results)
    assert page.read_text() == text  # again: nothing changes


def test_a_study_without_a_block_gets_a_section_and_one_without_results_none(results, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Results\n")
    update_page(page, results)
    text = page.read_text()
    assert text.count("## ") == 1 and "## Four nodes, against the exact posterior\n\n<!-- study four-node -->" in text


def test_a_page_that_is_not_there(results, tmp_path):
    with pytest.raises(InputError, match="no such page"):
        update_page(tmp_path / "missing.md", results)
