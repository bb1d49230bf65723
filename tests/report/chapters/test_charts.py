"""Do dials and fields tell the very means over runs that the frames hold?"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.weight_fields import weight_field
from lossscope.report.chapters import fields, geometry, temperature, threshold
from lossscope.report.chapters.base import ReportData
from lossscope.report.interactive import HeatmapChart, SliderChart
from lossscope.report.page import Picture


def dial(material: ReportData, chapter: object) -> SliderChart:
    (section,) = chapter.build(material)  # type: ignore[attr-defined]
    (found,) = [item for item in section.items if isinstance(item, SliderChart)]
    return found


def test_the_eps_dial_is_the_mean_curve_over_seeds(told: ReportData) -> None:
    found, curves = dial(told, threshold), told.results.curves
    assert list(found.panels) == ["VSE++"] and [line.label for line in found.panels["VSE++"]] == [
        "NT-Xent", "NT-Xent", "Triplet", "Triplet"
    ]  # fmt: skip
    assert found.x[found.start] == pytest.approx(0.01, rel=0.2)
    line = found.panels["VSE++"][3]
    own = curves[(curves["objective_label"] == "Triplet") & (curves["direction"] == line.direction)]
    own = own[(own["convention"] == "corrected") & (own["eps"] == found.x[found.start])]
    assert len(own) == 2 and line.std is not None
    assert line.y[found.start] == pytest.approx(own["mean"].mean())
    assert line.std[found.start] == pytest.approx(own["mean"].std())
    assert all(np.diff(line.y) <= 1e-9)  # a higher threshold never counts more


def test_the_temperature_dial_is_of_every_temperature_that_was_asked(told: ReportData) -> None:
    found, rows = dial(told, temperature), told.results.what_if
    assert found.x == (0.05, 0.125, 0.2) and found.x[found.start] == 0.125  # nearest to 0.1 on the scale of logarithms
    line = found.panels["VSE++"][0]
    own = rows[
        (rows["objective_label"] == "NT-Xent") & (rows["direction"] == line.direction) & (rows["statistic"] == "N_eff")
    ]
    expected = (
        own.assign(tau=own["objective"].str.extract(r"tau=([\d.]+)")[0].astype(float)).groupby("tau")["mean"].mean()
    )
    assert line.y == pytest.approx(expected.tolist())


@pytest.mark.slow
def test_a_run_alone_has_no_deviation(one: ReportData) -> None:
    for chapter in (threshold, temperature):
        assert all(line.std is None for line in dial(one, chapter).panels["VSE++"])


@pytest.mark.parametrize("chapter", [threshold, temperature])
def test_nothing_asked_is_no_section(told: ReportData, chapter: object) -> None:
    for empty in (pd.DataFrame(), told.results.curves[:0]):
        bare = replace(told, results=replace(told.results, curves=empty, what_if=empty))
        assert chapter.build(bare) == []  # type: ignore[attr-defined]


def test_the_field_is_the_weight_of_what_was_trained(told: ReportData) -> None:
    (section,) = fields.build(told)
    field = section.items[0]
    assert isinstance(field, HeatmapChart) and field.choices == ["NT-Xent", "Triplet"]
    expected = weight_field("triplet").set_index(["s_pos", "s_neg"])["w_neg"]
    shown = field.frame[field.frame["objective"] == "Triplet"].set_index(["s_pos", "s_neg"])["w_neg"]
    assert len(shown) == 101 * 101
    assert (shown == expected.loc[shown.index]).all()
    assert list(field.clouds) == ["NT-Xent, VSE++", "Triplet, VSE++"]
    singles = told.results.singles
    own = singles[
        (singles["probe"] == "similarity") & (singles["objective_label"] == "Triplet") & (singles["seed"] == 0)
    ]
    assert set(field.clouds["Triplet, VSE++"]["s_pos"]) <= set(own["positive"])


def test_grids_of_other_steps_are_thinned_each_by_its_own(told: ReportData) -> None:
    frame = pd.concat([weight_field("ntxent"), weight_field("lifted_structure")], ignore_index=True)
    (section,) = fields.build(replace(told, fields=frame))
    field = section.items[0]
    assert isinstance(field, HeatmapChart)
    assert field.frame.groupby("objective", sort=False).size().tolist() == [101 * 101, 41 * 41]


def test_without_single_queries_there_are_no_clouds(told: ReportData) -> None:
    bare = replace(told, results=replace(told.results, singles=pd.DataFrame(columns=["run"])))
    (section,) = fields.build(bare)
    assert isinstance(section.items[0], HeatmapChart) and section.items[0].clouds == {}
    assert fields.build(replace(told, fields=pd.DataFrame())) == []


def test_a_curve_that_a_run_lacks_is_a_hole_not_a_zero(told: ReportData) -> None:
    curves = told.results.curves.copy()
    curves.loc[curves["objective_label"] == "Triplet", "mean"] = math.nan
    found = dial(replace(told, results=replace(told.results, curves=curves)), threshold)
    for line in found.panels["VSE++"]:
        assert all(map(math.isnan, line.y)) == (line.label == "Triplet")


@pytest.mark.slow
def test_hubness_is_drawn_of_the_first_seed_of_every_loss(told: ReportData) -> None:
    (section,) = geometry.build(told)
    names = [item.name for item in section.everything]
    assert "hubness-1" in names
    picture = next(item for item in section.everything if item.name == "hubness-1")
    assert isinstance(picture, Picture) and "batches of 128 pairs" in picture.caption
    (ax,) = picture.figure.axes  # type: ignore[attr-defined]
    labels = [text.get_text() for text in picture.figure.legends[0].get_texts()]  # type: ignore[attr-defined]
    assert {label.partition(",")[0] for label in labels} == set(told.results.rows["objective_label"])
    assert ax.get_ylabel() == "share of queries"
