"""Does a table show the columns that differ, and does CSV keep all?"""

from __future__ import annotations

import io

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.tables._specs import shorten
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from lossscope.tables.choice import Choice
from tests.each import each


def table(*rows: tuple[str | float | None, ...], columns: str, **more: object) -> Table:
    cells = [tuple(Cell(text=value) if isinstance(value, str) else Cell(mean=value) for value in row) for row in rows]
    heads = tuple(("", name) for name in columns.split(","))
    return Table("t", "cocos: eps 0.01; seed 0.", heads, tuple(cells), **more)  # type: ignore[arg-type]


def test_a_column_that_is_alike_in_all_rows_is_said_by_the_caption() -> None:
    losses = table(("triplet", "i2t", 1.0), ("triplet", "t2i", 2.0), columns="objective,direction,C_q")
    assert losses.shown.headings == ("direction", "C_q")
    assert losses.shown.caption == "cocos: objective triplet:margin=0.2; eps 0.01; seed 0."
    assert "objective" in pd.read_csv(io.StringIO(losses.to_csv())) and "objective" in losses.to_frame()


def test_a_caption_without_settings_gets_a_sentence() -> None:
    runs = Table("t", "5 runs.", (("", "run"), ("", "data")), tuple((Cell(text=r), Cell(text="scenes")) for r in "ab"))
    assert runs.shown.caption == "5 runs. Data scenes."


def test_the_column_that_names_the_rows_stays() -> None:
    sources = table(("scenes", "triplet", 1.0), ("scenes", "triplet", 2.0), columns="data,objective,C_q")
    assert sources.shown.headings == ("objective", "C_q")
    single = table(("scenes", "triplet", 1.0), columns="data,objective,C_q")
    assert single.shown.headings == ("objective", "C_q") and "data scenes" in single.shown.caption


def test_numbers_that_are_alike_stay_and_dashes_go() -> None:
    runs = table(("a", 0.0, None), ("b", 0.0, None), columns="run,C_0,p (t)")
    assert runs.shown.headings == ("run", "C_0")
    assert "p (t)" in runs.to_csv().splitlines()[0]


def test_a_text_below_a_group_is_a_result_and_stays() -> None:
    rows = tuple((Cell(text=name), Cell(text="[0, 1]")) for name in "ab")
    assert Table("t", "c.", (("", "run"), ("images", "CI")), rows).shown.headings == ("run", "images CI")


def test_conventions_that_print_the_same_numbers_are_one_row() -> None:
    rows = [("corrected", 1.0), ("released", 2.0), ("text", 1.0)]
    counts = table(*rows, columns="convention,C_q")
    assert [row[0].text for row in counts.shown.rows] == ["corrected, text", "released"]
    assert len(counts.to_frame()) == 3


@each("specs, short", [
    (["ntxent:tau=0.1"], ["ntxent:tau=0.1"]),
    (["ntxent:tau=0.1", "ntxent:tau=0.05"], ["ntxent:tau=0.1", "ntxent:tau=0.05"]),
    (["ntxent:tau=0.10", "triplet-sh:margin=0.3"], ["ntxent:tau=0.1", "triplet_sh:margin=0.3"]),
    (["unified:gamma=5.0,margin=0.2"], ["unified:gamma=5"]),
    (["./mine.py:Loss", "no spec"], ["./mine.py:Loss", "no spec"]),
    (["goal:triplet=con,pair=con,tau=10.0", "goal:triplet=nca"], ["goal:triplet=con", "goal:triplet=nca"]),
])  # fmt: skip
def test_specs_have_only_what_tells_them_apart_or_is_no_default(specs: list[str], short: list[str]) -> None:
    shortened = shorten(specs, "objectives")
    assert [shortened.get(spec, spec) for spec in specs] == short


def test_csv_has_full_specs_and_text_short_ones() -> None:
    first = table(("ntxent:tau=0.1", 1.0), ("triplet:margin=0.2", 2.0), columns="objective,C_q")
    second = table(("unified:margin=0.2,gamma=20.0", 1.0), ("goal:triplet=nca,pair=con", 2.0), columns="objective,C_q")
    assert [row[0].text for row in first.shown.rows] == ["ntxent:tau=0.1", "triplet:margin=0.2"]
    assert [row[0].text for row in second.shown.rows] == ["unified:gamma=20", "goal:triplet=nca"]
    assert "margin=0.2" in second.to_csv() and "margin" not in second.to_text(80)


def test_a_bound_is_printed_as_one_and_csv_keeps_the_number() -> None:
    bounds = Table("t", "c.", (("", "p"),), ((Cell(mean=0.0072, digits=4, at_most=True),), (Cell(mean=0.5),)))
    assert "≤ 0.0072" in bounds.to_text() and r"$\leq 0.0072$" in bounds.to_latex() and "≤ 0.0072" in bounds.to_html()
    frame = pd.read_csv(io.StringIO(bounds.to_csv()))
    assert frame["p"].tolist() == [0.0072, 0.5] and frame["p at_floor"].tolist() == [True, False]


def test_chosen_columns_are_shown_beside_the_labels() -> None:
    runs = table(("a", 1.0, 2.0), ("b", 3.0, 4.0), columns="run,R@1,rsum")
    assert Choice(("rsum",)).apply(runs).shown.headings == ("run", "rsum")
    assert "R@1" in Choice(("rsum",)).apply(runs).to_csv()
    assert Choice(("C_q",)).apply(runs).shown.headings == ("run", "R@1", "rsum")
    grouped = Table("t", "c.", (("", "run"), ("i2t", "R@1"), ("t2i", "R@1")), runs.rows)
    assert Choice(("R@1",)).apply(grouped).shown.headings == ("run", "i2t R@1", "t2i R@1")
    assert Choice(("t2i R@1",)).apply(grouped).shown.headings == ("run", "t2i R@1")


def test_published_numbers_and_their_notes_can_be_left_out() -> None:
    heads = (("", "loss"), ("R@1", "ours"), ("R@1", "published"))
    row = (Cell(text="a"), Cell(mean=1.0), Cell(mean=2.0))
    without = Choice(published=False).apply(Table("t", "c.", heads, (row,), ("Published rows: x.", "a note")))
    assert without.shown.headings == ("loss", "R@1 ours") and without.notes == ("a note",)


def test_a_column_that_no_table_has_is_refused() -> None:
    with pytest.raises(InputError, match=r"columns must be among run, R@1; got nDCG"):
        Choice(("R@1", "nDCG")).require_known([table(("a", 1.0), columns="run,R@1")])
