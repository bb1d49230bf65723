"""Are intervals shown unchanged beside the deviation over batches, and never over seeds?"""

from __future__ import annotations

import math

import pandas as pd

from lossscope.tables import probes, statistics
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.each import each

USUAL = {
    "source": "run.pt", "objective": "ntxent:tau=0.1", "probe": "cocos", "std": 0.5, "level": 0.95,
    "method": "two-way over 600 images", "n": 4, "n_defined": 4, "unit": "samples", "convention": "corrected",
    "eps": 0.01, "batch_size": 128, "sampling": "pairs", "seed": 0,
}  # fmt: skip


def frame(*rows: dict[str, object]) -> pd.DataFrame:
    return pd.DataFrame([USUAL | {"direction": "i2t", "statistic": "C_neg"} | row for row in rows])


C_NEG = {"mean": 11.65, "low": 11.44, "high": 11.85}
NONE = {"low": math.nan, "high": math.nan, "level": math.nan, "method": None}
C_0 = {"statistic": "C_0", "mean": 0.0, "unit": "queries"} | NONE


def texts(table: Table) -> list[list[str]]:
    return [[cell.plain() for cell in row] for row in table.rows]


def test_a_table_of_statistics_has_its_intervals_below_it() -> None:
    rows = frame(C_NEG, C_0, C_NEG | {"direction": "t2i", "low": -0.021, "high": 0.049, "mean": 0.014})
    numbers, intervals = statistics.build(rows)
    assert numbers.columns == intervals.columns and "±" in numbers.to_text() and "±" not in intervals.to_text()
    assert intervals.caption == "cocos, 95 % intervals: for other images like these, two-way over 600 images."
    assert [row[2].interval for row in intervals.rows] == [(11.44, 11.85), (-0.021, 0.049)]
    assert intervals.rows[0][3].missing


def test_without_an_interval_there_is_no_second_table() -> None:
    assert len(statistics.build(frame(C_0))) == 1
    assert len(statistics.build(frame(C_NEG).drop(columns=["low", "high", "level", "method"]))) == 1


def test_means_over_seeds_have_no_interval_over_data() -> None:
    rows = frame(C_NEG, C_NEG | {"seed": 1, "mean": 12.0})
    assert len(statistics.build(rows)) == 1
    (table,) = probes.build(rows)
    assert all(cell.interval is None for row in table.rows for cell in row)


def test_a_table_of_probes_has_a_column_of_intervals() -> None:
    (table,) = probes.build(frame(C_NEG, C_0))
    assert table.columns[-1] == ("ntxent:tau=0.1", "i2t interval")
    assert texts(table)[0][-2:] == ["11.65 ± 0.50", "11.44 to 11.85"] and table.rows[1][-1].missing
    assert table.caption.endswith("95 % intervals: for other images like these, two-way over 600 images.")


def test_levels_and_populations_are_those_of_the_rows() -> None:
    sample = {"sampling": "pairs, 50 of 200 queries, all candidates", "level": 0.9, "method": "sampled queries, t"}
    _, intervals = statistics.build(frame(C_NEG | sample))
    assert intervals.caption == "cocos, 90 % intervals: for all queries of this set, t."
    documents = {"method": "two-way over 160 queries", "level": 0.999, "direction": "q2d"}
    _, intervals = statistics.build(frame(C_NEG | documents))
    assert intervals.caption == "cocos, 99.9 % intervals: for other queries like these, two-way over 160 queries."


@each("form, text", [
    ("to_text", "−0.02 to 0.05"),
    ("to_markdown", "−0.02 to 0.05"),
    ("to_latex", "$-$0.02 to 0.05"),
    ("to_html", "−0.02 to 0.05"),
])  # fmt: skip
def test_ends_are_printed_as_numbers_are(form: str, text: str) -> None:
    cells = ((Cell(text="a"), Cell(interval=(-0.021, 0.049), digits=2)), (Cell(text="b"), Cell()))
    assert text in getattr(Table("t", "c", (("", "name"), ("", "C_neg")), cells), form)()


def test_frames_have_both_ends_in_columns_of_their_own() -> None:
    cells = ((Cell(text="a"), Cell(interval=(-0.021, 0.049), digits=2)), (Cell(text="b"), Cell()))
    table = Table("t", "c", (("", "name"), ("", "C_neg")), cells).to_frame()
    assert list(table) == ["name", "C_neg low", "C_neg high"]
    assert table.iloc[0].to_list() == ["a", -0.021, 0.049] and table.iloc[1, 1:].isna().all()


def test_a_narrow_terminal_turns_the_table_as_it_turns_numbers() -> None:
    statistics_of = [C_NEG | {"statistic": name} for name in ("C_neg", "W_neg", "W_low", "W_pos", "N_eff")]
    _, intervals = statistics.build(frame(*statistics_of))
    assert max(map(len, intervals.to_text(50).splitlines())) <= 50
    assert intervals.to_text(50).count("11.44 to 11.85") == 5


def test_ranks_of_a_sample_that_last_bits_decide_are_said_to_be() -> None:
    """Copies of an item in tiles of another shape may have other last bits than the positive."""
    sample = {
        "sampling": "pairs, 50 of 1505 queries, all candidates",
        "method": "sampled queries, t",
        "probe": "recall",
    }
    ties = sample | {"statistic": "ties", "unit": "queries", "mean": 50.0, "low": 50.0, "high": 50.0}
    notes = [" ".join(probes.build(frame(row))[0].notes) for row in (ties, ties | {"mean": 0.0})]
    assert "last bit" in notes[0] and "last bit" not in notes[1]
    assert "last bit" not in " ".join(probes.build(frame(ties | {"sampling": "pairs"}))[0].notes)
