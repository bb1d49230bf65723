"""The report page in a browser: quiet, off the network, by keyboard, at any width, in the dark and on paper."""

from __future__ import annotations

import itertools
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lossscope.engine.weight_fields import weight_field
from lossscope.plots import style
from lossscope.report.interactive import HeatmapChart, Series, SliderChart
from lossscope.report.page import Picture, Section, write_page
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian package chromium)"),
]
X = tuple(np.geomspace(0.001, 1.0, 13))
EVIL = "</script><b>NT & Xent</b>"


def picture(name: str) -> Picture:
    with style.screen():
        figure = style.new_figure()
        figure.add_subplot().plot([0, 1], [1, 0])
    return Picture(name, f"A line called {name}.", f"A line that falls from 1 to 0, {name}.", figure)


def numbers() -> Table:
    values = [("b", 10.0, 3.0), ("a", 9.0, math.nan), (EVIL, -2.5, 100.0), ("d", 1e-3, 20.0)]
    rows = tuple((Cell(text=word), Cell(mean=one, std=0.5), Cell(mean=other)) for word, one, other in values)
    return Table("numbers", "Rows to sort.", (("", "loss"), ("i2t", "count"), ("i2t", "rsum")), rows)


def wide() -> Table:
    heads = tuple((f"group {place // 4}", f"a long heading {place}") for place in range(16))
    cells = tuple(Cell(mean=float(place), std=0.1) for place in range(16))
    return Table("wide", "A table wider than a telephone, with a caption of many words in it.", heads, (cells,) * 3)


def dial() -> SliderChart:
    def lines(scale: float) -> tuple[Series, ...]:
        falling = tuple(scale * (13.0 - place) for place in range(13))
        return Series(EVIL, "i2t", falling, (0.5,) * 13), Series("Triplet", "t2i", (*falling[:-1], math.nan))

    panels = {"VSE++": lines(1.0), "VSRN <2>": lines(10.0)}
    return SliderChart("eps", "Move the slider.", X, panels, 4, "threshold ε", "samples above ε", "ε", y_log=True)


def field() -> HeatmapChart:
    frame = pd.concat([
        weight_field("ntxent", points=21).assign(objective=EVIL), weight_field("triplet", points=11)
    ], ignore_index=True)  # fmt: skip
    cloud = pd.DataFrame({"s_pos": [0.2, 0.5], "s_neg": [0.1, 0.3]})
    return HeatmapChart("field", "Point at a place.", frame, {EVIL: cloud})


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    sections = [
        Section("Numbers", "First.\n\nSecond.", (numbers(), wide(), picture("line"))),
        Section("Moves", "What moves.", (dial(), field()), (picture("folded"),)),
    ]
    out = write_page(tmp_path_factory.mktemp("page"), f"A title {EVIL}", "What was found.", sections, {"seeds": "0, 1"})
    return out.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        shown = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield shown
        shown.close()


