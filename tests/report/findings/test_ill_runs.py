"""Does the page name first the runs with findings, and the findings?"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from lossscope.report.chapters.base import ReportData
from lossscope.report.findings.ill_runs import ill_runs
from lossscope.report.results import FINDINGS
from tests.report.findings.results_by_hand import report_data, row

ROWS = [row("A", "rsum", 400.0), row("A", "rsum", 410.0, seed=1)]


def examined_runs(examined: str, *rows: tuple[str, str, str]) -> ReportData:
    """Return data of examined runs with findings (run, severity, id)."""
    data = report_data(ROWS)
    columns = dict.fromkeys(FINDINGS, "")
    frame = pd.DataFrame(
        [
            {**columns, "run": run, "severity": severity, "id": id, "title": f"it has {id}"}
            for run, severity, id in rows
        ],
        columns=list(FINDINGS),
    )
    return replace(
        data,
        results=replace(
            data.results, findings=frame, examined={run: 0.2 + 0.1 * number for number, run in enumerate(examined)}
        ),
    )


def test_runs_that_were_not_examined_have_no_sentence() -> None:
    assert ill_runs(examined_runs("")) == []


def test_runs_that_are_well_have_one() -> None:
    (well,) = ill_runs(examined_runs("abcd", ("a", "note", "cone")))
    assert well.text == "The doctor finds no problem in 4 runs (recall@1 20.0% to 50.0%)." and not well.warning
    assert [finding.text for finding in ill_runs(examined_runs("a"))] == [
        "The doctor finds no problem in 1 run (recall@1 20.0%)."
    ]


def test_errors_come_before_warnings_each_once() -> None:
    rows = (
        ("b", "warning", "hubness"),
        ("a", "error", "no-learning"),
        ("c", "warning", "hubness"),
        ("a", "note", "cone"),
    )
    ill = ill_runs(examined_runs("abcd", *rows))
    assert all(finding.warning for finding in ill)
    assert [finding.text for finding in ill] == [
        "Error: no-learning in 1 of 4 runs (a): it has no-learning.",
        "Warning: hubness in 2 of 4 runs (b, c): it has hubness.",
    ]


def test_three_runs_are_named() -> None:
    rows = [(run, "error", "frozen") for run in "abcde"]
    (ill,) = ill_runs(examined_runs("abcde", *rows))
    assert ill.text == "Error: frozen in 5 of 5 runs (a, b, c and 2 more): it has frozen."
