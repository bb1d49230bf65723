"""Are rows that would make a wrong number refused, and missing values shown?"""

from __future__ import annotations

import math

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables import bleeker2022_1, bleeker2022_2, bleeker2022_3
from lossscope.tables._footnotes import Footnotes, join_marks
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.each import each
from tests.tables.invented import study

RUN = "scenes, ambiguity 0.1/VSE++/NT-Xent/1"
NTXENT = {"NT-Xent": "ntxent:tau=0.1"}


def _cell(table: Table, heading: str, row: int = 0) -> Cell:
    return table.rows[row][table.headings.index(heading)]


def test_a_missing_seed_is_marked_and_named() -> None:
    frame = study()
    i2t, _ = bleeker2022_1.build(frame[frame["run"] != RUN])
    row = next(index for index, line in enumerate(i2t.rows) if line[0].text == "NT-Xent")
    assert [line[0].mark for line in i2t.rows] == ["b" if index == row else "" for index in range(4)]
    assert i2t.notes[1] == "[b] seed 1 of scenes, ambiguity 0.1, VSE++, NT-Xent missing: n = 2."
    assert _cell(i2t, "i2t R@1 ours", row).plain() == "35.0 ± 1.4"  # 34 and 36
    assert "n = 2 to 3 runs" in i2t.caption


def test_seeds_are_expected_of_the_same_data_only() -> None:
    frame = pd.concat([study(), study(data={"Flickr8k": None}, seeds=(0,))], ignore_index=True)
    i2t, _ = bleeker2022_1.build(frame)
    assert not any("missing" in note for note in i2t.notes)
    assert _cell(i2t, "i2t R@1 ours", 4).std is None
    assert "n = 1 to 3 runs" in i2t.caption and "where n = 1, no deviation" in i2t.caption


@each("value", [math.nan, math.inf, None])
def test_what_is_not_defined_is_left_out_and_named(value: float | None) -> None:
    frame = study(NTXENT)
    broken = (frame["run"] == RUN) & (frame["statistic"] == "C_neg") & (frame["direction"] == "i2t")
    frame.loc[broken, "mean"] = value
    i2t, t2i = bleeker2022_3.build(frame)
    cell = _cell(i2t, "i2t C_neg corrected")
    assert (cell.plain(), cell.mark) == ("11.00 ± 1.41", "a")  # 10 and 12
    assert i2t.notes[0] == f"[a] not defined in run {RUN}: n = 2."
    assert _cell(t2i, "t2i C_neg corrected").plain() == "11.00 ± 1.00"


def test_what_is_defined_nowhere_is_a_dash_with_a_reason() -> None:
    frame = study(NTXENT, seeds=(1,))
    frame.loc[frame["statistic"] == "W_neg", "mean"] = math.nan
    cell = _cell(bleeker2022_3.build(frame)[0], "i2t W_neg corrected")
    assert (cell.plain(), cell.mark) == ("–", "b")  # a: the doubt about the published number


def test_a_statistic_that_one_run_lacks_is_named() -> None:
    frame = study(NTXENT)
    frame = frame[~((frame["run"] == RUN) & (frame["statistic"] == "R@5"))]
    i2t, _ = bleeker2022_1.build(frame)
    assert [_cell(i2t, f"i2t {name} ours").mark for name in ("R@1", "R@5", "average recall")] == ["", "a", "a"]
    assert i2t.notes[0] == f"[a] missing in run {RUN}: n = 2."


def test_an_undefined_recall_makes_the_average_undefined() -> None:
    frame = study(NTXENT, seeds=(0,))
    frame.loc[frame["statistic"] == "R@5", "mean"] = math.nan
    assert _cell(bleeker2022_1.build(frame)[0], "i2t average recall ours").missing


def test_batches_in_which_a_count_is_undefined_are_named() -> None:
    frame = study({"Triplet": "triplet:margin=0.2"}, seeds=(0,))
    frame.loc[(frame["statistic"] == "C_q") & (frame["direction"] == "i2t"), "n_defined"] = 20
    assert any("i2t 20 of 24" in note for note in bleeker2022_2.build(frame)[0].notes)


