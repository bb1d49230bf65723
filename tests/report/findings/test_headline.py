"""Does the first sentence say which loss is best, from how many samples it learns, and leave planted failures out?"""

from __future__ import annotations

from dataclasses import replace

from lossscope.report.findings.answer import answer
from lossscope.report.findings.headline import headline
from tests.report.findings.results_by_hand import report_data, row
from tests.report.findings.test_gradient_share import counts

ROWS = [
    row("A", "rsum", 562.2), *counts("A", 0.67, 1.0, 0.0, 0.0),
    row("B", "rsum", 554.2), *counts("B", 6.8, 0.83, 0.17, 0.0),
    row("C", "rsum", 530.0), *counts("C", 2.7, 1.0, 0.0, 0.0),
]  # fmt: skip


def test_the_best_loss_is_compared_with_the_one_that_counts_most() -> None:
    text = headline(report_data(ROWS))
    assert text == (
        "A retrieves best (rsum 562.2 of 600) and learns from 0.67 negatives per query; B learns from more, 6.8, and "
        "reaches 554.2."
    )


def test_one_loss_has_no_headline() -> None:
    assert headline(report_data(ROWS[:1])) == headline(report_data(ROWS[: len(ROWS) // 3])) == ""


def test_runs_that_fail_on_purpose_are_findings_of_their_own() -> None:
    data = report_data(
        [*ROWS, row("A", "rsum", 16.8, data="planted"), *counts("A", 9.0, 1.0, 0.0, 0.0, data="planted")]
    )
    data = replace(data, results=replace(data.results, planted=("planted",)))
    found = answer(data, [])
    assert found.headline == headline(report_data(ROWS))
    assert not any("planted" in finding.text for finding in found.findings)
    assert any("A on planted reaches rsum 16.8" in finding.text for finding in found.planted)
