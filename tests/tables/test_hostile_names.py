"""Are names of others shown as text by every format of a table, and kept by CSV?"""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd

from lossscope.io.csv_tables import format_csv, read_csv
from lossscope.io.frames import summary_document
from lossscope.report.html_tables import page_table
from lossscope.report.notes import Notes
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from lossscope.visible_text import show_text
from tests.each import each
from tests.hostile_names import CONTROLS, HOSTILE, IN_FRAMES

MADE = {"div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "p"}


def _table(name: str) -> Table:
    rows = ((Cell(text=name), Cell(mean=-1.5)), (Cell(text="other"), Cell(mean=2.0)))
    return Table("t", f"Of {name}", (("", "loss"), (name, "R@1")), rows, (f"A note on {name}",))


def _is_clean(text: str) -> bool:
    return not set(text) & set(CONTROLS)


@each("name", HOSTILE, "width", [None, 40])
def test_a_terminal_gets_no_control_characters(name: str, width: int | None) -> None:
    text = _table(name).to_text(width)
    assert _is_clean(text)
    assert "\n2.0" not in text and "other" in text


@each("name", HOSTILE)
def test_markdown_has_the_columns_that_it_had_and_no_markup_of_a_name(name: str) -> None:
    lines = _table(name).to_markdown().splitlines()
    assert _is_clean("".join(lines))
    rows = [line for line in lines if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows] == [3] * 4
    text = "\n".join(lines)
    assert (
        not re.search(r"<(?!u>|/u>)", text) and not re.search(r"(?<!\\)`", text) and not re.search(r"(?<!\\)\]\(", text)
    )


@each("name", HOSTILE)
def test_a_page_has_no_element_made_by_a_name(name: str) -> None:
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    page = page_table(_table(name).to_html(), Notes(_chapter="a", _plain={"a": []}))
    parser.feed(page.html)
    assert set(tags) <= MADE and _is_clean(page.html + page.title)
    assert ElementTree.fromstring(_table(name).to_html()).tag == "div"


@each("name", HOSTILE)
def test_latex_has_no_command_of_a_name(name: str) -> None:
    source = _table(name).to_latex()
    assert _is_clean(source)
    for command in ("input", "immediate", "write", "frac", "end{document}"):
        assert rf"\{command}" not in source
    assert not re.search(r"(?<!\\)%(?!$)", source, re.MULTILINE) and "^^" not in source


@each("name", IN_FRAMES)
def test_a_spreadsheet_gets_no_formula_and_lossscope_the_name(name: str, tmp_path: Path) -> None:
    rows = pd.DataFrame({"loss": [name, "other"], "mean": [-1.5, 2.0], "mixed": ["-2", name]})
    text = format_csv(rows)
    for cell in [cell for row in csv.reader(io.StringIO(text)) for cell in row]:
        assert not cell.startswith(("=", "+", "@", "\t", "\r")) and (cell[0] != "-" or float(cell) < 0)
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8", newline="")
    again = read_csv(tmp_path / "rows.csv")
    shown = show_text(name.replace("\r", "\n"), "\n\t")  # the name itself, unless it has control characters
    assert list(again["loss"]) == [shown, "other"] and list(again["mean"]) == [-1.5, 2.0]


@each("name", ["=a", "'=a", "''=a", "'a", "-inf x", "＝a"])
def test_an_apostrophe_of_a_name_is_kept(name: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text(format_csv(pd.DataFrame({"loss": [name]})), encoding="utf-8")
    assert read_csv(tmp_path / "rows.csv")["loss"].tolist() == [name]


def test_texts_that_are_numbers_stay_numbers() -> None:
    values = ["-0.5", "+3", "-1e-05", "-inf", ".5"]
    assert format_csv(pd.DataFrame({"value": values})).split() == ["value", *values]


@each("name", IN_FRAMES)
def test_json_gives_the_name_back(name: str) -> None:
    document = json.loads(summary_document(pd.DataFrame({"source": [name]}), {"command": name}))
    assert document["rows"][0]["source"] == name
