"""Are names of others shown as text in every format: messages, tables, pages, LaTeX, Markdown, CSV, JSON?

A format is a function that writes a name, and what must hold of its text, which never has control characters. A new
one is a row of `FORMATS`. Pictures are in tests/plots; a whole report, its page in a browser and its LaTeX by pdflatex
in tests/report; the page of an audit in a browser in tests/audit; the output of the doctor in tests/cli.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from lossscope_cli import _errors, _output, _progress, app
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console
from typer.testing import CliRunner

from lossscope.audit.output.page import PageItem, PagePair, write_page
from lossscope.core.sides import QUERY_DOCUMENT
from lossscope.errors import InputError, Interrupted, SpecError
from lossscope.io.csv_tables import format_csv, read_csv
from lossscope.io.frames import summary_document
from lossscope.plots import style
from lossscope.report.html_tables import PageTable, page_table
from lossscope.report.notes import Notes
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.each import each
from tests.hostile_names import CONTROLS, HOSTILE, IN_FRAMES

ELEMENTS = {"div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "p"}
FORMULAS = ("=", "+", "@", "\t", "\r")  # first characters of cells that a spreadsheet computes


@dataclass(frozen=True)
class Format:
    """The function that writes a name, and what its text must hold."""

    name: str
    write: Callable[[str, Path], str]  # of a name; the folder is for files
    check: Callable[[str, str, Path], None]  # of a text and the name in it
    names: Sequence[str] = HOSTILE


def _table(name: str) -> Table:
    rows = ((Cell(text=name), Cell(mean=-1.5)), (Cell(text="other"), Cell(mean=2.0)))
    return Table("t", f"Of {name}", (("", "loss"), (name, "R@1")), rows, (f"A note on {name}",))


def _has_both_rows(text: str, name: str, folder: Path) -> None:
    assert "\n2.0" not in text and "other" in text


def _has_its_columns_and_no_markup(text: str, name: str, folder: Path) -> None:
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert [len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) for row in rows] == [3] * 4
    assert not re.search(r"<(?!u>|/u>)", text)
    assert not re.search(r"(?<!\\)`", text) and not re.search(r"(?<!\\)\]\(", text)


def _page_table(name: str) -> PageTable:
    return page_table(_table(name).to_html(), Notes(_chapter="a", _plain={"a": []}))


def _has_elements_of_a_table_alone(text: str, name: str, folder: Path) -> None:
    tags: list[str] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attrs: tags.append(tag)  # type: ignore[method-assign]
    parser.feed(text)
    assert set(tags) <= ELEMENTS
    assert ElementTree.fromstring(_table(name).to_html()).tag == "div"


def _is_of_something(text: str, name: str, folder: Path) -> None:
    assert text.startswith("Of ")


def _page_of_an_audit(name: str, folder: Path) -> str:
    pair = PagePair(PageItem(name, (name,)), PageItem(f"{name}d", (name,)), 0.5, ((name, 1.0),))
    return write_page(folder / "page.html", [pair], name, QUERY_DOCUMENT, [(name, name)]).read_text(encoding="utf-8")


def _has_its_own_elements_alone(text: str, name: str, folder: Path) -> None:
    assert text.count("<script") == text.count("</script>") == 2 and "<script>window.stolen" not in text
    assert "<iframe" not in text and "<img" not in text and "<b>" not in text


def _has_no_command_of_a_name(text: str, name: str, folder: Path) -> None:
    for command in ("input", "immediate", "write", "frac", "end{document}"):
        assert rf"\{command}" not in text
    assert not re.search(r"(?<!\\)%(?!$)", text, re.MULTILINE) and "^^" not in text


def _csv(name: str, folder: Path) -> str:
    return format_csv(pd.DataFrame({"loss": [name, "other"], "mean": [-1.5, 2.0], "mixed": ["-2", name]}))


def _read_back(text: str, folder: Path) -> pd.DataFrame:
    (folder / "rows.csv").write_text(text, encoding="utf-8", newline="")
    return read_csv(folder / "rows.csv")


def _has_no_formula_and_gives_the_name_back(text: str, name: str, folder: Path) -> None:
    for cell in [cell for row in csv.reader(io.StringIO(text)) for cell in row]:
        assert not cell.startswith(FORMULAS) and (cell[0] != "-" or float(cell) < 0)
    again = _read_back(text, folder)
    assert list(again["loss"]) == [name, "other"] and list(again["mean"]) == [-1.5, 2.0]


def _gives_the_name_back(text: str, name: str, folder: Path) -> None:
    document = json.loads(text)
    assert document["rows"][0]["source"] == name == document["command"]["command"]


def _picture(name: str, folder: Path, kind: str) -> str:
    """Return the description that the file of a picture has."""
    path = style.save(Figure(figsize=(0.2, 0.2)), folder / f"a.{kind}", name)
    if kind == "png":
        with Image.open(path) as image:
            return str(image.info["Description"])
    return path.read_text(encoding="utf-8", errors="replace") if kind == "svg" else ""


def _is_whole(text: str, name: str, folder: Path) -> None:
    if (folder / "a.svg").is_file():
        ElementTree.parse(folder / "a.svg")


def _capture(function: Callable[[str], object], name: str, folder: Path) -> str:
    """Return what a function writes to the terminal."""
    stream = io.StringIO()
    with contextlib.redirect_stderr(stream), contextlib.redirect_stdout(stream):
        function(name)
    return stream.getvalue()


def _message(kind: type[Exception]) -> Callable[[str], object]:
    return lambda name: _errors.explain(kind(f"key of {name} must be known"))


def _must_be_known(text: str, name: str, folder: Path) -> None:
    assert "must be known" in text


def _says_how_far(text: str, name: str, folder: Path) -> None:
    assert "1/2" in text


FORMATS = [
    Format("a table", lambda name, _: _table(name).to_text(), _has_both_rows),
    Format("a narrow table", lambda name, _: _table(name).to_text(40), _has_both_rows),
    Format("Markdown", lambda name, _: _table(name).to_markdown(), _has_its_columns_and_no_markup),
    Format("a table of a page", lambda name, _: _page_table(name).html, _has_elements_of_a_table_alone),
    Format("the title of a table of a page", lambda name, _: _page_table(name).title, _is_of_something),
    Format("the page of an audit", _page_of_an_audit, _has_its_own_elements_alone),
    Format("LaTeX", lambda name, _: _table(name).to_latex(), _has_no_command_of_a_name),
    Format("CSV", _csv, _has_no_formula_and_gives_the_name_back, IN_FRAMES),
    Format("JSON", lambda name, _: summary_document(pd.DataFrame({"source": [name]}), {"command": name}),
           _gives_the_name_back, IN_FRAMES),
    *(Format(f"the description of a {kind}", partial(_picture, kind=kind), _is_whole) for kind in style.FORMATS),
    *(Format(f"a message of {kind.__name__}", partial(_capture, _message(kind)), _must_be_known)
      for kind in (InputError, SpecError, Interrupted, OSError)),
    Format("a bar", partial(_capture, lambda name: _progress.progress_lines(every=0)(name, 1, 2)), _says_how_far),
]  # fmt: skip


@each("format, name", [(format, name) for format in FORMATS for name in format.names])
def test_a_name_is_text(format: Format, name: str, tmp_path: Path) -> None:
    text = format.write(name, tmp_path)
    assert not set(text) & set(CONTROLS)
    format.check(text, name, tmp_path)


@each("name", ["=a", "'=a", "''=a", "'a", "-inf x", "＝a"])
def test_an_apostrophe_of_a_name_is_kept(name: str, tmp_path: Path) -> None:
    assert _read_back(format_csv(pd.DataFrame({"loss": [name]})), tmp_path)["loss"].tolist() == [name]


def test_texts_that_are_numbers_stay_numbers() -> None:
    values = ["-0.5", "+3", "-1e-05", "-inf", ".5"]
    assert format_csv(pd.DataFrame({"value": values})).split() == ["value", *values]


def test_csv_of_a_command_has_no_formulas_and_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    _output.print_csv(pd.DataFrame({"name": ["=1+1", "\x1b[31mred"], "mean": [-1.0, 2.0]}))
    assert capsys.readouterr().out == 'name,mean\n\'=1+1,-1.0\n"""\\u001b[31mred""",2.0\n'


def test_brackets_of_a_label_are_no_style_of_a_bar() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=160, _environ={"TERM": "xterm"}, color_system=None)
    with _progress._bars(console) as report:
        report("[link=https://example.com]a[/] \x1b]0;b\x07", 1, 2)
    assert "[link=https://example.com]a[/] \\x1b]0;b\\x07" in stream.getvalue()


@each("format", ["table", "json", "csv", "markdown", "latex"])
def test_a_file_whose_name_is_no_utf8_is_evaluated(tmp_path: Path, format: str) -> None:
    """pyarrow raised `surrogates not allowed`, a traceback."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/a\xff\x1b[31m.npz")
    vectors = np.eye(4, dtype=np.float32)
    with open(path, "wb") as stream:
        np.savez(stream, images=vectors, captions=vectors, caption_image=np.arange(4))
    done = CliRunner().invoke(app, ["eval", path, "--format", format])
    assert done.exit_code == 0, done.output
    assert not set(done.stdout) & set(CONTROLS)
    assert "xff" in done.stdout or format not in ("json", "csv")


def test_rows_of_a_csv_with_a_formula_give_the_name_back(tmp_path: Path) -> None:
    rows = "label,direction,statistic,mean\n'=a,i2t,W_neg,0.5\n'=a,i2t,W_low,0.2\n'=a,i2t,N_eff,7\n"
    (tmp_path / "rows.csv").write_text(rows, encoding="utf-8")
    out = tmp_path / "a.svg"
    done = CliRunner().invoke(app, ["plot", "weight_mass", str(tmp_path / "rows.csv"), "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "=a" in out.read_text(encoding="utf-8") and "&apos;=a" not in out.read_text(encoding="utf-8")
