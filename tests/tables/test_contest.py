"""Are numbers marked as different from the best where a test says so, and nowhere else?"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import bleeker2022_1, bleeker2022_2
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell, mark_best, mark_best_of_column
from tests.tables.invented import study

BEST = "SmoothAP"  # of the rows of the fixture


def _tests(p: dict[str, float], against: str = BEST, **more: str) -> pd.DataFrame:
    where = {"data": "scenes, ambiguity 0.1", "encoder": "VSE++", "statistic": "rsum", "direction": "both"}
    return pd.DataFrame(
        [
            {**where, "objective_label": label, "baseline": against, "p_holm": value, **more}
            for label, value in p.items()
        ]
    )


def _marks(table: Table, heading: str) -> dict[str | None, str]:
    return {row[0].text: row[table.headings.index(heading)].mark for row in table.rows}


def test_without_tests_there_is_no_mark_and_the_caption_says_so() -> None:
    for table in bleeker2022_1.build(study()):
        assert "No significance test was made." in table.caption
        assert not any("†" in cell.mark for row in table.rows for cell in row)
    assert "test was made" not in bleeker2022_2.build(study())[0].caption  # no loss is better there


def test_what_differs_from_the_best_is_marked() -> None:
    tests = _tests({"Triplet": 0.001, "Triplet SH": 0.049, "NT-Xent": 0.05}, test="images")
    i2t, t2i = bleeker2022_1.build(study(), tests)
    assert _marks(t2i, "rsum ours") == {"Triplet": "†", "Triplet SH": "†", "NT-Xent": "", BEST: ""}
    assert not any(_marks(t2i, "rsum published").values()) and not any(_marks(t2i, "t2i R@1 ours").values())
    said = "Differs from the best of its block: † by paired permutation test over images (tested: rsum; Holm correction"
    assert said in t2i.caption and "p < 0.05" in t2i.caption
    assert "No significance test of these numbers was made." in i2t.caption


def test_each_kind_of_test_has_its_sign() -> None:
    both = [
        _tests({"Triplet": 0.001, "NT-Xent": 0.2}, test="images"),
        _tests({"Triplet": 0.01, "NT-Xent": 0.01}, test="seeds"),
    ]
    table = bleeker2022_1.build(study(), pd.concat(both, ignore_index=True))[1]
    assert _marks(table, "rsum ours") == {"Triplet": "†,‡", "Triplet SH": "a", "NT-Xent": "‡", BEST: ""}
    assert "‡ by paired t-test over seeds" in table.caption
    assert table.notes[0] == "[a] Triplet SH was not tested against SmoothAP."


def test_a_test_without_a_p_is_no_test() -> None:
    nan = _tests({"Triplet": math.nan}, test="seeds")
    table = bleeker2022_1.build(
        study(), pd.concat([_tests({"Triplet": 0.001}, test="images"), nan], ignore_index=True)
    )[1]
    assert _marks(table, "rsum ours")["Triplet"] == "†" and "‡" not in table.caption
    alone = bleeker2022_1.build(study(), nan)[1]
    assert "No significance test of these numbers was made." in alone.caption
    assert set(_marks(alone, "rsum ours").values()) <= {"", "a", "b", "c"}


def test_tests_against_another_than_the_best_mark_nothing() -> None:
    table = bleeker2022_1.build(study(), _tests({"Triplet": 0.001}, against="NT-Xent"))[1]
    assert not any("†" in mark for mark in _marks(table, "rsum ours").values())


def test_a_test_may_have_the_best_on_either_side() -> None:
    tests = _tests({BEST: 0.001}, against="Triplet")
    assert _marks(bleeker2022_1.build(study(), tests)[1], "rsum ours")["Triplet"] == "†"
    assert "a test without a name" in bleeker2022_1.build(study(), tests)[1].caption


def test_tests_of_another_block_mark_nothing() -> None:
    tests = _tests({"Triplet": 0.001}).assign(encoder="VSRN")
    assert not any(_marks(bleeker2022_1.build(study(), tests)[1], "rsum ours").values())


def test_tests_without_their_columns_are_refused() -> None:
    with pytest.raises(InputError, match=r"tests must have the columns .*Add p_holm"):
        bleeker2022_1.build(study(), _tests({"Triplet": 0.1}).drop(columns="p_holm"))


def test_blocks_have_winners_of_their_own() -> None:
    rows = [[Cell(mean=1.0)], [Cell(mean=2.0)], [Cell(mean=9.0)], [Cell(mean=8.0)], [Cell(mean=5.0)]]
    marked = mark_best(rows, ("higher",), blocks=("a", "a", "b", "b", "c"))
    assert [row[0].best for row in marked] == [False, True, True, False, False]
    assert not any(row[0].second for row in marked), "of two the second is the loser"
    of_three = mark_best([[Cell(mean=1.0)], [Cell(mean=2.0)], [Cell(mean=9.0)]], ("higher",))
    assert [row[0].second for row in of_three] == [False, True, False]


def test_nothing_is_best_where_nothing_is_better() -> None:
    cells = [Cell(mean=1.0), Cell(mean=2.0)]
    assert mark_best_of_column(cells, None) == cells
    assert [cell.best for cell in mark_best_of_column(cells, "lower")] == [True, False]