class Seen:
    """A page that is open, and all that it said or asked for."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.wait_for_selector('html[data-ready="yes"]')

    def column(self, table: str, place: int) -> list[str]:
        cells = f"#table-{table} tbody tr > :nth-child({place + 1})"
        found: list[str] = self.page.locator(cells).all_inner_texts()
        return found

    def dial(self) -> list[list[str]]:
        """label, direction, number: the rows of the table under the slider."""
        rows = self.page.locator("#figure-eps tbody tr").all()
        return [row.locator("th, td").all_inner_texts() for row in rows]

    def drawn(self, name: str) -> None:
        """Scroll to a chart, and wait until it is there: charts are drawn when they come near."""
        self.page.locator(f"#figure-{name} .plot").scroll_into_view_if_needed()
        self.page.wait_for_selector(f"#figure-{name} .plot .main-svg")


@pytest.fixture
def seen(browser: Any, address: str) -> Iterator[Seen]:
    found = Seen(browser, address)
    yield found
    found.context.close()


def test_the_page_is_quiet_and_asks_nobody(seen: Seen, address: str) -> None:
    seen.drawn("eps")
    seen.drawn("field")
    seen.page.locator("details summary").click()
    seen.page.wait_for_timeout(300)
    assert seen.said == []
    assert address in seen.asked
    assert all(url.startswith(("file://", "data:", "blob:")) for url in seen.asked), seen.asked
    assert [url for url in seen.asked if url.startswith("file://")] == [address]


def test_nothing_of_a_label_becomes_a_tag(seen: Seen) -> None:
    seen.drawn("eps")
    assert seen.page.title() == f"A title {EVIL}"
    assert seen.page.locator("h1").inner_text() == f"A title {EVIL}"
    assert seen.page.locator("h1 b, table b, option b, figure b, .legend b").count() == 0
    assert EVIL in seen.column("numbers", 0) and seen.dial()[0][0] == EVIL
    assert seen.page.locator('[data-of="objective"] option').all_inner_texts()[0] == EVIL


def test_the_slider_moves_the_numbers_by_keyboard(seen: Seen) -> None:
    seen.drawn("eps")
    slider, output = seen.page.locator("#figure-eps input"), seen.page.locator("#figure-eps output")
    assert output.inner_text() == "ε = 0.01"
    assert seen.dial() == [[EVIL, "i2t", "9 ± 0.5"], ["Triplet", "t2i", "9"]]
    slider.focus()
    seen.page.keyboard.press("ArrowRight")
    assert output.inner_text() == "ε = 0.0178"
    assert seen.dial() == [[EVIL, "i2t", "8 ± 0.5"], ["Triplet", "t2i", "8"]]
    assert slider.get_attribute("aria-valuetext") == "ε 0.0178"
    seen.page.keyboard.press("End")
    assert output.inner_text() == "ε = 1"
    assert [row[2] for row in seen.dial()] == ["1 ± 0.5", "–"]  # not defined there: a gap, no number
    seen.page.keyboard.press("Home")
    assert [row[2] for row in seen.dial()] == ["13 ± 0.5", "13"]
    assert seen.said == []


def test_the_slider_moves_the_line_in_the_chart(seen: Seen) -> None:
    seen.drawn("eps")
    place = "document.querySelector('#figure-eps .plot').layout.shapes[0].x0"
    assert seen.page.evaluate(place) == pytest.approx(0.01)
    seen.page.locator("#figure-eps input").focus()
    seen.page.keyboard.press("ArrowLeft")
    assert seen.page.evaluate(place) == pytest.approx(X[3], rel=1e-4)


def test_the_menu_changes_the_lines(seen: Seen) -> None:
    seen.drawn("eps")
    first = seen.page.evaluate("document.querySelector('#figure-eps .plot').data[0].y[0]")
    seen.page.locator("#figure-eps select").select_option(label="VSRN <2>")
    assert seen.page.evaluate("document.querySelector('#figure-eps .plot').data[0].y[0]") == 10 * first == 130
    assert [row[2] for row in seen.dial()] == ["90 ± 0.5", "90"]
    assert seen.said == []


def test_the_field_shows_the_weight_that_was_computed(seen: Seen) -> None:
    seen.drawn("field")
    trace = "document.querySelector('#figure-field .plot').data"
    expected = weight_field("triplet", points=11).pivot_table(index="s_neg", columns="s_pos", values="w_neg")
    seen.page.locator('#figure-field [data-of="objective"]').select_option(label="triplet:margin=0.2")
    assert seen.page.evaluate(f"[...{trace}[0].x]") == pytest.approx(list(expected.columns))
    assert seen.page.evaluate(f"[...{trace}[0].y]") == pytest.approx(list(expected.index))
    assert np.array(seen.page.evaluate(f"{trace}[0].z")) == pytest.approx(expected.to_numpy())
    seen.page.locator('#figure-field [data-of="side"]').select_option("pull")
    pull = -weight_field("triplet", points=11).pivot_table(index="s_neg", columns="s_pos", values="w_pos")
    assert np.array(seen.page.evaluate(f"{trace}[0].z")) == pytest.approx(pull.to_numpy())
    seen.page.locator('#figure-field [data-of="cloud"]').select_option(label=EVIL)
    assert seen.page.evaluate(f"{trace}[1].x") == [0.2, 0.5]
    seen.page.locator('#figure-field [data-of="cloud"]').select_option(label="nobody")
    assert seen.page.evaluate(f"{trace}.length") == 1
    assert seen.said == []


def test_a_header_sorts_by_number_and_again_the_other_way(seen: Seen) -> None:
    assert seen.page.locator("#table-numbers thead button").count() == 3  # not the group above them
    head = seen.page.locator("#table-numbers th", has_text="count")
    head.locator("button").click()
    assert seen.column("numbers", 1) == ["-2.5 ± 0.5", "0.0 ± 0.5", "9.0 ± 0.5", "10.0 ± 0.5"]
    assert head.get_attribute("aria-sort") == "ascending"
    head.locator("button").focus()
    seen.page.keyboard.press("Enter")
    assert seen.column("numbers", 0) == ["b", "a", "d", EVIL]
    assert head.get_attribute("aria-sort") == "descending"


def test_rows_without_a_number_stay_last_both_ways_and_words_sort_as_words(seen: Seen) -> None:
    rsum = seen.page.locator("#table-numbers th", has_text="rsum").locator("button")
    rsum.click()
    assert seen.column("numbers", 2) == ["3.0", "20.0", "100.0", "–"]
    rsum.click()
    assert seen.column("numbers", 2) == ["100.0", "20.0", "3.0", "–"]
    seen.page.locator("#table-numbers th", has_text="loss").locator("button").click()
    assert [word for word in seen.column("numbers", 0) if word != EVIL] == ["a", "b", "d"]
    assert seen.page.locator("#table-numbers [aria-sort]").count() == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_system_and_a_button_flips_it(browser: Any, address: str, scheme: str) -> None:
    seen = Seen(browser, address, color_scheme=scheme)
    colours = "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
    light, dark = ["rgb(255, 255, 255)", "rgb(27, 31, 36)"], ["rgb(20, 23, 27)", "rgb(230, 232, 235)"]
    assert seen.page.evaluate(colours) == (light if scheme == "light" else dark)
    seen.drawn("eps")
    seen.page.locator("#theme").focus()
    seen.page.keyboard.press("Enter")
    assert seen.page.evaluate(colours) == (dark if scheme == "light" else light)
    ink = seen.page.evaluate("document.querySelector('#figure-eps .plot').layout.font.color")
    assert ink == ("#e6e8eb" if scheme == "light" else "#1b1f24")
    assert seen.said == []
    seen.context.close()


@pytest.mark.parametrize("width", [320, 400, 1280])
def test_the_page_never_scrolls_sideways(browser: Any, address: str, width: int) -> None:
    seen = Seen(browser, address, viewport={"width": width, "height": 800})
    seen.page.locator("details summary").click()
    seen.drawn("eps")
    seen.drawn("field")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    hidden = seen.page.evaluate("document.querySelector('#table-wide').closest('.scroll').scrollWidth")
    assert width == 1280 or hidden > width  # what is wide scrolls within its own frame
    seen.context.close()


def test_what_is_folded_opens_by_keyboard(seen: Seen) -> None:
    image = seen.page.locator("#figure-folded img")
    assert not image.is_visible()
    seen.page.locator("details summary").focus()
    seen.page.keyboard.press("Enter")
    assert image.is_visible() and image.evaluate("one => one.complete && one.naturalWidth > 0")


def test_every_picture_has_words_and_every_control_a_name(seen: Seen) -> None:
    images = seen.page.locator("img").all()
    assert len(images) == 2
    assert all((image.get_attribute("alt") or "").startswith("A line that falls") for image in images)
    unnamed = """() => {
      const controls = "input, select, button, summary, [role=region], [role=img]";
      const words = (one) => one.labels?.length || one.getAttribute("aria-label") || one.textContent.trim()
        || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent.trim();
      return [...document.querySelectorAll(controls)].filter((one) => !words(one)).map((one) => one.outerHTML);
    }"""
    assert seen.page.evaluate(unnamed) == []
    assert seen.page.locator("input, select").count() == 5


def test_headings_and_landmarks_are_in_order(seen: Seen) -> None:
    levels = seen.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((one) => Number(one.tagName[1]))")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    assert seen.page.locator("main").count() == seen.page.locator("nav[aria-label]").count() == 1
    assert seen.page.locator("html").get_attribute("lang") == "en"
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_links_of_the_list_lead_to_their_sections(seen: Seen) -> None:
    seen.page.locator("nav a", has_text="Moves").click()
    assert seen.page.evaluate("document.querySelector(location.hash).textContent") == "Moves"


def test_on_paper_controls_are_gone_and_what_was_folded_is_there(seen: Seen) -> None:
    seen.page.emulate_media(media="print")
    for what in ("nav", "#theme", "#figure-eps .controls", "#figure-field .controls"):
        assert not seen.page.locator(what).is_visible(), what
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.page.locator("#figure-folded img").is_visible()
    assert seen.page.locator("#table-numbers").is_visible()
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_on_paper_the_dark_stays_out(browser: Any, address: str) -> None:
    seen = Seen(browser, address, color_scheme="dark")
    seen.page.emulate_media(media="print")
    assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert seen.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    seen.context.close()


def test_it_prints(seen: Seen, tmp_path: Path) -> None:
    seen.page.pdf(path=str(tmp_path / "page.pdf"))
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF") and seen.said == []


def test_without_scripts_words_numbers_and_pictures_are_there(browser: Any, address: str) -> None:
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(address)
    assert page.locator("#table-numbers").is_visible() and page.locator("#figure-line img").is_visible()
    assert not page.locator("#figure-eps").is_visible() and not page.locator("#theme").is_visible()
    assert page.locator("details summary").is_visible()
    context.close()
