"""Is the page well formed, self-contained and accessible, and are all other files beside it?"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image

from lossscope.errors import InputError
from lossscope.plots import style
from lossscope.report.interactive import HeatmapChart, Series, SliderChart, library
from lossscope.report.page import SCHEMA, write_page
from lossscope.report.sections import Answer, Finding, Picture, Section
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.chromium import in_browser, watch
from tests.pdflatex import compile_latex

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    """Collect tags and their attributes, and check that every tag is closed."""

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


def _slider(name="eps"):
    line = Series("</script><b>a", "i2t", (2.0, 1.0), (0.1, 0.2))
    return SliderChart(
        name, "Move <it>.", (0.1, 1.0), {"<one>": (line,), "two": (line,)}, 0, "threshold", "samples", "ε"
    )


def _heatmap(name="field"):
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


@pytest.mark.parametrize(
    "files",
    [
        "[", "[]", "{}", "null", '{"schema": 1}', '[{"path": "csv"}]', '[{"path": ""}]', '[{"path": "."}]',
        '[{"path": 1}]',
        '[{"path": "a\\u0000b"}]', '[{"path": "../mine.txt"}]', '[{"path": "/etc/hostname"}]', "[1]", '[{"path": "X"}]',
    ],
)  # fmt: skip
def test_a_damaged_index_removes_nothing_and_stops_no_page(files, tmp_path):
    """A name with a NUL, or that of a folder, ended the next page with an error after its last file."""
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    out = tmp_path / "out"
    (out / "csv").mkdir(parents=True)
    (out / "csv" / "mine.csv").write_text("mine", encoding="utf-8")
    text = files if files.startswith(("{", "null")) or files == "[" else f'{{"schema": "{SCHEMA}", "files": {files}}}'
    (out / "index.json").write_text(text.replace("X", "x" * 5000), encoding="utf-8")
    write_page(out, "title", "lead", _sections(), {})
    assert (tmp_path / "mine.txt").is_file() and (out / "csv" / "mine.csv").is_file()
    assert json.loads((out / "index.json").read_text(encoding="utf-8"))["files"]


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


def test_links_have_targets(page):
    ids = {attrs["id"] for _, attrs in page.tags if "id" in attrs}
    assert {attrs["href"][1:] for attrs in page.all("a")} <= ids


def test_pictures_are_embedded_with_descriptions(page):
    (image,) = page.all("img")
    assert image["alt"] == 'Falls "from" 1 to <0>.'
    kind, _, data = image["src"].partition(";base64,")
    assert kind == "data:image/webp"
    assert base64.b64decode(data).startswith(b"RIFF")


def test_tables_and_provenance_are_there(page, folder):
    assert [attrs["id"] for attrs in page.all("table")] == [
        "table-numbers", "table-more_numbers"
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
        "overflow: auto",
        'name="viewport"',
    ):
        assert piece in text


def test_the_index_names_every_file(folder):
    listing = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {entry["path"] for entry in listing["files"]} == written - {"index.json"}
    assert written == {
        "index.html", "index.json", "csv/numbers.csv", "csv/more_numbers.csv", "figures/line.png",
        "latex/README.md", "latex/main.tex", "latex/line.pdf", "latex/numbers.tex", "latex/more_numbers.tex",
    }  # fmt: skip
    assert listing["sections"][0] == {"title": "First & best", "items": ["numbers", "line"]}


def test_latex_is_escaped_and_inputs_every_item(folder):
    text = (folder / "latex" / "main.tex").read_text(encoding="utf-8")
    assert r"\section{First \& best}" in text
    assert r"\input{numbers}" in text
    assert r"\shownpicture{line.pdf}" in text
    assert r"z\_1" in text


def test_latex_compiles(folder, tmp_path):
    compile_latex(shutil.copytree(folder / "latex", tmp_path / "latex"))


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
def chart_folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("charts") / "out"
    section = Section(
        "Charts", "Text.", (_slider(), _heatmap(), _picture()), (_table("folded"), _picture("also"), _slider("tau"))
    )
    write_page(out, "T", "L", [section], {})
    return out


@in_browser
def test_the_page_works_in_a_browser(browser, chart_folder):
    context = browser.new_context(offline=True)
    page = context.new_page()
    messages, requests = watch(page)
    address = (chart_folder / "index.html").as_uri()
    page.goto(address)
    page.wait_for_selector('html[data-ready="yes"]')
    page.evaluate("document.querySelectorAll('main details').forEach((item) => { item.open = true; })")
    for plot in page.locator(".plot").all():
        plot.scroll_into_view_if_needed()
        plot.locator(".main-svg").first.wait_for()
    output = page.locator("[data-slider] output").first
    before = output.inner_text()
    page.locator("[data-slider] input").first.press("ArrowRight")
    assert output.inner_text() != before
    page.locator("table thead button").first.click()
    assert page.locator("table [aria-sort=ascending]").count() == 1
    assert messages == []
    assert {url for url in requests if not url.startswith(("data:", "blob:"))} == {address}
    context.close()


@pytest.fixture(scope="module")
def chart_page(chart_folder):
    page = Page()
    page.feed((chart_folder / "index.html").read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


def test_pictures_and_charts_are_seen_first_and_all_else_is_folded(chart_folder, chart_page):
    """A reader sees pictures first; a click opens tables, further pictures and notes."""
    text = (chart_folder / "index.html").read_text(encoding="utf-8")
    folds = re.findall(r'<details class="fold".*?</details>', text, re.DOTALL)
    assert [re.search(r"<summary>(.*?)</summary>", fold)[1] for fold in folds] == [
        "2 more pictures",
        "50% &lt;of&gt; a_b",
    ]
    assert "figure-also" in folds[0] and "figure-tau" in folds[0] and "table-folded" in folds[1]
    seen = re.sub(r"<details.*?</details>", "", text[text.index("<main") :], flags=re.DOTALL)
    assert all(f'id="figure-{name}"' in seen for name in ("eps", "field", "line"))
    assert 'id="figure-also"' not in seen and 'id="table-folded"' not in seen


def test_the_picture_stands_before_the_table_whatever_their_order(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    assert text.index('id="figure-line"') < text.index('id="table-numbers"') < text.index('id="table-more_numbers"')


def test_a_table_without_a_picture_beside_it_is_open(folder):
    text = (folder / "index.html").read_text(encoding="utf-8")
    folds = re.findall(r"<details class=\"fold\"( open)?>\s*<summary>", text)
    assert folds == ["", " open"]  # the first section's has a picture, the second's has none


def test_the_contents_name_every_section_in_order(page):
    links = [attrs["href"] for attrs in page.all("a") if attrs.get("class") != "skip"]
    assert links == ["#first-best", "#second", "#provenance"]


ANSWER = Answer(
    (
        Finding("A is <best>.", "First & best"),
        Finding("A & B differ.", "A chapter that is left out"),
        Finding("One seed.", "Second", warning=True),
    ),
    "line",
    ("p ≤: a note.",),
    headline="In one sentence.",
)


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    out = tmp_path_factory.mktemp("answer") / "out"
    sections = [replace(_sections()[0], look="Look <here>."), _sections()[1]]
    write_page(out, "T", "L", sections, {}, ANSWER)
    return out


def test_the_answer_stands_before_the_chapters(answered):
    text = (answered / "index.html").read_text(encoding="utf-8")
    positions = [
        text.index(piece)
        for piece in (
            "In one sentence.", 'id="answer"', 'id="main-figure-line"', "A is &lt;best&gt;.", "A &amp; B differ.",
            "p ≤: a note.", "Read with care",
            "One seed.", "What to look at next", "Look &lt;here&gt;.", 'id="first-best"', 'id="figure-line"',
        )
    ]  # fmt: skip
    assert positions == sorted(positions)


def test_a_finding_links_to_its_chapter_where_there_is_one(answered):
    text = (answered / "index.html").read_text(encoding="utf-8")
    assert re.search(r'A is &lt;best&gt;\. <a href="#first-best">[^<]+</a>', text)
    assert "A &amp; B differ.</li>" in text
    page = Page()
    page.feed(text)
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert page.open == [] and len(ids) == len(set(ids))
    assert {attrs["href"][1:] for attrs in page.all("a")} <= set(ids)


def test_findings_are_in_latex_and_in_the_index(answered):
    latex = (answered / "latex" / "main.tex").read_text(encoding="utf-8")
    assert r"\item A is \textless{}best\textgreater{}." in latex and r"\item One seed." in latex
    index = json.loads((answered / "index.json").read_text(encoding="utf-8"))
    assert index["findings"][2] == {"text": "One seed.", "warning": True}


def test_a_run_that_fails_on_purpose_stands_last_and_is_called_so(tmp_path):
    """The first box of the demo's page was an error of a run that fails on purpose."""
    planted = (Finding("Error: dead-tower in 1 of 1 run (b).", warning=True),)
    write_page(tmp_path / "page", "T", "L", _sections(), {}, replace(ANSWER, planted=planted))
    text = (tmp_path / "page" / "index.html").read_text(encoding="utf-8")
    assert text.index("Read with care") < text.index("A run that fails on purpose") < text.index("dead-tower")
    latex = (tmp_path / "page" / "latex" / "main.tex").read_text(encoding="utf-8")
    assert "A run that fails on purpose: Error: dead-tower" in latex.replace(r"\allowbreak{}", "")


