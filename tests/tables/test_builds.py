"""Do the tables of counts and of retrieval agree with the summary rows?"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import cocos_smoothap, cocos_softmax, cocos_triplet, retrieval
from tests.each import each


def _row(objective, direction, probe, statistic, mean, **more):
    defaults = {"source": "run.pt", "std": None, "n": 10, "n_defined": 10, "unit": "", "convention": "corrected"}
    defaults |= {"eps": 0.01, "batch_size": 128, "sampling": "pairs", "seed": 0}
    row = {"objective": objective, "direction": direction, "probe": probe, "statistic": statistic, "mean": mean}
    return {**defaults, **row, **more}


def _recall(objective, level, **more):
    more = {"convention": None, "eps": None, "batch_size": None, "sampling": None, **more}
    names = ("R@1", "R@5", "R@10", "mAP@5", "medr")
    rows = [_row(objective, side, "recall", name, level, **more) for side in ("i2t", "t2i") for name in names]
    return [*rows, _row(objective, "both", "recall", "rsum", 6 * level, **more)]


def _cocos(objective, values, **more):
    sides = ("i2t", "t2i")
    return [_row(objective, side, "cocos", k, v, std=0.5, **more) for side in sides for k, v in values.items()]


def _cell(table, row, heading):
    return table.rows[row][table.headings.index(heading)]


def test_retrieval_averages_seeds():
    rows = [row for seed, level in ((0, 40.0), (1, 44.0)) for row in _recall("ntxent:tau=0.1", level, seed=seed)]
    table = retrieval.build(pd.DataFrame(rows + _recall("triplet", 30.0)))
    assert [row[0].text for row in table.rows] == ["ntxent:tau=0.1", "triplet"]
    cell = _cell(table, 0, "i2t R@1")
    assert (cell.mean, cell.best) == (42.0, True)
    assert cell.std == pytest.approx(math.sqrt(8))  # of 40 and 44, divisor n - 1
    assert _cell(table, 1, "rsum").plain() == "180.0"
    assert _cell(table, 1, "i2t medr").best
    assert "n = 1 to 2 runs (seeds)" in table.caption
    assert table.headings[1:6] == ("i2t R@1", "i2t R@5", "i2t R@10", "i2t mAP@5", "i2t medr")


def test_retrieval_explains_the_columns_that_it_has_and_says_where_the_mean_rank_is():
    """The note named meanr, which is no column, without an explanation."""
    table = retrieval.build(pd.DataFrame(_recall("triplet", 30.0)))
    (note,) = table.notes
    assert "medr: median rank" in note and "i2t medr" in table.headings
    assert "--format csv` also gives meanr, the mean rank, from 1, lower is better" in note
    assert not [heading for heading in table.headings if "meanr" in heading]


def test_retrieval_has_a_row_per_source_unless_averaged():
    frame = pd.DataFrame(_recall("triplet", 30.0, source="a") + _recall("triplet", 32.0, source="b", seed=1))
    assert [row[0].text for row in retrieval.build(frame).rows] == ["a", "b"]
    (row,) = retrieval.build(frame, by=("objective",)).rows
    assert row[1].plain() == "31.0 ± 1.4"


def test_the_same_row_twice_is_one_measurement():
    rows = _recall("triplet", 30.0)
    assert _cell(retrieval.build(pd.DataFrame(rows + rows)), 0, "rsum").plain() == "180.0"


def test_missing_statistics_are_dashes():
    rows = [row for row in _recall("triplet", 30.0) if row["statistic"] != "R@5"] + _recall("vlc", 31.0)
    assert _cell(retrieval.build(pd.DataFrame(rows)), 0, "t2i R@5").plain() == "–"


def test_triplet_table_shows_conventions_side_by_side():
    values = {"C_q": 6.79, "C_B": 768.92, "C_0": 14.78, "N_eff": 5.0}
    rows = _cocos("triplet:margin=0.2", values) + _cocos("triplet:margin=0.2", values, convention="released")
    table = cocos_triplet.build(pd.DataFrame(rows + _cocos("ntxent", {"C_neg": 1.0})))
    assert [row[1].text for row in table.rows] == ["corrected", "released"]
    assert table.headings[2:5] == ("i2t C_q", "i2t C_B", "i2t C_0")
    assert _cell(table, 0, "t2i C_B").plain() == "768.92 ± 0.50"
    assert any("summed per image" in note for note in table.notes)
    for text in ("eps 0.01", "batch size 128", "sampling pairs", "seed 0", "mean ± sd over 10 batches"):
        assert text in table.caption
    assert any(line.startswith("C_q: ") and "queries with any" in line for line in table.legend)


def test_no_footnote_without_its_subject():
    table = cocos_triplet.build(pd.DataFrame(_cocos("triplet_sh", {"C_q": 1.0}, n_defined=8)))
    assert not any("summed per image" in note for note in table.notes)
    assert any("i2t 8 of 10" in note for note in table.notes)
    assert table.headings == ("objective", "i2t C_q", "t2i C_q")


def test_several_eps_get_a_column():
    rows = [row for eps in (0.01, 0.05) for row in _cocos("ntxent", {"C_neg": 9.88, "W_neg": 0.42}, eps=eps)]
    table = cocos_softmax.build(pd.DataFrame(rows))
    assert [row[1].text for row in table.rows] == ["0.01", "0.05"]
    assert _cell(table, 0, "i2t W_neg").plain() == "0.420 ± 0.500"
    assert "eps" not in table.caption


def test_softmax_takes_every_objective_that_counts_negatives():
    rows = _cocos("unified:gamma=60", {"C_neg": 2.0}) + _cocos("./mine.py:Loss", {"C_neg": 1.0})
    table = cocos_softmax.build(pd.DataFrame(rows + _cocos("triplet", {"C_q": 1.0})))
    assert [row[0].text for row in table.rows] == ["unified:gamma=60", "./mine.py:Loss"]


def test_smoothap_explains_the_released_rows():
    rows = [
        row for name in ("released", "text") for row in _cocos("smoothap", {"C_q": 1.3, "C_0": 636.7}, convention=name)
    ]
    notes = " ".join(cocos_smoothap.build(pd.DataFrame(rows)).notes)
    assert "wrong rows" in notes
    assert "1/tau" in notes


def test_a_single_batch_has_no_deviation():
    table = cocos_smoothap.build(pd.DataFrame([_row("smoothap", "i2t", "cocos", "C_q", 1.5, std=math.nan, n=1)]))
    assert _cell(table, 0, "i2t C_q").plain() == "1.50"
    assert "one measurement" in table.caption


@each("build", [retrieval.build, cocos_triplet.build, cocos_softmax.build, cocos_smoothap.build])
def test_missing_columns_and_rows_are_named(build):
    frame = pd.DataFrame(_recall("triplet", 1.0))
    with pytest.raises(InputError, match="Add probe"):
        build(frame.drop(columns="probe"))
    with pytest.raises(InputError, match=r"Run `lossscope"):
        build(frame.assign(probe="tangent"))


def test_other_objectives_are_named():
    with pytest.raises(InputError, match="must have rows of smoothap; got ntxent"):
        cocos_smoothap.build(pd.DataFrame(_cocos("ntxent", {"C_neg": 1.0})))
    with pytest.raises(InputError, match="statistic C_neg; got C_q"):
        cocos_softmax.build(pd.DataFrame(_cocos("triplet", {"C_q": 1.0})))


def test_the_best_is_marked_within_one_data_set_and_model():
    levels = (("a", "x", 60.0), ("a", "y", 50.0), ("b", "x", 5.0), ("b", "y", 6.0), ("c", "x", 1.0))
    rows = [
        row
        for data, label, level in levels
        for row in _recall(label, level, data=data, encoder="VSE++", objective_label=label)
    ]
    table = retrieval.build(pd.DataFrame(rows), by=("data", "encoder", "objective_label"))
    assert [_cell(table, row, "rsum").best for row in range(5)] == [True, False, False, True, False]
    assert not any(_cell(table, row, "rsum").second for row in range(5)), "of two the second is the loser"
