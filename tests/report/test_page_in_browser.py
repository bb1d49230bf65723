"""The report page in a browser: without errors, offline, by keyboard, at any width, in dark mode and in print."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.weight_fields import weight_field
from lossscope.plots import style
from lossscope.report.interactive import HeatmapChart, Series, SliderChart
from lossscope.report.page import write_page
from lossscope.report.sections import Picture, Section
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell
from tests.chromium import in_browser, watch

pytestmark = [in_browser, pytest.mark.thorough]  # test_page.py opens a page in every run
X = tuple(np.geomspace(0.001, 1.0, 13))
EVIL = "</script><b>NT & Xent</b>"


def picture(name: str) -> Picture:
    with style.screen():
        figure = style.new_figure()
        figure.add_subplot().plot([0, 1], [1, 0])
    return Picture(name, f"A line called {name}.", f"A line that falls from 1 to 0, {name}.", figure)


def panels() -> Picture:
    with style.screen():
        figure = style.new_figure()
        for number in (1, 2):
            figure.add_subplot(1, 2, number).plot([0, 1], [1, 0])
    return Picture("panels", "Two panels.", "A line that falls from 1 to 0, twice.", figure)


def numbers() -> Table:
    values = [("b", 10.0, 3.0), ("a", 9.0, math.nan), (EVIL, -2.5, 100.0), ("d", 1e-3, 20.0)]
    rows = tuple((Cell(text=loss), Cell(mean=count, std=0.5), Cell(mean=rsum)) for loss, count, rsum in values)
    return Table("numbers", "Rows to sort.", (("", "loss"), ("i2t", "count"), ("i2t", "rsum")), rows)


def wide() -> Table:
    heads = tuple((f"group {column // 4}", f"a long heading {column}") for column in range(16))
    cells = tuple(Cell(mean=float(column), std=0.1) for column in range(16))
    return Table("wide", "A table wider than a telephone, with a caption of many words in it.", heads, (cells,) * 3)


def named() -> Table:
    heads = (("", "loss"), *(("", f"a long heading {column}") for column in range(20)))
    rows = tuple((Cell(text=name), *(Cell(mean=column + 0.5) for column in range(20))) for name in ("a", "b"))
    return Table("named", "A wide table with names.", heads, rows)


def beside() -> Table:
    heads = (("", "loss"), ("R@1", "ours"), ("R@1", "published"))
    rows = ((Cell(text="a"), Cell(mean=1.0, mark="a"), Cell(mean=2.0)), (Cell(text="b"), Cell(), Cell(mean=3.0)))
    return Table("beside", "Ours beside the paper's.", heads, rows, ("[a] A doubt.", "A note."))


def slider_chart() -> SliderChart:
    def lines(scale: float) -> tuple[Series, ...]:
        falling = tuple(scale * (13.0 - index) for index in range(13))
        return Series(EVIL, "i2t", falling, (0.5,) * 13), Series("Triplet", "t2i", (*falling[:-1], math.nan))

    panels = {"VSE++": lines(1.0), "VSRN <2>": lines(10.0)}
    return SliderChart("eps", "Move the slider.", X, panels, 4, "threshold ε", "samples above ε", "ε", y_log=True)


def heatmap() -> HeatmapChart:
    frame = pd.concat([
        weight_field("ntxent", points=21).assign(objective=EVIL), weight_field("triplet", points=11)
    ], ignore_index=True)  # fmt: skip
    cloud = pd.DataFrame({"s_pos": [0.2, 0.5], "s_neg": [0.1, 0.3]})
    return HeatmapChart("field", "Point at a place.", frame, {EVIL: cloud})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    sections = [
        Section("Numbers", "First.\n\nSecond.", (numbers(), wide(), picture("line"))),
        Section("Charts", "Interactive charts.", (slider_chart(), heatmap()), (picture("folded"),)),
        Section("Tables", "Published.", (panels(), named(), beside()), other_data=True),
    ]
    out = write_page(tmp_path_factory.mktemp("page"), f"A title {EVIL}", "The results.", sections, {"seeds": "0, 1"})
    return out.as_uri()


class OpenPage:
    """A page in the browser, with its console messages and its requests."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.messages, self.requests = watch(self.page)
        self.page.goto(address)
        self.page.wait_for_selector('html[data-ready="yes"]')

    def unfold(self) -> None:
        """Open every folded part."""
        self.page.evaluate("document.querySelectorAll('main details').forEach((item) => { item.open = true; })")

    def column(self, table: str, index: int) -> list[str]:
        cells = f"#table-{table} tbody tr > :nth-child({index + 1})"
        texts: list[str] = self.page.locator(cells).all_inner_texts()
        return texts

    def numbers(self) -> list[list[str]]:
        """Return label, direction and number of the rows under the slider."""
        rows = self.page.locator("#figure-eps tbody tr").all()
        return [row.locator("th, td").all_inner_texts() for row in rows]

    def wait_for_chart(self, name: str) -> None:
        """Scroll to a chart, which draws it, and wait until it is drawn."""
        self.page.locator(f"#figure-{name}").scroll_into_view_if_needed()
        for plot in self.page.locator(f"#figure-{name} .plot").all():
            plot.scroll_into_view_if_needed()
            plot.locator(".main-svg").first.wait_for()