def test_ill_runs_stand_above_the_answer_and_a_clean_bill_below(answered, tmp_path):
    assert "What the doctor finds" not in (answered / "index.html").read_text(encoding="utf-8")
    texts = ("Error: no-learning in 1 of 4 runs (a): <nothing wrong>.", "Warning: hubness in 2 of 4 runs (a, b): hubs.")
    ill = tuple(Finding(text, warning=True) for text in texts)
    well = (Finding("The doctor finds nothing wrong in 4 runs."),)
    for number, (doctor, kind) in enumerate(((ill, "warnings"), (well, "well"))):
        out = tmp_path / str(number)
        write_page(out, "T", "L", _sections(), {}, replace(ANSWER, doctor=doctor))
        text = (out / "index.html").read_text(encoding="utf-8")
        block = re.search(
            rf'<div class="{kind}" role="note" aria-label="What the doctor finds">(.*?)</div>', text, re.S
        )
        assert block is not None and (block.end() < text.index("A is &lt;best&gt;.")) == (kind == "warnings")
        assert all(finding.text.replace("<", "&lt;").replace(">", "&gt;") in block[1] for finding in doctor)
        assert doctor[0].text.partition(" ")[0] in (out / "latex" / "main.tex").read_text(encoding="utf-8")


def test_two_sections_of_one_title_are_refused(tmp_path):
    with pytest.raises(InputError, match="titles of chapters must differ; got a-b twice"):
        write_page(tmp_path / "out", "t", "l", [Section("A b", ""), Section("a B", "")], {})


