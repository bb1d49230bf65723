"""A table's HTML -> that of the page: cells know their heading, published numbers can be hidden, notes stand once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from lossscope.tables.cells import DASH

from .notes import Notes

_PUBLISHED = "published"  # heading of the columns with a paper's numbers
_LETTERED = re.compile(r"\[([a-z]+)\]\s+(.*)", re.DOTALL)


@dataclass(frozen=True)
class PageTable:
    """A table as the page shows it."""

    title: str  # start of its caption
    html: str
    published: bool  # whether it has published numbers, which a button shows


def page_table(html: str, notes: Notes, elsewhere: str = "") -> PageTable:
    """Return the table of a page.

    Args:
        html: `to_html` of a table.
        notes: footnotes of the page, which take those of the table.
        elsewhere: text below the table that stands elsewhere on the page.
    """
    box = ElementTree.fromstring(html)
    table = _require(box.find(".//table"))
    headings = _headings(_require(table.find("thead")))
    _label_cells(table, headings)
    published = _mark_published(table, headings)
    _move_notes(box, table, notes, elsewhere)
    caption = "".join(_require(table.find("caption")).itertext()).strip()
    return PageTable(_title(caption), ElementTree.tostring(box, encoding="unicode", method="html"), published)


def _title(caption: str) -> str:
    """Return the first sentence of a caption up to its first colon or semicolon, after which settings stand."""
    return re.split(r"(?<=[a-z)])\.\s|\.$|[:;]\s", caption, maxsplit=1)[0]


def _headings(head: ElementTree.Element) -> list[tuple[str, str]]:
    """Return (group, column) of each column, in order."""
    first, *rest = head.findall("tr")
    second = iter(rest[0].findall("th") if rest else ())
    headings = []
    for cell in first:
        if cell.get("scope") == "colgroup":
            headings += [(_text(cell), _text(next(second))) for _ in range(int(cell.get("colspan", "1")))]
        else:
            headings.append(("", _text(cell)))
    return headings


def _label_cells(table: ElementTree.Element, headings: Sequence[tuple[str, str]]) -> None:
    """Give cells the heading that narrow screens show beside them, and mark the words that name a row."""
    for row in table.findall("./tbody/tr"):
        naming = True
        for cell, (group, column) in zip(row, headings, strict=True):
            cell.set("data-label", f"{group} {column}".strip())
            naming = naming and "number" not in cell.get("class", "")
            if naming:
                cell.set("class", f"{cell.get('class', '')} label".strip())
    labels = sum("label" in cell.get("class", "") for cell in table.find("./tbody/tr") or ())
    first = table.find("./thead/tr")
    for cell in list(first if first is not None else ())[:labels]:
        if cell.get("scope") == "col":
            cell.set("class", f"{cell.get('class', '')} label".strip())


def _mark_published(table: ElementTree.Element, headings: Sequence[tuple[str, str]]) -> bool:
    """Mark the columns of published numbers, and rows that have no others; return whether there are any."""
    columns = {index for index, (_, column) in enumerate(headings) if column == _PUBLISHED}
    if not columns:
        return False
    for cell in table.findall("./thead//th"):
        if _text(cell) == _PUBLISHED:
            _add_class(cell, _PUBLISHED)
    _mark_groups(table, headings)
    for row in table.findall("./tbody/tr"):
        cells = list(row)
        for index in columns:
            _add_class(cells[index], _PUBLISHED)
        numbers = [
            cell for index, cell in enumerate(cells) if index not in columns and "number" in cell.get("class", "")
        ]
        if all(_text(cell) == DASH for cell in numbers) and any(_text(cells[index]) != DASH for index in columns):
            _add_class(row, _PUBLISHED)
    return True


def _mark_groups(table: ElementTree.Element, headings: Sequence[tuple[str, str]]) -> None:
    """Note on each heading of a group how many of its columns are ours, for when the others are hidden."""
    indices = iter(range(len(headings)))
    for cell in _require(table.find("./thead/tr")):
        size = int(cell.get("colspan", "1"))
        columns = [headings[next(indices)][1] for _ in range(size)]
        if cell.get("scope") == "colgroup":
            cell.set("data-own", str(sum(column != _PUBLISHED for column in columns)))
            cell.set("data-all", str(size))


def _move_notes(box: ElementTree.Element, table: ElementTree.Element, notes: Notes, elsewhere: str) -> None:
    """Take the footnotes from below the table, and let the marks of its cells refer to those of the page."""
    numbers: dict[str, int] = {}
    for note in [child for child in box if child.get("class") == "note"]:
        text = _text(note)
        if match := _LETTERED.fullmatch(text):
            numbers[match[1]] = notes.number(match[2])
        elif text != elsewhere:
            notes.add(text)
        box.remove(note)
    for mark in table.iter("sup"):
        letters = _text(mark).split(",")
        mark.text = ",".join(letter for letter in letters if letter not in numbers) or None
        for number in (numbers[letter] for letter in letters if letter in numbers):
            link = ElementTree.SubElement(mark, "a", {"href": f"#note-{number}", "class": "mark"})
            link.text = str(number)


def _add_class(element: ElementTree.Element, name: str) -> None:
    element.set("class", f"{element.get('class', '')} {name}".strip())


def _text(element: ElementTree.Element) -> str:
    return "".join(element.itertext()).strip()


def _require(element: ElementTree.Element | None) -> ElementTree.Element:
    if element is None:
        raise ValueError("HTML of a table must have a table with caption, head and body")
    return element
