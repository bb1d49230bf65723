"""Is every run one point of count against rsum, counted per query at one eps, and nothing said without two losses?"""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.report.chapters import count_recall
from lossscope.report.chapters._counts import counts
from lossscope.report.chapters.base import ReportData
from lossscope.report.page import Picture
from lossscope.stats.rank_association import association
from lossscope.tables.base import Table

Changed = Callable[[Callable[[pd.DataFrame], pd.DataFrame]], ReportData]


def test_a_run_is_a_row_of_each_direction(told: ReportData) -> None:
    frame, rows = counts(told), told.results.rows
    assert len(frame) == 8 and set(frame["panel"]) == {"VSE++"} and not frame.isna().any().any()
    for one in frame.to_dict("records"):
        own = rows[(rows["run"] == one["run"]) & (rows["statistic"].isin(["rsum", "C_q_all", "C_neg"]))]
        assert one["rsum"] == own.loc[own["statistic"] == "rsum", "mean"].item()
        statistic = "C_q_all" if one["label"] == "Triplet" else "C_neg"
        per_query = own[(own["convention"] == "corrected") & (own["direction"] == one["direction"])]
        assert one["count"] == per_query.loc[per_query["statistic"] == statistic, "mean"].item()


def test_the_section_has_the_picture_the_interval_and_the_numbers(told: ReportData) -> None:
    (section,) = count_recall.build(told)
    picture, found, numbers = section.items
    assert isinstance(picture, Picture) and isinstance(found, Table) and isinstance(numbers, Table)
    expected = association(counts(told))
    assert [row[4].mean for row in found.rows] == expected["tau"].tolist()
    assert [row[7].text for row in found.rows] == expected["verdict"].tolist()
    frame = counts(told)
    triplet = frame[(frame["label"] == "Triplet") & (frame["direction"] == "i2t")]
    (line,) = [row for row in numbers.rows if (row[1].text, row[2].text) == ("Triplet", "i2t")]
    assert line[3].mean == 2 and line[4].mean == pytest.approx(triplet["count"].mean())
    assert line[4].std == pytest.approx(triplet["count"].std()) and line[5].mean == pytest.approx(
        triplet["rsum"].mean()
    )
    assert "eps 0.01" in numbers.caption
    share = told.results.rows.set_index("statistic").loc["true_negatives", "mean"].iloc[0]
    assert f"scenes: {share:.3g} %" in section.text


def test_one_loss_is_compared_with_nothing(one: ReportData) -> None:
    assert count_recall.build(one) == []


@pytest.mark.parametrize("statistic", ["rsum", "C_neg"])
def test_a_loss_without_numbers_is_no_second_loss(changed: Changed, statistic: str) -> None:
    """The picture needs marks of two losses; where one has none there is nothing to compare, and no crash."""

    def gone(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[(rows["statistic"] == statistic) & (rows["objective_label"] == "NT-Xent"), "mean"] = math.nan
        return rows

    assert count_recall.build(changed(gone)) == []


def test_a_run_without_its_number_is_left_out_and_counted_so(changed: Changed) -> None:
    def gone(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[
            (rows["statistic"] == "rsum") & (rows["objective_label"] == "NT-Xent") & (rows["seed"] == 1), "mean"
        ] = math.nan
        return rows

    (section,) = count_recall.build(changed(gone))
    _, found, numbers = section.items
    assert isinstance(found, Table) and isinstance(numbers, Table)
    assert [row[3].mean for row in found.rows] == [3, 3]
    lines = {row[1].text: row for row in numbers.rows}
    assert lines["NT-Xent"][3].mean == 1 and lines["NT-Xent"][5].std is None and lines["Triplet"][3].mean == 2


def test_counts_at_two_thresholds_are_not_drawn_as_one(changed: Changed) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[(rows["probe"] == "cocos") & (rows["objective_label"] == "Triplet"), "eps"] = 0.1
        return rows

    with pytest.raises(InputError, match=r"must be counted with one eps; got 0\.01 \(.*nt-xent.*0\.1 \(.*triplet"):
        counts(changed(other))


def test_counts_on_other_data_of_the_same_name_are_not_drawn_as_one(changed: Changed) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[rows["objective_label"] == "Triplet", "data_fingerprint"] = "another"
        return rows

    with pytest.raises(InputError, match=r"data_fingerprint of 'scenes' must be one; got .*another"):
        counts(changed(other))