def test_charts_have_their_content_and_controls(chart_folder, chart_page):
    figures = chart_page.all("figure")
    assert [figure["data-slider"] for figure in figures if "data-slider" in figure] == ["eps", "tau"]
    assert [figure["data-heatmap"] for figure in figures if "data-heatmap" in figure] == ["field"]
    text = (chart_folder / "index.html").read_text(encoding="utf-8")
    contents = [
        json.loads(script) for script in re.findall(r'<script type="application/json">(.*?)</script>', text, re.DOTALL)
    ]
    assert contents == [json.loads(item.content()) for item in (_slider(), _heatmap(), _slider("tau"))]
    assert contents[0]["panels"]["<one>"][0]["label"] == "</script><b>a"
    sliders = [tag for tag in chart_page.all("input") if tag["type"] == "range"]
    assert [(tag["min"], tag["max"], tag["value"]) for tag in sliders] == [("0", "1", "0")] * 2


def test_the_library_is_packed_only_where_there_are_charts(chart_folder, folder):
    text = (chart_folder / "index.html").read_text(encoding="utf-8")
    (packed,) = re.findall(r'<script type="application/gzip" id="library">(.*?)</script>', text, re.DOTALL)
    assert gzip.decompress(base64.b64decode(packed)).decode() == library()
    without = (folder / "index.html").read_text(encoding="utf-8")
    assert "application/gzip" not in without and len(without) < 100_000


def test_charts_need_no_network(chart_folder, chart_page):
    addresses = [
        attrs[key] for _, attrs in chart_page.tags for key in ("src", "href", "action", "data") if key in attrs
    ]
    assert all(address.startswith(("#", "data:image/")) for address in addresses)
    text = (chart_folder / "index.html").read_text(encoding="utf-8")
    assert "http://" not in text and "https://" not in text and "@import" not in text and "url(" not in text


def test_titles_labels_and_captions_are_text_not_tags(chart_folder, chart_page, folder):
    text = (chart_folder / "index.html").read_text(encoding="utf-8")
    assert "Move &lt;it&gt;." in text and "<it>" not in text
    assert ">&lt;one&gt;</option>" in text and ">&lt;ntxent&gt;</option>" in text
    assert chart_page.all("b") == [] and chart_page.all("one") == []
    assert "<title>A &lt;title&gt;</title>" in (folder / "index.html").read_text(encoding="utf-8")
    assert "First &amp; best" in (folder / "index.html").read_text(encoding="utf-8")