@pytest.fixture
def opened(browser: Any, address: str) -> Iterator[OpenPage]:
    page = OpenPage(browser, address)
    page.unfold()
    yield page
    page.context.close()


def test_the_page_has_no_errors_and_makes_no_requests(opened: OpenPage, address: str) -> None:
    opened.wait_for_chart("eps")
    opened.wait_for_chart("field")
    opened.page.wait_for_timeout(300)
    assert opened.messages == []
    assert address in opened.requests
    assert all(url.startswith(("file://", "data:", "blob:")) for url in opened.requests), opened.requests
    assert [url for url in opened.requests if url.startswith("file://")] == [address]


def test_no_part_of_a_label_becomes_a_tag(opened: OpenPage) -> None:
    opened.wait_for_chart("eps")
    assert opened.page.title() == f"A title {EVIL}"
    assert opened.page.locator("h1").inner_text() == f"A title {EVIL}"
    assert opened.page.locator("h1 b, table b, option b, figure b, .legend b").count() == 0
    assert EVIL in opened.column("numbers", 0) and opened.numbers()[0][0] == EVIL
    assert opened.page.locator('[data-of="objective"]').first.locator("option").all_inner_texts()[0] == EVIL


def test_the_slider_moves_the_numbers_by_keyboard(opened: OpenPage) -> None:
    opened.wait_for_chart("eps")
    slider, output = opened.page.locator("#figure-eps input"), opened.page.locator("#figure-eps output")
    assert output.inner_text() == "ε = 0.01"
    assert opened.numbers() == [[EVIL, "i2t", "9 ± 0.5"], ["Triplet", "t2i", "9"]]
    slider.focus()
    opened.page.keyboard.press("ArrowRight")
    assert output.inner_text() == "ε = 0.0178"
    assert opened.numbers() == [[EVIL, "i2t", "8 ± 0.5"], ["Triplet", "t2i", "8"]]
    assert slider.get_attribute("aria-valuetext") == "ε 0.0178"
    opened.page.keyboard.press("End")
    assert output.inner_text() == "ε = 1"
    assert [row[2] for row in opened.numbers()] == ["1 ± 0.5", "–"]  # not defined there: a dash, no number
    opened.page.keyboard.press("Home")
    assert [row[2] for row in opened.numbers()] == ["13 ± 0.5", "13"]
    assert opened.messages == []


def test_the_slider_moves_the_line_in_the_chart(opened: OpenPage) -> None:
    opened.wait_for_chart("eps")
    threshold = "document.querySelector('#figure-eps .plot').layout.shapes[0].x0"
    assert opened.page.evaluate(threshold) == pytest.approx(0.01)
    opened.page.locator("#figure-eps input").focus()
    opened.page.keyboard.press("ArrowLeft")
    assert opened.page.evaluate(threshold) == pytest.approx(X[3], rel=1e-4)


def test_the_menu_changes_the_lines(opened: OpenPage) -> None:
    opened.wait_for_chart("eps")
    first = opened.page.evaluate("document.querySelector('#figure-eps .plot').data[0].y[0]")
    opened.page.locator("#figure-eps select").select_option(label="VSRN <2>")
    assert opened.page.evaluate("document.querySelector('#figure-eps .plot').data[0].y[0]") == 10 * first == 130
    assert [row[2] for row in opened.numbers()] == ["90 ± 0.5", "90"]
    assert opened.messages == []


