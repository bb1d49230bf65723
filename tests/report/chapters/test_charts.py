"""Do sliders and weight fields show the means over runs that follow from the frames?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.weight_fields import weight_field
from lossscope.report.chapters import fields, geometry, temperature, threshold
from lossscope.report.chapters.base import Diagrams, ReportData
from lossscope.report.interactive import HeatmapChart, SliderChart
from lossscope.report.sections import Picture


def slider(data: ReportData, chapter: object) -> SliderChart:
    (section,) = chapter.build(data)  # type: ignore[attr-defined]
    (chart,) = [item for item in section.items if isinstance(item, SliderChart)]
    return chart


def test_the_eps_slider_shows_the_mean_curve_over_seeds(report_data: ReportData) -> None:
    chart, curves = slider(report_data, threshold), report_data.results.curves
    assert list(chart.panels) == ["VSE++"] and [line.label for line in chart.panels["VSE++"]] == [
        "NT-Xent", "NT-Xent", "Triplet", "Triplet"
    ]  # fmt: skip
    assert chart.x[chart.start] == pytest.approx(0.01, rel=0.2)
    line = chart.panels["VSE++"][3]
    line_rows = curves[(curves["objective_label"] == "Triplet") & (curves["direction"] == line.direction)]
    line_rows = line_rows[(line_rows["convention"] == "corrected") & (line_rows["eps"] == chart.x[chart.start])]
    assert len(line_rows) == 2 and line.std is not None
    assert line.y[chart.start] == pytest.approx(line_rows["mean"].mean())
    assert line.std[chart.start] == pytest.approx(line_rows["mean"].std())
    assert all(np.diff(line.y) <= 1e-9)  # a higher threshold never counts more


def test_the_temperature_slider_has_every_temperature_of_the_study(report_data: ReportData) -> None:
    chart, rows = slider(report_data, temperature), report_data.results.what_if
    assert chart.x == (0.05, 0.125, 0.2) and chart.x[chart.start] == 0.125  # nearest to 0.1 on the scale of logarithms
    line = chart.panels["VSE++"][0]
    line_rows = rows[(rows["objective_label"] == "NT-Xent") & (rows["direction"] == line.direction)]
    line_rows = line_rows[line_rows["statistic"] == "N_eff"]
    tau = line_rows["objective"].str.extract(r"tau=([\d.]+)")[0].astype(float)
    expected = line_rows.assign(tau=tau).groupby("tau")["mean"].mean()
    assert line.y == pytest.approx(expected.tolist())


def test_a_run_alone_has_no_deviation(one_run: ReportData) -> None:
    for chapter in (threshold, temperature):
        assert all(line.std is None for line in slider(one_run, chapter).panels["VSE++"])


@pytest.mark.parametrize("chapter", [threshold, temperature])
def test_without_rows_there_is_no_section(report_data: ReportData, chapter: object) -> None:
    for empty in (pd.DataFrame(), report_data.results.curves[:0]):
        bare = replace(report_data, results=replace(report_data.results, curves=empty, what_if=empty))
        assert chapter.build(bare) == []  # type: ignore[attr-defined]


def test_the_field_is_the_weight_of_what_was_trained(report_data: ReportData) -> None:
    (section,) = fields.build(report_data)
    field = section.items[0]
    assert isinstance(field, HeatmapChart) and field.choices == ["NT-Xent", "Triplet"]
    expected = weight_field("triplet").set_index(["s_pos", "s_neg"])["w_neg"]
    shown = field.frame[field.frame["objective"] == "Triplet"].set_index(["s_pos", "s_neg"])["w_neg"]
    assert len(shown) == 101 * 100  # rows lie between the columns, off the edge s_neg = s_pos - margin
    assert (shown == expected.loc[shown.index]).all()
    assert list(field.clouds) == ["NT-Xent, VSE++", "Triplet, VSE++"]
    queries = report_data.results.per_query
    similarities = queries[
        (queries["probe"] == "similarity") & (queries["objective_label"] == "Triplet") & (queries["seed"] == 0)
    ]
    assert set(field.clouds["Triplet, VSE++"]["s_pos"]) <= set(similarities["positive"])


def test_each_grid_is_thinned_by_its_own_steps(report_data: ReportData) -> None:
    frame = pd.concat([weight_field("ntxent"), weight_field("lifted_structure")], ignore_index=True)
    (section,) = fields.build(replace(report_data, diagrams=Diagrams(frame)))
    field = section.items[0]
    assert isinstance(field, HeatmapChart)
    assert field.frame.groupby("objective", sort=False).size().tolist() == [101 * 100, 41 * 41]


def test_without_single_queries_there_are_no_clouds(report_data: ReportData) -> None:
    bare = replace(report_data, results=replace(report_data.results, per_query=pd.DataFrame(columns=["run"])))
    (section,) = fields.build(bare)
    assert isinstance(section.items[0], HeatmapChart) and section.items[0].clouds == {}
    assert fields.build(replace(report_data, diagrams=Diagrams())) == []


def test_a_curve_that_a_run_lacks_is_nan_and_not_zero(report_data: ReportData) -> None:
    curves = report_data.results.curves.copy()
    curves.loc[curves["objective_label"] == "Triplet", "mean"] = math.nan
    chart = slider(replace(report_data, results=replace(report_data.results, curves=curves)), threshold)
    for line in chart.panels["VSE++"]:
        assert all(map(math.isnan, line.y)) == (line.label == "Triplet")


def test_hubness_is_drawn_for_the_first_seed_of_every_loss(report_data: ReportData) -> None:
    (section,) = geometry.build(report_data)
    names = [item.name for item in section.all_items]
    assert "hubness-1" in names
    picture = next(item for item in section.all_items if item.name == "hubness-1")
    assert isinstance(picture, Picture) and "batches of 128 pairs" in picture.caption
    (ax,) = picture.figure.axes  # type: ignore[attr-defined]
    labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]  # type: ignore[attr-defined]
    assert {label.partition(",")[0] for label in labels} == set(report_data.results.rows["objective_label"])
    assert ax.get_ylabel() == "share of queries"