def test_folded_items_are_in_latex_and_charts_are_not(chart_folder):
    text = (chart_folder / "latex" / "main.tex").read_text(encoding="utf-8")
    assert r"\input{folded}" in text and r"\shownpicture{also.pdf}" in text
    assert "eps" not in text and "tau" not in text


def test_the_index_names_charts_and_has_the_sums_of_all_files(chart_folder):
    listing = json.loads((chart_folder / "index.json").read_text(encoding="utf-8"))
    assert listing["sections"] == [
        {"title": "Charts", "items": ["eps", "field", "line", "folded", "also", "tau"]}
    ]  # fmt: skip
    for entry in listing["files"]:
        assert entry["sha256"] == hashlib.sha256((chart_folder / entry["path"]).read_bytes()).hexdigest()
    written = {path.relative_to(chart_folder).as_posix() for path in chart_folder.rglob("*") if path.is_file()}
    assert {entry["path"] for entry in listing["files"]} == written - {"index.json"}


def test_charts_have_the_same_bytes_too(chart_folder, tmp_path):
    section = Section(
        "Charts", "Text.", (_slider(), _heatmap(), _picture()), (_table("folded"), _picture("also"), _slider("tau"))
    )
    again = write_page(tmp_path, "T", "L", [section], {})
    for name in ("index.html", "index.json", "latex/main.tex", "latex/line.pdf", "figures/line.png"):
        assert (again.parent / name).read_bytes() == (chart_folder / name).read_bytes(), name


def test_pictures_are_webp_no_wider_than_needed(tmp_path):
    with style.screen():
        wide = style.new_figure(width=4)
        wide.add_subplot().plot([0, 1])
    out = write_page(tmp_path, "T", "L", [Section("S", "", (Picture("wide", "c", "a", wide),))], {})
    (address,) = re.findall(r'src="data:image/webp;base64,([^"]+)"', out.read_text(encoding="utf-8"))
    with Image.open(io.BytesIO(base64.b64decode(address))) as image, Image.open(tmp_path / "figures/wide.png") as png:
        assert image.format == "WEBP" and image.width == 1100 < png.width


@pytest.mark.parametrize("twin", [_slider, _heatmap, _picture])
def test_a_name_is_unique_whatever_it_names(tmp_path: Path, twin):
    with pytest.raises(InputError, match="must differ; got numbers twice"):
        write_page(
            tmp_path / "out", "t", "l", [Section("s", "", (_table(),)), Section("s", "", (), (twin("numbers"),))], {}
        )
    assert not (tmp_path / "out").exists()


def test_no_line_of_the_page_ends_between_a_number_and_its_per_cent_sign(tmp_path):
    """A narrow page had `95` at the end of a line and `% interval` on the next."""
    table = Table("t", "Of 5 % or more.", (("", "a 95 % b"),), ((Cell(text="1 %"),),), ("note 3 %",))
    section = Section("S", "95 % interval, 3.5 % & more", (table, replace(_picture(), caption="10 to 90 % bands")))
    text = write_page(tmp_path, "T", "4 % lead", [section], {"level": "9 %"}).read_text(encoding="utf-8")
    shown = re.sub(r"<(style|script).*?</\1>", "", text, flags=re.DOTALL)
    assert not re.search(r"\d %", shown)
    for words in (
        "95\xa0% interval, 3.5\xa0% &amp; more",
        "Of 5\xa0%",
        "a 95\xa0% b",
        "10 to 90\xa0% bands",
        "4\xa0% lead",
    ):
        assert words in shown


def test_numbers_of_pictures_and_tables_are_files_of_their_own(tmp_path):
    frame = pd.DataFrame({"label": ["a"], "value": [0.5]})
    drawn = replace(_picture(), plot="tangent", numbers=frame)
    write_page(tmp_path, "T", "L", [Section("S", "", (drawn, _picture("other")))], {}, numbers={"rows": frame})
    listing = json.loads((tmp_path / "index.json").read_text(encoding="utf-8"))
    assert listing["plots"] == {"line": "tangent"}
    assert {file["path"] for file in listing["files"]} >= {"numbers/line.parquet", "numbers/rows.parquet"}
    for name in ("line", "rows"):
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "numbers" / f"{name}.parquet"), frame)
    with pytest.raises(InputError, match="names in a report must differ; got rows twice"):
        write_page(tmp_path, "T", "L", [Section("S", "", (_table("rows"),))], {}, numbers={"rows": frame})
