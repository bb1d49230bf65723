"""Is the page whole, self-contained and accessible, and does everything else lie beside it?"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from lossscope.errors import InputError
from lossscope.plots import style
from lossscope.report.interactive import HeatmapChart, Series, SliderChart, library
from lossscope.report.page import Picture, Section, write_page
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

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
    fig = style.new_figure()
    fig.add_subplot().plot([0, 1], [1, 0])
    return Picture(name, "A line & more.", 'Falls "from" 1 to <0>.', fig)


def _dial(name="eps"):
    line = Series("</script><b>a", "i2t", (2.0, 1.0), (0.1, 0.2))
    return SliderChart(
        name, "Move <it>.", (0.1, 1.0), {"<one>": (line,), "two": (line,)}, 0, "threshold", "samples", "ε"
    )


def _field(name="field"):
    rows = [(a, b, -a, b, "<ntxent>") for a in (0.0, 1.0) for b in (0.0, 1.0)]
    frame = pd.DataFrame(rows, columns=["s_pos", "s_neg", "w_pos", "w_neg", "objective"])
    return HeatmapChart(name, "Point & look.", frame, {"</script>": pd.DataFrame({"s_pos": [0.5], "s_neg": [0.1]})})


def _sections():
    return [
        Section("First & best", "One.\n\nTwo <b>.", (_table(), _picture())),
        Section("Second", "", (_table("more_numbers"),)),
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("report") / "deep" / "out"
    write_page(out, "A <title>", "100% sure.", _sections(), {"seed": "0", "command": "x <y> & z_1"})
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


@pytest.mark.slow
def test_same_input_same_bytes(tmp_path):
    pages = [write_page(tmp_path / name, "t", "l", _sections(), {}).read_bytes() for name in ("a", "b")]
    assert pages[0] == pages[1]


@pytest.mark.parametrize("name", ["../x", "main", "a b", ""])
def test_names_that_would_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(InputError, match="name of a picture or table must be"):
        write_page(tmp_path / "out", "t", "l", [Section("s", "", (_table(name),))], {})
    assert not (tmp_path / "out").exists()


def test_one_name_for_two_items_is_refused(tmp_path):
    with pytest.raises(InputError, match="must differ; got numbers twice"):
        write_page(tmp_path, "t", "l", [Section("s", "", (_table(), _table()))], {})


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    out = tmp_path_factory.mktemp("moving") / "out"
    section = Section(
        "Moves", "Text.", (_dial(), _field(), _picture()), (_table("folded"), _picture("also"), _dial("tau"))
    )
    write_page(out, "T", "L", [section], {})
    return out


@pytest.fixture(scope="module")
def moving_page(moving):
    page = Page()
    page.feed((moving / "index.html").read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


@pytest.mark.slow
def test_what_is_more_is_folded_away(moving, moving_page):
    text = (moving / "index.html").read_text(encoding="utf-8")
    (folded,) = re.findall(r"<details.*?</details>", text, re.DOTALL)
    assert "<summary" in folded and "3 more" in folded
    inside = [
        name for name in ("table-folded", "figure-also", "figure-tau", "figure-line", "figure-eps") if name in folded
    ]
    assert inside == ["table-folded", "figure-also", "figure-tau"]
    assert len(moving_page.all("details")) == 1


def test_a_section_without_more_folds_nothing(page):
    assert page.all("details") == []


def test_what_moves_has_its_content_and_controls(moving, moving_page):
    figures = moving_page.all("figure")
    assert [one["data-dial"] for one in figures if "data-dial" in one] == ["eps", "tau"]
    assert [one["data-field"] for one in figures if "data-field" in one] == ["field"]
    text = (moving / "index.html").read_text(encoding="utf-8")
    contents = [
        json.loads(one) for one in re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    ]
    assert contents == [json.loads(item.content()) for item in (_dial(), _field(), _dial("tau"))]
    assert contents[0]["panels"]["<one>"][0]["label"] == "</script><b>a"
    sliders = [one for one in moving_page.all("input") if one["type"] == "range"]
    assert [(one["min"], one["max"], one["value"]) for one in sliders] == [("0", "1", "0")] * 2


def test_the_library_is_packed_only_where_something_moves(moving, folder):
    text = (moving / "index.html").read_text(encoding="utf-8")
    (packed,) = re.findall(r'<script type="application/gzip" id="library">(.*?)</script>', text, re.DOTALL)
    assert gzip.decompress(base64.b64decode(packed)).decode() == library()
    still = (folder / "index.html").read_text(encoding="utf-8")
    assert "application/gzip" not in still and len(still) < 100_000


def test_what_moves_needs_no_network_either(moving, moving_page):
    addresses = [
        attrs[key] for _, attrs in moving_page.tags for key in ("src", "href", "action", "data") if key in attrs
    ]
    assert all(address.startswith(("#", "data:image/")) for address in addresses)
    text = (moving / "index.html").read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text and "@import" not in text and "url(" not in text


def test_titles_labels_and_captions_are_words_not_tags(moving, moving_page, folder):
    text = (moving / "index.html").read_text(encoding="utf-8")
    assert "Move &lt;it&gt;." in text and "<it>" not in text
    assert ">&lt;one&gt;</option>" in text and ">&lt;ntxent&gt;</option>" in text
    assert moving_page.all("b") == [] and moving_page.all("one") == []
    assert "<title>A &lt;title&gt;</title>" in (folder / "index.html").read_text(encoding="utf-8")
    assert "First &amp; best" in (folder / "index.html").read_text(encoding="utf-8")


def test_what_is_folded_or_moves_is_in_latex_as_far_as_it_stands_still(moving):
    text = (moving / "latex" / "main.tex").read_text(encoding="utf-8")
    assert r"\input{folded}" in text and r"\includegraphics{also.pdf}" in text
    assert "eps" not in text and "tau" not in text


def test_the_listing_names_what_moves_and_has_the_sums_of_all_files(moving):
    listing = json.loads((moving / "index.json").read_text(encoding="utf-8"))
    assert listing["sections"] == [
        {"title": "Moves", "items": ["eps", "field", "line", "folded", "also", "tau"]}
    ]  # fmt: skip
    for entry in listing["files"]:
        assert entry["sha256"] == hashlib.sha256((moving / entry["path"]).read_bytes()).hexdigest()
    there = {path.relative_to(moving).as_posix() for path in moving.rglob("*") if path.is_file()}
    assert {entry["path"] for entry in listing["files"]} == there - {"index.json"}


@pytest.mark.slow
def test_what_moves_has_the_same_bytes_too(moving, tmp_path):
    section = Section(
        "Moves", "Text.", (_dial(), _field(), _picture()), (_table("folded"), _picture("also"), _dial("tau"))
    )
    again = write_page(tmp_path, "T", "L", [section], {})
    for name in ("index.html", "index.json", "latex/main.tex", "latex/line.pdf", "figures/line.png"):
        assert (again.parent / name).read_bytes() == (moving / name).read_bytes(), name


@pytest.mark.slow
def test_pictures_are_webp_no_wider_than_a_page_shows(tmp_path):
    with style.screen():
        wide = style.new_figure(width=4)
        wide.add_subplot().plot([0, 1])
    out = write_page(tmp_path, "T", "L", [Section("S", "", (Picture("wide", "c", "a", wide),))], {})
    (address,) = re.findall(r'src="data:image/webp;base64,([^"]+)"', out.read_text(encoding="utf-8"))
    with Image.open(io.BytesIO(base64.b64decode(address))) as image, Image.open(tmp_path / "figures/wide.png") as png:
        assert image.format == "WEBP" and image.width == 1100 < png.width


@pytest.mark.parametrize("twin", [_dial, _field, _picture])
def test_a_name_is_given_once_whatever_it_names(tmp_path: Path, twin):
    with pytest.raises(InputError, match="must differ; got numbers twice"):
        write_page(
            tmp_path / "out", "t", "l", [Section("s", "", (_table(),)), Section("s", "", (), (twin("numbers"),))], {}
        )
    assert not (tmp_path / "out").exists()
