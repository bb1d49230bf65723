"""Is a hyper-parameter drawn where it varies and all others are fixed?"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from lossscope.report.chapters import sensitivity
from lossscope.report.chapters.base import ReportData
from lossscope.report.sections import Picture

SPECS = {
    **{f"unified:margin={margin},gamma=60": 500 + 100 * margin for margin in (0.0, 0.1, 0.2, 0.3)},
    **{f"unified:margin=0.2,gamma={gamma}": 500 + gamma for gamma in (20, 40)},
    "vlc:gamma=60": 490.0,
}


def with_specs(report_data: ReportData, specs: dict[str, float]) -> ReportData:
    """Return the study with one rsum for each spec."""
    rows = report_data.results.rows
    row = rows[(rows["statistic"] == "rsum") & (rows["probe"] == "recall")].iloc[:1]
    parts = [
        row.assign(run=spec, source=spec, spec=spec, objective_label=spec, mean=rsum) for spec, rsum in specs.items()
    ]
    return replace(report_data, results=replace(report_data.results, rows=pd.concat(parts, ignore_index=True)))


def test_each_varied_field_is_a_panel_with_its_own_values(report_data: ReportData) -> None:
    (section,) = sensitivity.build(with_specs(report_data, SPECS))
    (picture,) = section.all_items
    assert isinstance(picture, Picture)
    margin, gamma = picture.figure.axes  # type: ignore[attr-defined]
    assert [margin.get_xlabel(), gamma.get_xlabel()] == ["margin", "scale γ"]
    (of_margin,) = [line for line in margin.get_lines() if line.get_label() == "margin"]
    (of_gamma,) = [line for line in gamma.get_lines() if line.get_label() == "gamma"]
    assert of_margin.get_xydata().tolist() == [[m, 500 + 100 * m] for m in (0.0, 0.1, 0.2, 0.3)]
    assert of_gamma.get_xydata().tolist() == [[20, 520], [40, 540], [60, 520]]


def test_two_values_or_words_are_no_curve(report_data: ReportData) -> None:
    assert sensitivity.build(with_specs(report_data, {"ntxent:tau=0.1": 1.0, "ntxent:tau=0.2": 2.0})) == []
    pairs = {f"goal:triplet=con,pair={pair}": 1.0 for pair in ("con", "lin", "sig")}
    assert sensitivity.build(with_specs(report_data, pairs)) == []
