"""Do the tables of the page say what the rows say, and name what is missing?"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.report.chapters import comparison, contributors, geometry, retrieval, runs, training
from lossscope.report.chapters.base import ReportData
from lossscope.report.page import Picture, Section
from lossscope.report.papers import papers
from lossscope.tables.base import Table

Changed = Callable[[Callable[[pd.DataFrame], pd.DataFrame]], ReportData]


def tables(sections: object) -> dict[str, Table]:
    found: list[Section] = list(sections)  # type: ignore[call-overload]
    return {item.name: item for section in found for item in section.everything if isinstance(item, Table)}


def column(table: Table, heading: str) -> list[float | None]:
    return [row[table.headings.index(heading)].mean for row in table.rows]


def test_recall_is_the_mean_over_seeds(told: ReportData) -> None:
    table, rows = tables(retrieval.build(told))["retrieval"], told.results.rows
    rsum = rows[rows["statistic"] == "rsum"].groupby("objective_label", sort=False)["mean"].mean()
    assert column(table, "rsum") == pytest.approx(rsum.tolist())
    assert "n = 2 runs (seeds)" in table.caption


def test_a_seed_that_is_missing_is_told(changed: Changed) -> None:
    """One loss has a seed less than the other: its mean is of other trainings, which must be seen."""
    material = changed(lambda rows: rows[~((rows["objective_label"] == "Triplet") & (rows["seed"] == 1))])
    table = tables(retrieval.build(material))["retrieval"]
    assert "n = 1 to 2 runs" in table.caption
    assert any("seed 1 of scenes, VSE++, Triplet missing: n = 1" in note for note in table.notes)


def test_the_tables_of_a_paper_take_the_place_of_the_plain_ones(told: ReportData, changed: Changed) -> None:
    material = changed(lambda rows: rows.assign(dataset="flickr30k", method="VSE++ (ResNet50, frozen)"))
    material = replace(material, results=replace(material.results, paper="bleeker2022"))
    found = tables(retrieval.build(material))
    assert found and all(name.startswith("bleeker2022_1") for name in found)
    counted = tables(contributors.build(material))
    assert {name.partition("-")[0] for name in counted} == {"bleeker2022_2", "bleeker2022_3"}
    assert list(papers(told, counted=False)) == []  # of no paper


def test_counts_stand_in_the_layout_of_the_paper(told: ReportData) -> None:
    found = tables(contributors.build(told))
    assert set(found) == {"cocos_triplet", "cocos_softmax"}
    rows = told.results.rows
    own = rows[
        (rows["probe"] == "cocos") & (rows["objective_label"] == "Triplet") & (rows["convention"] == "corrected")
    ]
    expected = set(own.loc[own["statistic"] == "C_q", "mean"].dropna())
    assert len(expected) == 4 and expected <= {cell.mean for row in found["cocos_triplet"].rows for cell in row}


def test_weight_is_drawn_as_means_over_seeds(told: ReportData) -> None:
    (section,) = contributors.build(told)
    (picture,) = [item for item in section.everything if isinstance(item, Picture)]
    assert picture.name == "weight_mass-1" and picture.caption.startswith("VSE++. ")
    assert "Triplet i2t" in picture.alt and "NT-Xent t2i" in picture.alt


def test_tests_of_the_sum_are_shown_and_those_of_each_recall_folded(told: ReportData) -> None:
    (section,) = comparison.build(told)
    assert [item.name for item in section.items] == ["comparison"]
    assert [item.name for item in section.more] == ["comparison_recalls"]
    rsum = told.comparisons[told.comparisons["statistic"] == "rsum"]
    assert column(tables([section])["comparison"], "difference") == rsum["difference"].tolist()
    assert len(tables([section])["comparison_recalls"].rows) == 6


def test_geometry_is_the_mean_over_seeds_and_a_gap_where_nothing_is_known(told: ReportData, changed: Changed) -> None:
    table, rows = tables(geometry.build(told))["geometry"], told.results.rows
    own = rows[(rows["statistic"] == "s_pos") & (rows["objective_label"] == "Triplet") & (rows["direction"] == "i2t")][
        "mean"
    ]
    (line,) = [row for row in table.rows if (row[1].text, row[2].text) == ("Triplet", "i2t")]
    cell = line[table.headings.index("s_pos")]
    assert cell.mean == pytest.approx(own.mean()) and cell.std == pytest.approx(own.std())

    def gone(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[rows["statistic"] == "s_pos", "mean"] = math.nan
        return rows

    table = tables(geometry.build(changed(gone)))["geometry"]
    assert all(row[table.headings.index("s_pos")].plain() == "–" for row in table.rows)


def test_every_run_is_listed_with_the_print_of_its_data(told: ReportData) -> None:
    table, rows = tables(runs.build(told))["runs"], told.results.rows
    assert [row[0].text for row in table.rows] == told.results.cells["run"].tolist()
    prints = {str(one)[:12] for one in rows["data_fingerprint"].unique()}
    assert {row[table.headings.index("fingerprint")].text for row in table.rows} == prints
    assert "gaps" not in tables(runs.build(told))


def test_cells_without_numbers_are_listed_with_their_reason(told: ReportData) -> None:
    cells = told.results.cells.copy()
    cells.loc[0, ["status", "reason"]] = ["failed", "no memory & <left>"]
    rows = told.results.rows[told.results.rows["run"] != cells["run"].iloc[0]]
    found = tables(runs.build(replace(told, results=replace(told.results, cells=cells, rows=rows))))
    (line,) = found["gaps"].rows
    assert [cell.text for cell in line] == [cells["run"].iloc[0], "failed", "no memory & <left>"]
    assert len(found["runs"].rows) == 3 and found["gaps"].caption.startswith("1 cell")


def test_training_is_drawn_for_each_model(told: ReportData) -> None:
    (section,) = training.build(told)
    assert [item.name for item in section.items] == ["training-1", "separation-1"]
    assert "seed 0" in section.items[1].caption


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("data_fingerprint", "data_fingerprint of scenes must be one"),
        ("n", "number of queries of scenes, i2t, .* must be one; got .* Measure all runs on the same data"),
    ],
)
def test_recall_on_other_data_is_no_seed(changed: Changed, column: str, message: str) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[rows["seed"] == 1, column] = "another" if column == "data_fingerprint" else 7
        return rows

    with pytest.raises(InputError, match=message):
        retrieval.build(changed(other))