def test_the_fields_show_the_computed_weights(opened: OpenPage) -> None:
    opened.wait_for_chart("field")
    first, second = (opened.page.locator("#figure-field .field").nth(index) for index in (0, 1))
    trace = "document.querySelectorAll('#figure-field .plot')[0].data"
    expected = weight_field("triplet", points=11).pivot_table(index="s_neg", columns="s_pos", values="w_neg")
    assert second.locator('[data-of="objective"]').input_value() == "1"  # another loss than the first
    first.locator('[data-of="objective"]').select_option(label="triplet:margin=0.2")
    assert opened.page.evaluate(f"[...{trace}[0].x]") == pytest.approx(list(expected.columns))
    assert opened.page.evaluate(f"[...{trace}[0].y]") == pytest.approx(list(expected.index))
    assert np.array(opened.page.evaluate(f"{trace}[0].z")) == pytest.approx(expected.to_numpy())
    assert opened.page.evaluate(f"{trace}.map((item) => item.type)") == ["contour"]  # two values: one edge between them
    first.locator('[data-of="side"]').select_option("pull")
    pull = -weight_field("triplet", points=11).pivot_table(index="s_neg", columns="s_pos", values="w_pos")
    assert np.array(opened.page.evaluate(f"{trace}[0].z")) == pytest.approx(pull.to_numpy())
    assert opened.messages == []


def test_a_smooth_field_has_labelled_lines_in_the_unit_of_its_bar(opened: OpenPage) -> None:
    opened.wait_for_chart("field")
    heat, lines = opened.page.evaluate("document.querySelectorAll('#figure-field .plot')[0].data")
    assert (heat["type"], heat["zsmooth"], lines["type"]) == ("heatmap", "best", "contour")
    assert lines["z"] == heat["z"] and lines["contours"]["showlabels"] is True


def test_the_queries_of_a_model_are_drawn_over_both_fields(opened: OpenPage) -> None:
    opened.wait_for_chart("field")
    opened.page.locator('#figure-field [data-of="cloud"]').select_option(label=EVIL)
    last = "[...document.querySelectorAll('#figure-field .plot')].map((item) => item.data.at(-1).x)"
    assert opened.page.evaluate(last) == [[0.2, 0.5], [0.2, 0.5]]
    opened.page.locator('#figure-field [data-of="cloud"]').select_option(label="no model")
    modes = "[...document.querySelectorAll('#figure-field .plot')].map((item) => item.data.at(-1).mode ?? 'none')"
    assert opened.page.evaluate(modes) == ["none", "none"]


