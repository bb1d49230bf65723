"""Do the tables of probes agree with the summary rows?"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import probes, statistics
from lossscope.tables.cells import decimals
from tests.each import each


def _rows(probe, objective, values, **more):
    usual = {
        "source": "run.pt",
        "std": 0.5,
        "n": 4,
        "n_defined": 4,
        "unit": "samples",
        "convention": None,
        "eps": math.nan,
    }
    usual |= {"batch_size": 128, "sampling": "pairs", "seed": 0, "probe": probe, "objective": objective}
    sides = (("i2t", 0), ("t2i", 1))
    return [
        {**usual, "direction": d, "statistic": k, "mean": v + add, **more}
        for d, add in sides
        for k, v in values.items()
    ]


def _frame(*parts):
    return pd.DataFrame([row for part in parts for row in part])


def _texts(table):
    return [[cell.plain() for cell in row] for row in table.rows]


def test_probes_without_an_objective_come_first_and_have_no_heading():
    frame = _frame(
        _rows("cocos", "ntxent:tau=0.1", {"C_neg": 3.0}, eps=0.01, convention="corrected"),
        _rows("similarity", None, {"s_pos": 0.5, "s_neg": 0.001}, unit="similarity", std=math.nan),
    )
    without, weighing = probes.build(frame)
    assert without.columns == (("", "probe"), ("", "statistic"), ("", "unit"), ("", "i2t"), ("", "t2i"))
    assert _texts(without) == [
        ["similarity", "s_pos", "similarity", "0.500", "1.500"],
        ["similarity", "s_neg", "similarity", "0.0010", "1.001"],
    ]
    assert weighing.columns[3:5] == (("ntxent:tau=0.1", "i2t"), ("ntxent:tau=0.1", "t2i"))
    assert _texts(weighing) == [["cocos", "C_neg", "samples", "3.00 ± 0.50", "4.00 ± 0.50"]]
    assert "eps" not in without.caption and "eps 0.01" in weighing.caption


def test_objectives_stand_side_by_side_three_at_a_time():
    parts = [_rows("cocos", f"ntxent:tau={k}", {"C_neg": k}) for k in range(1, 6)]
    tables = probes.build(_frame(*parts))
    assert [len(table.columns) - 3 for table in tables] == [6, 4]
    assert [table.name for table in tables] == ["probes-1", "probes-2"]
    assert _texts(tables[1])[0][3] == "4.00 ± 0.50"


def test_statistics_that_an_objective_does_not_have_are_dashes():
    frame = _frame(
        _rows("cocos", "triplet", {"C_q": 1.0}),
        _rows("tangent", "triplet", {"radial": 1.0}),
        _rows("cocos", "ntxent", {"C_neg": 2.0}),
    )
    assert _texts(probes.build(frame)[0]) == [
        ["cocos", "C_q", "samples", "1.00 ± 0.50", "2.00 ± 0.50", "–", "–"],
        ["cocos", "C_neg", "samples", "–", "–", "2.00 ± 0.50", "3.00 ± 0.50"],
        ["tangent", "radial", "samples", "1.00 ± 0.50", "2.00 ± 0.50", "–", "–"],
    ]


def test_two_thresholds_are_distinguished_and_statistics_of_one_name_stay():
    frame = _frame(
        *(_rows("cocos", "ntxent", {"W_neg": e}, eps=e, convention="corrected") for e in (0.01, 0.1)),
        _rows("weight_mass", "ntxent", {"W_neg": 7.0}, eps=0.01, convention="corrected"),
        _rows("tangent", "ntxent", {"tangent": 5.0}),
    )
    (table,) = probes.build(frame)
    assert [row[0] for row in _texts(table)] == [
        "cocos, eps 0.01",
        "cocos, eps 0.1",
        "weight_mass, eps 0.01",
        "tangent",
    ]
    assert "eps" not in table.caption and "convention corrected" in table.caption
    assert "mean ± sd over 4 batches" in table.caption


def test_sources_and_samplings_have_tables_of_their_own():
    frame = _frame(
        _rows("similarity", None, {"s_pos": 1.0}, source="a"),
        _rows("similarity", None, {"s_pos": 2.0}, source="b"),
        _rows("similarity", None, {"s_pos": 3.0}, source="b", sampling="images"),
    )
    assert [table.rows[0][3].mean for table in probes.build(frame)] == [1, 2, 3]


def test_seeds_are_averaged():
    frame = _frame(*(_rows("similarity", None, {"s_pos": s}, seed=s) for s in (1, 3)))
    (table,) = probes.build(frame)
    assert _texts(table)[0][3] == "2.00 ± 1.41"
    assert "seeds 1, 3" in table.caption


def test_skipped_is_shown_where_a_batch_was_skipped():
    never = _frame(_rows("cocos", "triplet", {"C_q": 1.0, "skipped": -0.5}))
    sometimes = _frame(_rows("cocos", "triplet", {"C_q": 1.0, "skipped": 2.0}))
    never.loc[never["statistic"] == "skipped", "mean"] = 0.0
    assert [len(probes.build(frame)[0].rows) for frame in (never, sometimes)] == [1, 2]


@each("write", ["to_text", "to_markdown", "to_latex", "to_html", "to_csv"])
def test_it_is_written_in_every_format(write):
    frame = _frame(_rows("similarity", None, {"s_pos": 0.5}), _rows("cocos", "goal:pair=sig", {"C_neg": 2.0}))
    for table, word in zip(probes.build(frame), ("s_pos", "C_neg"), strict=True):
        written = getattr(table, write)()
        assert any(
            name in written for name in (word, word.replace("_", r"\_"), word.replace("_", r"_{\mathrm{") + "}}")
        )


def test_frames_without_columns_or_rows_are_refused():
    with pytest.raises(InputError, match="Add probe"):
        probes.build(_frame(_rows("cocos", "triplet", {"C_q": 1.0})).drop(columns="probe"))
    with pytest.raises(InputError, match="must have rows; got none"):
        probes.build(_frame(_rows("cocos", "triplet", {"C_q": 1.0})).iloc[:0])


def test_one_probe_without_an_objective_has_a_line_per_direction():
    (table,) = statistics.build(_frame(_rows("similarity", None, {"s_pos": 0.5, "margin": 0.1})), "similarity")
    assert table.headings == ("direction", "s_pos", "margin")
    assert [row[0].text for row in table.rows] == ["i2t", "t2i"]


def test_directions_of_an_objective_stand_together():
    frame = _frame(_rows("cocos", "triplet", {"C_q": 1.0}), _rows("cocos", "triplet_sh", {"C_q": 2.0}))
    (table,) = statistics.build(frame.sort_values("direction", kind="stable"))
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        (name, direction) for name in ("triplet", "triplet_sh") for direction in ("i2t", "t2i")
    ]


@each("unit, value, digits", [
    ("samples", 3.2, 2), ("%", 40.0, 1), ("weight", 0.5, 3), ("1", 0.0042, 4), ("1", 0.0, 3), ("1", None, 3),
    ("1", math.nan, 3), ("1", 3e-12, 8), ("samples", 0.02, 3), ("rank", 2.0, 1), ("norm", 1184.6, 1),
    ("norm", -99.9, 3),
])  # fmt: skip
def test_decimals_are_those_of_the_unit_and_more_for_what_would_be_zero(unit, value, digits):
    assert decimals(unit, value) == digits


def test_losses_of_other_scales_keep_their_decimals():
    small, large = (
        _rows("cocos", name, {"W_neg": mean}, unit="weight") for name, mean in (("vlc", 0.5), ("circle", 270.0))
    )
    (table,) = statistics.build(_frame(small, large))
    assert [row[2].plain() for row in table.rows] == ["0.500 ± 0.500", "1.500 ± 0.500", "270.0 ± 0.5", "271.0 ± 0.5"]