def _require_refused(frame: pd.DataFrame, match: str) -> None:
    with pytest.raises(InputError, match=match):
        bleeker2022_3.build(frame)


@each("column, value, message", [
    ("eps", 0.05, r"eps of the runs in one table must be the same; got 0.01 \(runs .*\); 0.05 \(run .*/1\)"),
    ("batch_size", 64, r"batch size of the runs .* got 128 \(runs .*; 64 \(run .*/1\)"),
    ("sampling", "images", r"sampling of the runs .* got pairs .*; images \(run .*/1\)"),
    ("spec", "ntxent:tau=0.2", r"spec of .*NT-Xent must be one; got ntxent:tau=0.1 .*; ntxent:tau=0.2"),
    ("dataset", "mscoco", r"dataset of scenes, ambiguity 0.1 must be one; got flickr30k .*; mscoco \(run .*/1\)"),
    ("method", "VSRN", r"method of scenes, ambiguity 0.1, VSE\+\+ must be one"),
    ("seed", 0, r"runs of .* must have different seeds; .* both have 0"),
    ("seed", None, r"runs of .* must have different seeds; .* have 0 and none"),
    ("data_fingerprint", "b", r"data_fingerprint of scenes, ambiguity 0.1 must be one; got a .*; b \(run .*/1\)"),
])  # fmt: skip
def test_runs_that_cannot_be_averaged_are_refused(column: str, value: object, message: str) -> None:
    frame = study(NTXENT).assign(data_fingerprint="a")
    frame[column] = frame[column].astype(object)
    frame.loc[frame["run"] == RUN, column] = value
    _require_refused(frame, message)


def test_recall_of_other_queries_is_refused() -> None:
    frame = study(NTXENT)
    frame.loc[frame["run"] == RUN, "n"] = 50
    with pytest.raises(InputError, match=r"number of queries of .*, i2t, test split must be one; got 1000 .*; 50"):
        bleeker2022_1.build(frame)


def test_ranks_within_batches_are_not_recall_of_the_split() -> None:
    frame = study(NTXENT)
    batches = frame[frame["probe"] == "recall"].assign(batch_size=128.0, mean=99.0)
    i2t, _ = bleeker2022_1.build(pd.concat([frame, batches], ignore_index=True))
    assert _cell(i2t, "i2t R@1 ours").mean == 31.0


def test_a_number_that_is_there_twice_is_refused() -> None:
    frame = study(NTXENT)
    twice = pd.concat([frame, frame[frame["run"] == RUN].assign(mean=1.0)], ignore_index=True)
    _require_refused(twice, rf"must occur once; got {RUN.replace('+', '[+]')}, i2t C_neg, corrected twice")
    _require_refused(pd.concat([frame, frame], ignore_index=True), "must occur once")


def test_two_objectives_of_one_name_are_refused() -> None:
    frame = study(NTXENT)
    cocos = frame[frame["probe"] == "cocos"]
    both = [cocos.assign(objective=f"ntxent:tau={tau}") for tau in ("0.05", "0.07")]
    _require_refused(
        pd.concat(both, ignore_index=True), r"objective of .*/0 must be one; got ntxent:tau=0.05 .*; ntxent:tau=0.07"
    )


def test_what_is_missing_is_named() -> None:
    frame = study(NTXENT)
    _require_refused(
        frame.drop(columns=["objective_label", "seed"]), r"must have the columns .* Add seed, objective_label"
    )
    _require_refused(frame.assign(encoder=None), "encoder must have a value in every row of a run")
    _require_refused(
        frame[frame["probe"] == "recall"], r"rows of the probe 'cocos'.*got recall\. Run `lossscope cocos`"
    )
    _require_refused(frame[:0], "rows of the probe 'cocos'.*got no rows")
    _require_refused(
        study({"Triplet": "triplet:margin=0.2"}), r"must have runs of ntxent on .*; got Triplet on flickr30k"
    )


def test_letters_go_on_after_z() -> None:
    notes = Footnotes()
    letters = [notes.letter(str(number)) for number in range(54)]
    assert (letters[25], letters[26], letters[51], letters[52]) == ("z", "aa", "az", "ba")
    assert notes.texts()[26] == "[aa] 26"
    assert join_marks("a,b", "", "b", "†") == "a,b,†"