def test_a_header_sorts_by_number_and_again_the_other_way(opened: OpenPage) -> None:
    assert opened.page.locator("#table-numbers thead button").count() == 3  # not the group above them
    head = opened.page.locator("#table-numbers th", has_text="count")
    head.locator("button").click()
    assert opened.column("numbers", 1) == ["−2.5 ± 0.5", "0.0 ± 0.5", "9.0 ± 0.5", "10.0 ± 0.5"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").focus()
    opened.page.keyboard.press("Enter")
    assert opened.column("numbers", 0) == ["b", "a", "d", EVIL]
    assert head.get_attribute("aria-sort") == "descending"


def test_rows_without_a_number_stay_last_both_ways_and_words_sort_as_words(opened: OpenPage) -> None:
    rsum = opened.page.locator("#table-numbers th", has_text="rsum").locator("button")
    rsum.click()
    assert opened.column("numbers", 2) == ["3.0", "20.0", "100.0", "–"]
    rsum.click()
    assert opened.column("numbers", 2) == ["100.0", "20.0", "3.0", "–"]
    opened.page.locator("#table-numbers th", has_text="loss").locator("button").click()
    assert [word for word in opened.column("numbers", 0) if word != EVIL] == ["a", "b", "d"]
    assert opened.page.locator("#table-numbers [aria-sort]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_a_button_flips_it(browser: Any, address: str, scheme: str) -> None:
    opened = OpenPage(browser, address, color_scheme=scheme)
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    light, dark = ["rgb(255, 255, 255)", "rgb(27, 31, 36)"], ["rgb(20, 23, 27)", "rgb(230, 232, 235)"]
    assert opened.page.evaluate(colours) == (light if scheme == "light" else dark)
    opened.wait_for_chart("eps")
    opened.page.locator("#theme").focus()
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate(colours) == (dark if scheme == "light" else light)
    ink = opened.page.evaluate("document.querySelector('#figure-eps .plot').layout.font.color")
    assert ink == ("#e6e8eb" if scheme == "light" else "#1b1f24")
    assert opened.messages == []
    opened.context.close()


@pytest.mark.parametrize("width", [320, 400, 800, 1280, 1400])
def test_the_page_never_scrolls_sideways(browser: Any, address: str, width: int) -> None:
    opened = OpenPage(browser, address, viewport={"width": width, "height": 800})
    opened.unfold()
    opened.wait_for_chart("eps")
    opened.wait_for_chart("field")
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    hidden = opened.page.evaluate("document.querySelector('#table-wide').closest('.scroll').scrollWidth")
    assert width < 640 or hidden > width - 320  # a wide table scrolls within its own frame, and is cards on a telephone
    opened.context.close()


def test_folded_items_open_by_keyboard(opened: OpenPage) -> None:
    image, summary = (
        opened.page.locator("#figure-folded img"),
        opened.page.locator("summary", has_text="1 more picture"),
    )
    opened.page.evaluate("document.querySelectorAll('main details').forEach((item) => { item.open = false; })")
    assert not image.is_visible()
    summary.focus()
    opened.page.keyboard.press("Enter")
    assert image.is_visible() and image.evaluate("image => image.complete && image.naturalWidth > 0")


def test_every_picture_has_a_description_and_every_control_a_name(opened: OpenPage) -> None:
    images = opened.page.locator("img").all()
    assert len(images) == 3
    assert all((image.get_attribute("alt") or "").startswith("A line that falls") for image in images)
    unnamed = """() => {
      const controls = "input, select, button, summary, [role=region], [role=img]";
      const name = (item) => item.labels?.length || item.getAttribute("aria-label") || item.textContent.trim()
        || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent.trim();
      return [...document.querySelectorAll(controls)].filter((item) => !name(item)).map((item) => item.outerHTML);
    }"""
    assert opened.page.evaluate(unnamed) == []
    assert opened.page.locator("input, select").count() == 7


def test_headings_and_landmarks_are_in_order(opened: OpenPage) -> None:
    levels = opened.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((tag) => Number(tag.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert opened.page.locator("main").count() == opened.page.locator("nav[aria-label]").count() == 1
    assert opened.page.locator("html").get_attribute("lang") == "en"
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_links_of_the_contents_lead_to_their_sections(opened: OpenPage) -> None:
    opened.page.locator("nav a", has_text="Charts").click()
    assert opened.page.evaluate("document.querySelector(location.hash).textContent") == "Charts"


def test_the_navigation_stays_and_marks_the_chapter_in_view(opened: OpenPage) -> None:
    current = "document.querySelector('nav [aria-current]').textContent"
    assert opened.page.evaluate(current) == "Numbers"
    opened.page.locator("nav a", has_text="Charts").click()
    opened.page.wait_for_function(f"{current} === 'Charts'")
    assert opened.page.locator("nav a", has_text="Numbers").is_visible()
    assert opened.page.evaluate("document.querySelector('nav').getBoundingClientRect().top") == 0


def test_on_a_narrow_screen_the_navigation_is_a_menu(browser: Any, address: str) -> None:
    opened = OpenPage(browser, address, viewport={"width": 400, "height": 800})
    link = opened.page.locator("nav a", has_text="Charts")
    assert not link.is_visible()
    opened.page.locator("nav summary").focus()
    opened.page.keyboard.press("Enter")
    link.click()
    assert not link.is_visible() and opened.page.evaluate("location.hash") == "#charts"
    opened.context.close()


def test_names_of_rows_and_headings_stay_while_a_table_scrolls(opened: OpenPage) -> None:
    corner = "(e) => { const box = e.getBoundingClientRect(); return [Math.round(box.left), Math.round(box.top)]; }"
    scroll = opened.page.locator(".scroll", has=opened.page.locator("#table-named"))
    name, number = opened.page.locator("#table-named tbody th").first, opened.page.locator("#table-named td").first
    hint = opened.page.locator(".table", has=opened.page.locator("#table-named"))
    assert "more-right" in (hint.get_attribute("class") or "")
    before, moving = name.evaluate(corner), number.evaluate(corner)
    scroll.evaluate("(e) => { e.scrollLeft = 10000; }")
    opened.page.wait_for_timeout(100)
    assert name.evaluate(corner) == before and number.evaluate(corner)[0] < moving[0]
    assert "more-right" not in (hint.get_attribute("class") or "")
    head = opened.page.locator("#table-named thead th").last
    assert head.evaluate("(e) => getComputedStyle(e).position") == "sticky"


def test_on_a_telephone_every_row_is_a_card_of_labelled_numbers(browser: Any, address: str) -> None:
    opened = OpenPage(browser, address, viewport={"width": 400, "height": 800})
    opened.unfold()
    cell = opened.page.locator("#table-wide td").nth(5)
    assert cell.get_attribute("data-label") == "group 1 a long heading 5"
    assert cell.evaluate("(e) => getComputedStyle(e, '::before').content") == '"group 1 a long heading 5"'
    box = cell.bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 400
    opened.context.close()


def test_on_a_telephone_panels_side_by_side_stand_one_below_another(browser: Any, address: str) -> None:
    heights = {}
    for width in (400, 1280):
        opened = OpenPage(browser, address, viewport={"width": width, "height": 800})
        image = opened.page.locator("#figure-panels img")
        image.scroll_into_view_if_needed()
        natural = image.evaluate("async (e) => { await e.decode(); return [e.naturalWidth, e.naturalHeight]; }")
        heights[width] = natural[1] / natural[0]
        opened.context.close()
    assert heights[400] > 1.3 > 0.8 > heights[1280]


def test_published_numbers_of_other_data_are_shown_by_a_button(opened: OpenPage) -> None:
    cells = opened.page.locator("#table-beside td.published")
    button = opened.page.locator(".published-toggle")
    group = opened.page.locator('#table-beside th[scope="colgroup"]')
    assert button.count() == 1 and "of other data" in button.inner_text()
    assert not cells.first.is_visible() and group.get_attribute("colspan") == "1"
    button.focus()
    opened.page.keyboard.press("Enter")
    assert cells.first.is_visible() and group.get_attribute("colspan") == "2"
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert not cells.first.is_visible() and opened.messages == []


def test_a_link_to_a_folded_note_opens_it(opened: OpenPage) -> None:
    opened.page.evaluate("document.querySelectorAll('details.notes').forEach((item) => { item.open = false; })")
    opened.page.locator("#table-beside a.mark").first.click()
    opened.page.wait_for_function("document.querySelector('#note-1').checkVisibility()")
    assert "A doubt." in opened.page.locator("#note-1").inner_text()


def test_in_print_controls_are_hidden_and_folded_items_are_shown(opened: OpenPage) -> None:
    opened.page.emulate_media(media="print")
    opened.page.evaluate("document.querySelectorAll('main details').forEach((item) => { item.open = false; })")
    for what in ("nav", "#theme", "#figure-eps", "#figure-field"):  # print shows pictures of the same
        assert not opened.page.locator(what).is_visible(), what
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.page.locator("#figure-folded img").is_visible()
    assert opened.page.locator("#table-numbers").is_visible()
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not opened.page.locator("#table-numbers").is_visible()


def test_print_is_light_in_dark_mode(browser: Any, address: str) -> None:
    opened = OpenPage(browser, address, color_scheme="dark")
    opened.page.emulate_media(media="print")
    assert opened.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert opened.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    opened.context.close()


def test_it_prints(opened: OpenPage, tmp_path: Path) -> None:
    opened.page.pdf(path=str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF") and opened.messages == []


def test_without_scripts_text_tables_and_pictures_are_there(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#figure-line img").is_visible()
    page.locator("summary", has_text="Rows to sort").click()
    assert page.locator("#table-numbers").is_visible()
    assert not page.locator("#figure-eps").is_visible() and not page.locator("#theme").is_visible()
    assert page.locator("nav a", has_text="Charts").is_visible()
    context.close()
