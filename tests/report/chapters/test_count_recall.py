"""Is every run one point of count against rsum, counted per query at one eps, where there are two losses?"""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.report.chapters import count_recall
from lossscope.report.chapters._counts import counts_and_score
from lossscope.report.chapters.base import ReportData
from lossscope.report.sections import Picture
from lossscope.stats.rank_association import association
from lossscope.tables.base import Table

WithRows = Callable[[Callable[[pd.DataFrame], pd.DataFrame]], ReportData]


def test_a_run_is_one_row_per_direction(report_data: ReportData) -> None:
    frame, rows = counts_and_score(report_data), report_data.results.rows
    assert len(frame) == 8 and set(frame["panel"]) == {"VSE++"} and not frame.isna().any().any()
    for row in frame.to_dict("records"):
        run_rows = rows[(rows["run"] == row["run"]) & (rows["statistic"].isin(["rsum", "C_q_all", "C_neg"]))]
        assert row["rsum"] == run_rows.loc[run_rows["statistic"] == "rsum", "mean"].item()
        statistic = "C_q_all" if row["label"] == "Triplet" else "C_neg"
        per_query = run_rows[(run_rows["convention"] == "corrected") & (run_rows["direction"] == row["direction"])]
        assert row["count"] == per_query.loc[per_query["statistic"] == statistic, "mean"].item()


def test_the_section_has_the_picture_the_interval_and_the_numbers(report_data: ReportData) -> None:
    (section,) = count_recall.build(report_data)
    picture, taus, numbers = section.items
    assert isinstance(picture, Picture) and isinstance(taus, Table) and isinstance(numbers, Table)
    expected = association(counts_and_score(report_data))
    assert [row[7].text for row in taus.rows] == expected["verdict"].tolist() == ["too few runs to tell"] * 2
    assert "Kendall's tau" in taus.headings and "tau" not in taus.headings
    frame = counts_and_score(report_data)
    triplet = frame[(frame["label"] == "Triplet") & (frame["direction"] == "i2t")]
    (line,) = [row for row in numbers.rows if (row[1].text, row[2].text) == ("Triplet", "i2t")]
    assert line[3].mean == 2 and line[4].mean == pytest.approx(triplet["count"].mean())
    assert line[4].std == pytest.approx(triplet["count"].std()) and line[5].mean == pytest.approx(
        triplet["rsum"].mean()
    )
    assert "eps 0.01" in numbers.caption
    share = report_data.results.rows.set_index("statistic").loc["true_negatives", "mean"].iloc[0]
    assert f"scenes: {share:.3g} %" in section.text


def test_kendalls_tau_is_in_the_table_of_three_losses_and_not_of_two(
    report_data: ReportData, with_rows: WithRows
) -> None:
    def add_a_loss(rows: pd.DataFrame) -> pd.DataFrame:
        third = rows[rows["objective_label"] == "NT-Xent"]
        return pd.concat([rows, third.assign(objective_label="InfoNCE", run=third["run"] + "-infonce")])

    for data, losses in ((report_data, 2), (with_rows(add_a_loss), 3)):
        (section,) = count_recall.build(data)
        taus = section.items[1]
        assert isinstance(taus, Table) and [row[2].mean for row in taus.rows] == [losses] * 2
        expected = association(counts_and_score(data))["tau"].tolist()
        assert [row[4].missing for row in taus.rows] == [losses == 2] * 2
        assert losses == 2 or [row[4].mean for row in taus.rows] == expected
        assert ("Of two losses no tau is given" in taus.caption) == (losses == 2)
        assert ("Kendall's tau" in section.text) == (losses == 3)


def test_one_loss_is_compared_with_nothing(one_run: ReportData) -> None:
    assert count_recall.build(one_run) == []


@pytest.mark.parametrize("statistic", ["rsum", "C_neg"])
def test_a_loss_without_numbers_does_not_count_as_a_second_loss(with_rows: WithRows, statistic: str) -> None:
    """The picture needs points of two losses; a loss without points leaves nothing to compare, and no crash."""

    def remove(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[(rows["statistic"] == statistic) & (rows["objective_label"] == "NT-Xent"), "mean"] = math.nan
        return rows

    assert count_recall.build(with_rows(remove)) == []


def test_a_run_without_its_number_is_left_out_and_named(with_rows: WithRows) -> None:
    def remove(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[
            (rows["statistic"] == "rsum") & (rows["objective_label"] == "NT-Xent") & (rows["seed"] == 1), "mean"
        ] = math.nan
        return rows

    (section,) = count_recall.build(with_rows(remove))
    _, taus, numbers = section.items
    assert isinstance(taus, Table) and isinstance(numbers, Table)
    assert [row[3].mean for row in taus.rows] == [3, 3]
    lines = {row[1].text: row for row in numbers.rows}
    assert lines["NT-Xent"][3].mean == 1 and lines["NT-Xent"][5].std is None and lines["Triplet"][3].mean == 2


def test_counts_at_two_thresholds_are_not_drawn_as_one(with_rows: WithRows) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[(rows["probe"] == "cocos") & (rows["objective_label"] == "Triplet"), "eps"] = 0.1
        return rows

    with pytest.raises(InputError, match=r"must have one eps; got 0\.01 \(.*nt-xent.*0\.1 \(.*triplet"):
        counts_and_score(with_rows(other))


def test_counts_on_other_data_of_the_same_name_are_not_drawn_as_one(with_rows: WithRows) -> None:
    def other(rows: pd.DataFrame) -> pd.DataFrame:
        rows.loc[rows["objective_label"] == "Triplet", "data_fingerprint"] = "another"
        return rows

    with pytest.raises(InputError, match=r"data_fingerprint of 'scenes' must be one; got .*another"):
        counts_and_score(with_rows(other))
