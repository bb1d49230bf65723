"""Is the page whole, self-contained and accessible, and does everything else lie beside it?"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from lossscope.errors import InputError
from lossscope.plots import style
from lossscope.report import Picture, Section, write
from lossscope.tables.base import Cell, Table

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Collects tags and addresses, and checks that what opens is closed."""

    def __init__(self):
        super().__init__()
        self.open, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def _table(name="numbers"):
    return Table(name, "50% <of> a_b", (("", "loss"), ("i2t", "R@1")), ((Cell(text="a"), Cell(mean=1.5, std=0.1)),))


def _picture(name="line"):
    fig = style.canvas()
    fig.add_subplot().plot([0, 1], [1, 0])
    return Picture(name, "A line & more.", 'Falls "from" 1 to <0>.', fig)


def _sections():
    return [
        Section("First & best", "One.\n\nTwo <b>.", (_table(), _picture())),
        Section("Second", "", (_table("more_numbers"),)),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "deep" / "out"
    write(out, "A <title>", "100% sure.", _sections(), {"seed": "0", "command": "x <y> & z_1"})
    return out


@pytest.fixture(scope="module")
def page(folder):
    page = Page()
    page.feed((folder / "index.html").read_text(encoding="utf-8"))
    page.close()
    return page


def test_page_is_well_formed(page):
    assert page.open == []
    names = [tag for tag, _ in page.tags]
    assert [names.count(tag) for tag in ("h1", "main", "nav", "header", "footer", "title")] == [1] * 6
    assert [tag for tag in names if tag in ("h1", "h2", "h3")] == ["h1", "h2", "h2", "h2"]
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_page_needs_no_network(page, folder):
    addresses = [attrs[key] for _, attrs in page.tags for key in ("src", "href") if key in attrs]
    assert addresses
    assert all(address.startswith(("#", "data:image/")) for address in addresses)
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert "@import" not in text
    assert "url(" not in text


def test_links_lead_somewhere(page):
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {attrs["href"][1:] for attrs in page.all("a")} <= ids


def test_pictures_are_inside_with_words(page):
    (image,) = page.all("img")
    assert image["alt"] == 'Falls "from" 1 to <0>.'
    kind, _, data = image["src"].partition(";base64,")
    assert kind == "data:image/webp"
    assert base64.b64decode(data).startswith(b"RIFF")


def test_tables_and_provenance_are_there(page, folder):
    assert [attrs["id"] for attrs in page.all("table")] == [
        "table-numbers", "table-more_numbers", "table-provenance"
    ]  # fmt: skip
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert "x &lt;y&gt; &amp; z_1" in text
    assert "50% &lt;of&gt; a_b" in text
    assert "Two &lt;b&gt;." in text


def test_light_dark_print_and_sorting(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    for piece in (
        "prefers-color-scheme: dark",
        "@media print",
        "aria-sort",
        "overflow-x: auto",
        'name="viewport"',
    ):
        assert piece in text


def test_listing_names_every_file(folder):
    listing = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {entry["path"] for entry in listing["files"]} == there - {"index.json"}
    assert there == {
        "index.html", "index.json", "csv/numbers.csv", "csv/more_numbers.csv", "figures/line.png",
        "latex/main.tex", "latex/line.pdf", "latex/numbers.tex", "latex/more_numbers.tex",
    }  # fmt: skip
    assert listing["sections"][0] == {"title": "First & best", "items": ["numbers", "line"]}


def test_latex_is_escaped_and_inputs_every_item(folder):
    text = (folder / "latex" / "main.tex").read_text(encoding="utf-8")
    assert r"\section{First \& best}" in text
    assert r"\input{numbers}" in text
    assert r"\includegraphics{line.pdf}" in text
    assert r"z\_1" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="needs pdflatex")
def test_latex_compiles(folder):
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "main.tex"]
    done = subprocess.run(command, cwd=folder / "latex", capture_output=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]


def test_same_input_same_bytes(tmp_path):
    pages = [write(tmp_path / name, "t", "l", _sections(), {}).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("name", ["../x", "main", "a b", ""])
def test_names_that_would_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="name of a picture or table must be"):
        write(tmp_path / "out", "t", "l", [Section("s", "", (_table(name),))], {})
    assert not (tmp_path / "out").exists()


def test_one_name_for_two_items_is_refused(tmp_path):
    with pytest.raises(InputError, match="must differ; got numbers twice"):
        write(tmp_path, "t", "l", [Section("s", "", (_table(), _table()))], {})
