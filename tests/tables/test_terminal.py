"""Does a table fit a terminal without a broken cell, with its heading above and its notes below?"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from lossscope.tables._sheets import transposed
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.each import each

NAMES = ("C_neg", "W_neg", "W_low", "W_pos", "C_0", "N_eff")


def wide(rows: int = 2, names: tuple[str, ...] = NAMES, groups: tuple[str, ...] = ("",), label: str = "row") -> Table:
    """Return a table with a label and a column per group and name; numbers count up from 10, each with a deviation."""
    columns = tuple((group, name) for group in groups for name in names)
    numbers = iter(range(10, 10_000))
    body = [
        (Cell(text=f"{label}{row}"), *(Cell(mean=float(next(numbers)), std=0.25, digits=2) for _ in columns))
        for row in range(rows)
    ]
    return Table("t", "cocos: eps 0.01; seed 0.", (("", "label"), *columns), tuple(body))


def lines_of(table: Table, width: int) -> list[str]:
    lines = table.to_text(width).splitlines()
    assert all(len(line) <= width for line in lines), max(lines, key=len)
    return lines


def test_a_table_that_fits_stays_as_it_is() -> None:
    assert lines_of(wide(), 100) == wide().to_text().splitlines()
    assert wide().to_text().splitlines()[2].split() == ["label", *NAMES]


def test_one_that_is_narrower_transposed_is_transposed() -> None:
    lines = lines_of(wide(), 60)
    assert lines[2].split() == ["label", "row0", "row1"]
    assert [line.split()[0] for line in lines[4:]] == list(NAMES)
    assert lines[4].split() == ["C_neg", "10.00", "±", "0.25", "16.00", "±", "0.25"]


def test_groups_stand_side_by_side_below_one_label() -> None:
    lines = lines_of(wide(groups=("i2t", "t2i")), 70)
    assert lines[2].split() == ["row0", "row1"]
    assert lines[3].split() == ["i2t", "t2i", "i2t", "t2i"]
    assert lines[5].split("  ")[0] == "C_neg" and "16.00 ± 0.25" in lines[5]


def test_one_too_wide_either_way_is_split_between_groups() -> None:
    text = "\n".join(lines_of(wide(rows=8, names=NAMES[:4], groups=("i2t", "t2i")), 70))
    first, second = text.split("\n\n")[1:3]
    assert "i2t" in first and "t2i" not in first and "t2i" in second
    assert first.count("row7") == second.count("row7") == 1


def test_rows_without_a_number_in_a_block_are_left_out_of_it() -> None:
    rows = [
        (Cell(text=f"row{k}"), *(Cell(mean=1.0, std=0.1) if (k < 4) == (column < 2) else Cell() for column in range(4)))
        for k in range(8)
    ]
    table = Table("t", "c.", (("", "label"), *(("", f"statistic {k}") for k in range(4))), tuple(rows))
    first, second = "\n".join(lines_of(table, 34)).split("\n\n")[1:3]
    assert "row3" in first and "row4" not in first
    assert "row4" in second and "row3" not in second


def test_texts_that_no_column_holds_stand_one_below_the_other() -> None:
    long = "the process was killed because " + "memory was short " * 8
    rows = ((Cell(text="run-a"), Cell(mean=1.5), Cell(text=long)), (Cell(text="run-b"), Cell(), Cell(text="")))
    lines = lines_of(Table("t", "c.", (("", "run"), ("", "rsum"), ("", "reason")), rows), 40)
    assert lines[2:4] == ["run: run-a", "  rsum: 1.5"]
    assert lines[4].startswith("  reason: the process") and "run: run-b" in lines


def test_a_caption_has_two_lines_and_the_rest_stands_below() -> None:
    parts = [f"setting{number} is {number}" for number in range(12)]
    table = Table("t", f"cocos: {'; '.join(parts)}.", (("", "a"),), ((Cell(mean=1.0),),))
    lines = lines_of(table, 60)
    assert lines[2] == "" and lines[1].endswith(".")
    joined = " ".join(lines)
    assert all(part in joined for part in parts)
    assert joined.index("setting11") > joined.index(" a")


def test_a_sentence_that_is_moved_keeps_names_as_they_are() -> None:
    table = Table("t", f"{'word ' * 20}end; mAP@5 is a mean; {'x ' * 30}y.", (("", "a"),), ((Cell(mean=1.0),),))
    assert "\nmAP@5 is a mean" in table.to_text(60)


def test_legend_and_meaning_stand_below_a_line_each() -> None:
    table = Table(
        "t", "c.", (("", "C_0"),), ((Cell(mean=1.0),),), ("A note.",), ("C_0: idle", "N: all"), ("So it is.",)
    )
    assert table.to_text(80).split("\n\n")[2:] == ["C_0: idle\nN: all", "So it is.", "A note.\n"]
    assert table.to_markdown().endswith("C\\_0: idle; N: all.\n\nSo it is.\n\nA note.\n")


def test_a_path_longer_than_a_line_is_broken_at_its_signs() -> None:
    path = "/".join(["folder-of-the-run"] * 8)
    lines = lines_of(Table("t", f"source {path}.", (("", "a"),), ((Cell(mean=1.0),),)), 40)
    assert any(line.endswith("/") for line in lines)
    assert path in "".join(line.strip() for line in lines)


def test_many_rows_are_not_transposed() -> None:
    assert transposed(wide(rows=30).shown) is None


cells = st.one_of(st.builds(lambda mean: Cell(mean=mean, digits=3, std=0.1), st.floats(-1e4, 1e4)), st.just(Cell()))


@settings(max_examples=80, deadline=None)
@given(st.data(), st.integers(40, 120), st.integers(1, 12), st.integers(1, 9), st.booleans())
def test_no_line_is_wider_and_no_number_is_broken(
    data: st.DataObject, width: int, columns: int, rows: int, grouped: bool
) -> None:
    labels = data.draw(st.lists(st.text("abc:=,-_ ", min_size=1, max_size=50), min_size=rows, max_size=rows))
    body = tuple(
        (Cell(text=label), *(data.draw(cells) for _ in range(columns)))
        for label in (text.strip() or "x" for text in labels)
    )
    heads = tuple(("i2t" if grouped and k % 2 else "", f"name{k}") for k in range(columns))
    table = Table("t", "Caption: of it; more.", (("", "label"), *heads), body)
    joined = " ".join(lines_of(table, width))
    numbers = [cell.printed() for row in body for cell in row[1:] if not cell.missing]
    assert all(number in joined for number in numbers)


@each("width", [80, 100])
def test_best_and_second_stay_at_their_numbers(width: int) -> None:
    rows = ((Cell(text="a"), *(Cell(mean=1.0, best=True) for _ in range(14))),)
    table = Table("t", "c.", (("", "label"), *(("", f"statistic {k}") for k in range(14))), rows)
    text = "\n".join(lines_of(table, width))
    assert text.count("1.0*") == 14 and "* best, + second" in text


def test_columns_of_one_loss_stay_in_one_block() -> None:
    rows = tuple(
        (Cell(text=loss), Cell(text=side), *(Cell(mean=10.0, std=0.25, digits=2) for _ in range(4)))
        for loss in ("vlc:gamma=9", "cmpm", "unified", "goal")
        for side in ("i2t", "t2i")
    )
    heads = (("", "objective"), ("", "direction"), *(("", f"a statistic of a long name {k}") for k in range(4)))
    blocks = "\n".join(lines_of(Table("t", "c.", heads, rows), 76)).split("\n\n")[1:]
    losses = [block.splitlines()[0].split()[1:] for block in blocks]
    assert losses == [[loss, loss] for loss in ("vlc:gamma=9", "cmpm", "unified", "goal")]
