"""Does every cell name its heading, does every note stand once, and are published numbers marked?"""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lossscope.report.html_tables import PageTable, page_table
from lossscope.report.notes import Notes
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

HEADS = (("", "data"), ("", "loss"), ("R@1", "ours"), ("R@1", "published"), ("mAP", "published"))


def paper(name: str = "t", notes: tuple[str, ...] = ("[a] wrong", "[b] n = 2", "All in %.")) -> Table:
    rows = (
        (Cell(text="d & e"), Cell(text="A"), Cell(mean=1.0, mark="a,†"), Cell(mean=3.0, mark="b"), Cell(mean=4.0)),
        (Cell(text="f"), Cell(text="B"), Cell(), Cell(mean=2.0), Cell()),
        (Cell(text="g"), Cell(text="C"), Cell(), Cell(), Cell()),
    )
    return Table(name, "Ours <beside> theirs. More text.", HEADS, rows, notes)


def parse(table: PageTable) -> ElementTree.Element:
    return ElementTree.fromstring(table.html)


@pytest.fixture
def notes() -> Notes:
    empty = Notes()
    empty.start("one")
    return empty


def test_cells_have_their_headings(notes: Notes) -> None:
    root = parse(page_table(paper().to_html(), notes))
    labels = [cell.get("data-label") for cell in root.findall(".//tbody/tr")[0]]
    assert labels == ["data", "loss", "R@1 ours", "R@1 published", "mAP published"]
    named = [cell.get("class", "").split().count("label") for cell in root.findall(".//tbody/tr")[0]]
    assert named == [1, 1, 0, 0, 0]


def test_the_title_is_the_first_sentence_and_text_stays_text(notes: Notes) -> None:
    table = page_table(paper().to_html(), notes)
    assert table.title == "Ours <beside> theirs"
    assert "d &amp; e" in table.html and "<beside>" not in table.html


@pytest.mark.parametrize(
    ("caption", "title"),
    [
        ("5 runs.", "5 runs"),
        ("Counts with eps 0.01; seed 0", "Counts with eps 0.01"),
        ("Counts: eps 0.01; seed 0. More.", "Counts"),
        ("Version 1.5 of a thing.", "Version 1.5 of a thing"),
    ],
)
def test_a_title_is_short(notes: Notes, caption: str, title: str) -> None:
    table = Table("t", caption, (("", "a"), ("", "b")), ((Cell(text="x"), Cell(mean=1.0)),) * 2)
    assert page_table(table.to_html(), notes).title == title


def test_published_columns_and_rows_are_marked_and_groups_know_their_size_without_them(notes: Notes) -> None:
    table = page_table(paper().to_html(), notes)
    root = parse(table)
    assert table.published
    rows = root.findall(".//tbody/tr")
    assert [["published" in cell.get("class", "").split() for cell in row] for row in rows] == [
        [False] * 3 + [True] * 2
    ] * 3
    assert ["published" in row.get("class", "").split() for row in rows] == [False, True, False]
    groups = root.findall(".//th[@scope='colgroup']")
    assert [(group.get("data-own"), group.get("data-all")) for group in groups] == [("1", "2"), ("0", "1")]


def test_a_table_without_published_numbers_has_no_button(notes: Notes) -> None:
    table = Table("t", "c", (("", "a"), ("", "b")), ((Cell(text="x"), Cell(mean=1.0)), (Cell(text="y"), Cell())))
    assert not page_table(table.to_html(), notes).published


def test_notes_are_numbered_over_the_page_and_marks_refer_to_them(notes: Notes) -> None:
    first = parse(page_table(paper().to_html(), notes))
    second = parse(page_table(paper("u", ("[a] n = 2", "[b] new", "All in %.")).to_html(), notes))
    assert notes.numbered("one") == [(1, "wrong"), (2, "n = 2"), (3, "new")] and notes.plain("one") == ["All in %."]
    marks = [[link.get("href") for link in root.iter("a")] for root in (first, second)]
    assert marks == [["#note-1", "#note-2"], ["#note-2", "#note-3"]]
    assert next(first.iter("sup")).text == "†"  # marks without a note stay
    assert not first.findall(".//p[@class='note']")


def test_a_note_of_an_earlier_chapter_is_not_repeated(notes: Notes) -> None:
    page_table(paper().to_html(), notes)
    notes.start("two")
    page_table(paper("u").to_html(), notes)
    assert list(notes.numbered("two")) == [] and notes.plain("two") == ["All in %."]


def test_a_text_that_stands_elsewhere_is_no_note(notes: Notes) -> None:
    page_table(paper().to_html(), notes, "All in %.")
    assert notes.plain("one") == []
