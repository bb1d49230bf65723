"""Can one look at pairs, label them with a key, and read the downloaded labels back, whatever the texts hold?"""

from __future__ import annotations

import base64
import io
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from lossscope.audit.estimate.design import FIRST_ROUND, Counted, Stratum, counted_rate, next_stratum
from lossscope.audit.estimate.pair_file import DesignRow, answer_column, pair_columns
from lossscope.audit.output.page import PageDesign, PageItem, PagePair, write_page
from lossscope.core.sides import IMAGE_TEXT, QUERY_DOCUMENT, Sides
from lossscope.errors import InputError
from lossscope.io.csv_tables import read_csv
from lossscope.visible_text import show_text
from tests.chromium import in_browser, watch
from tests.hostile_names import HOSTILE

FACTS = [("False negatives", "4.1 %"), ("state", "transferred: probabilities are of photos")]
FORMULAS = ("=1+1", "+x", "-x", "@SUM(A1)", "'=quoted", "a,b", 'say "x"', "two\nlines", " blank ", "é ü 漢")


def picture(seed: int, size: int = 8) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (3, size, size + 2), dtype=np.uint8)


def image_pairs(n: int) -> list[PagePair]:
    reasons = (("Texts of both say the same.", 2.0), ("The images differ.", -1.0))
    return [
        PagePair(
            PageItem(f"i{k}", (f"own caption {k}", "another"), picture(k)),
            PageItem(f"c{k}", (f"caption {k}",), picture(k + n)),
            0.9 - 0.1 * k,
            reasons,
        )
        for k in range(n)
    ]


def text_pairs(names: Sequence[str]) -> list[PagePair]:
    """Return pairs with these names as ids, texts and reasons."""
    return [PagePair(PageItem(name, (name,)), PageItem(f"{name}d", (name,)), 0.5, ((name, 1.0),)) for name in names]


def data_of(page: Path) -> Any:
    """Return the data of a page's script."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(encoding="utf-8"))
    assert found is not None
    return json.loads(found[1])


def test_pixels_are_kept_and_each_picture_is_there_once(tmp_path: Path) -> None:
    pairs = image_pairs(2)
    same = PagePair(pairs[0].query, pairs[1].candidate, 0.1, ())
    data = data_of(write_page(tmp_path / "page.html", [*pairs, same], "Pairs", IMAGE_TEXT, FACTS))
    assert len(data["pictures"]) == 4
    assert data["pairs"][2]["query"]["picture"] == data["pairs"][0]["query"]["picture"]
    address = data["pictures"][data["pairs"][0]["query"]["picture"]]
    with Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/png;base64,")))) as image:
        assert np.array_equal(np.asarray(image).transpose(2, 0, 1), picture(0))


def test_a_large_picture_is_made_smaller(tmp_path: Path) -> None:
    pairs = [PagePair(PageItem("i", (), picture(0, 1000)), PageItem("c", ("text",)), 0.5, ())]
    address = data_of(write_page(tmp_path / "page.html", pairs, "Pairs", IMAGE_TEXT, []))["pictures"][0]
    with Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/webp;base64,")))) as image:
        assert max(image.size) == 512


def test_numbers_that_are_none_are_json(tmp_path: Path) -> None:
    pairs = [PagePair(PageItem("q"), PageItem("d"), float("nan"), (("certain", float("inf")),))]
    data = data_of(write_page(tmp_path / "page.html", pairs, "Pairs", QUERY_DOCUMENT, []))
    assert data["pairs"][0]["probability"] is None and data["pairs"][0]["reasons"] == [["certain", None]]


def test_the_browser_keeps_answers_by_pairs_and_not_by_their_order(tmp_path: Path) -> None:
    pairs = image_pairs(3)
    changed = [*pairs[:2], PagePair(pairs[2].query, PageItem("c2", ("another text",)), 0.1, ())]
    keys = [
        data_of(write_page(tmp_path / "page.html", shown, "Pairs", IMAGE_TEXT, []))["storage"]
        for shown in (pairs, pairs[::-1], changed)
    ]
    assert keys[0] == keys[1] != keys[2]


def test_wrong_pairs_and_answers_are_refused(tmp_path: Path) -> None:
    pairs = image_pairs(1)
    with pytest.raises(InputError, match=r"once; got \('i0', 'c0'\) twice"):
        write_page(tmp_path / "page.html", pairs * 2, "Pairs", IMAGE_TEXT, [])
    with pytest.raises(InputError, match="must be yes, no, unsure; got 'maybe'"):
        write_page(tmp_path / "page.html", pairs, "Pairs", IMAGE_TEXT, [], {("i0", "c0"): "maybe"})


def test_an_answer_of_one_set_is_of_both_orders(tmp_path: Path) -> None:
    """The page did not show an earlier answer to (b, a) at (a, b), and wrote it beside the new one."""
    sides = Sides("item", None)
    known = {("ad", "a"): "yes", ("x", "y"): "no"}
    data = data_of(write_page(tmp_path / "page.html", text_pairs(["a", "b"]), "Pairs", sides, [], known))
    assert [pair["given"] for pair in data["pairs"]] == ["yes", None]
    assert data["others"] == ["x,y,no\n"]


class OpenPage:
    """A page in the browser, with its console messages, its dialogs and its requests."""

    def __init__(self, browser: Any, page: Path, script: str = "") -> None:
        self.address = page.as_uri()
        self.context = browser.new_context(offline=True)
        self.page = self.context.new_page()
        self.messages, self.requests = watch(self.page)
        if script:
            self.page.add_init_script(script)
        self.load()

    def load(self) -> None:
        self.page.goto(self.address)
        self.page.wait_for_selector('html[data-ready="yes"]')

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def text(self, id: str) -> str:
        return str(self.page.locator(f"#{id}").inner_text())

    @property
    def answers(self) -> list[str]:
        """The answers in the list of pairs; empty without an answer."""
        return [str(row.get_attribute("data-answer")) for row in self.page.locator(".row").all()]

    def download(self, path: Path) -> list[list[str]]:
        """Press d; return the rows of the file as `read_csv` reads them."""
        with self.page.expect_download() as download:
            self.press("d")
        assert download.value.suggested_filename == "labels.csv"
        download.value.save_as(path)
        table = read_csv(path)
        return [list(table.columns), *table.astype(object).to_numpy().tolist()]


@in_browser
def test_pairs_are_labelled_by_key_and_read_back(browser: Any, tmp_path: Path) -> None:
    page = write_page(tmp_path / "page.html", image_pairs(5), "Which pairs match?", IMAGE_TEXT, FACTS)
    opened = OpenPage(browser, page)
    assert opened.page.title() == opened.page.locator("h1").inner_text() == "Which pairs match?"
    assert opened.text("question") == "Does this caption match this image?"
    assert opened.page.locator("#query img").get_attribute("alt") == "image i0"
    assert opened.page.locator("#query li").all_inner_texts() == ["own caption 0", "another"]
    assert opened.page.locator("#candidate .text").inner_text() == "caption 0"
    assert opened.page.locator("#candidate figcaption").inner_text() == "The image that it belongs to"
    assert opened.page.locator("#reasons .number").all_inner_texts() == ["+2.00", "−1.00"]
    assert opened.page.locator("#download").is_disabled()
    opened.press("y")
    assert opened.text("place") == "Pair 2 of 5" and opened.text("status") == "Pair 1: yes."
    opened.press("n", "U", "y", "z")
    assert opened.text("place") == "Pair 4 of 5" and opened.text("status") == "Pair 4: unlabelled again."
    assert opened.text("count") == "3 of 5 labelled"
    opened.load()
    assert opened.answers == ["yes", "no", "unsure", "", ""]
    assert opened.text("place") == "Pair 4 of 5"  # the first without an answer
    opened.press("ArrowLeft", "ArrowLeft")
    assert opened.page.locator("#no").get_attribute("aria-pressed") == "true"
    opened.press("y", "z", "Control+y")  # another answer, taken back; not a key with a modifier
    assert opened.answers == ["yes", "no", "unsure", "", ""]
    expected = [["image", "caption", "answer"], ["i0", "c0", "yes"], ["i1", "c1", "no"], ["i2", "c2", "unsure"]]
    assert opened.download(tmp_path / "labels.csv") == expected
    assert opened.messages == []
    assert {url for url in opened.requests if not url.startswith(("data:", "blob:"))} == {page.as_uri()}
    opened.context.close()


@in_browser
def test_the_page_opens_its_storage_when_the_browser_process_knows_of_it(browser: Any, tmp_path: Path) -> None:
    """When the first line of the script opened the storage, it sometimes had no process, and labels were lost."""
    order = """window.order = [];
      const { get } = Object.getOwnPropertyDescriptor(window, "localStorage");
      Object.defineProperty(window, "localStorage", { get() { order.push("opened"); return get.call(window); } });
      const query = navigator.permissions.query.bind(navigator.permissions);
      navigator.permissions.query = async (name) => { await query(name); order.push("answered"); };"""
    page = write_page(tmp_path / "page.html", image_pairs(2), "Pairs", IMAGE_TEXT, [])
    opened = OpenPage(browser, page, script=order)
    assert opened.page.evaluate("order") == ["answered", "opened"]
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_a_browser_without_permissions_opens_the_page(browser: Any, tmp_path: Path) -> None:
    none = "Object.defineProperty(navigator, 'permissions', { value: undefined })"
    page = write_page(tmp_path / "page.html", image_pairs(2), "Pairs", IMAGE_TEXT, [])
    opened = OpenPage(browser, page, script=none)
    opened.press("y")
    assert opened.answers == ["yes", ""] and opened.messages == []
    assert not opened.page.locator("#not-kept").is_visible()
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_buttons_do_what_keys_do(browser: Any, tmp_path: Path) -> None:
    opened = OpenPage(browser, write_page(tmp_path / "page.html", image_pairs(3), "Pairs", IMAGE_TEXT, []))
    for button in ("yes", "previous", "no", "undo", "next", "unsure"):
        opened.page.locator(f"#{button}").click()
    assert opened.answers == ["yes", "unsure", ""]
    opened.page.locator("#show-unlabelled").click()
    assert opened.page.locator(".row:visible").count() == 1 and opened.text("place") == "Pair 3 of 3"
    opened.press("y")
    assert opened.text("none-left") == "None is unlabelled."
    assert "All pairs are labelled" in opened.text("status")
    opened.page.locator("#show-all").click()
    opened.page.locator(".row").first.click()
    assert opened.text("place") == "Pair 1 of 3"
    with opened.page.expect_download():
        opened.page.locator("#download").click()
    assert opened.messages == []
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_ids_come_back_as_they_were(browser: Any, tmp_path: Path) -> None:
    page = write_page(tmp_path / "page.html", text_pairs(FORMULAS), "Pairs", Sides("item", None), [])
    opened = OpenPage(browser, page)
    opened.press(*"y" * len(FORMULAS))
    expected = [["item", "item 2", "answer"], *([name, f"{name}d", "yes"] for name in FORMULAS)]
    assert opened.download(tmp_path / "labels.csv") == expected
    assert "\n=" not in (tmp_path / "labels.csv").read_text(encoding="utf-8")
    assert opened.messages == []
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_hostile_texts_are_shown_as_text(browser: Any, tmp_path: Path) -> None:
    sides, names = Sides("question", "answer"), tuple(HOSTILE)
    facts = [(name, name) for name in names]
    opened = OpenPage(browser, write_page(tmp_path / "page.html", text_pairs(names), " ".join(names), sides, facts))
    for name in names:
        for selector in ("#query .text", "#candidate .text", "#reasons li > span:last-child"):
            keep = "" if selector.startswith("#reasons") else "\n\t"
            assert opened.page.locator(selector).text_content() == show_text(name, keep)
        opened.press("n")
    assert opened.page.locator("#query *:not(h3, h4, div, p, span, ul, li, figure, img), dl a, dl b, h1 *").count() == 0
    made = "iframe, object, embed, form, base, link, a, [onerror], [onload], img"
    assert opened.page.locator(made).count() == 0
    assert opened.page.evaluate("window.stolen") is None
    rows = opened.download(tmp_path / "labels.csv")
    assert rows[0] == [*pair_columns(sides), answer_column(sides)] == ["question", "answer", "label"]
    assert [row[2] for row in rows[1:]] == ["no"] * len(names)
    assert [row[0] for row in rows[1:]] == [show_text(name.replace("\r", "\n"), "\n\t") for name in names]
    assert opened.messages == []
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_known_answers_are_shown_and_none_is_lost(browser: Any, tmp_path: Path) -> None:
    pairs = image_pairs(3)
    known = {("i1", "c1"): "no", ("other", "=pair"): "yes"}
    page = write_page(tmp_path / "page.html", pairs, "Pairs", IMAGE_TEXT, [], known)
    opened = OpenPage(browser, page)
    assert opened.answers == ["", "no", ""]
    opened.press("ArrowRight", "y")
    assert opened.answers == ["", "yes", ""]
    opened.load()
    assert opened.answers == ["", "yes", ""]  # the newer answer, kept by the browser
    rows = opened.download(tmp_path / "labels.csv")
    assert rows[1:] == [["other", "=pair", "yes"], ["i1", "c1", "yes"]]
    write_page(page, pairs[::-1], "Pairs", IMAGE_TEXT, [], {("i1", "c1"): "unsure"})
    opened.load()
    assert opened.answers == ["", "unsure", ""]  # given anew since
    opened.context.close()


@in_browser
@pytest.mark.thorough
@pytest.mark.parametrize("sides", [QUERY_DOCUMENT, Sides("item", None)], ids=["two sides", "one set"])
def test_texts_without_pictures(browser: Any, tmp_path: Path, sides: Sides) -> None:
    texts = ("", "short", "من هو مؤلف هذا الكتاب؟", "word " * 5000)
    pairs = [PagePair(PageItem(f"q{k}", (text,)), PageItem(f"d{k}", (text,)), 0.5, ()) for k, text in enumerate(texts)]
    pairs.append(PagePair(PageItem("q"), PageItem("d"), 0.5, ()))
    opened = OpenPage(browser, write_page(tmp_path / "page.html", pairs, "Pairs", sides, []))
    assert opened.page.locator("#query .text").inner_text() == "(empty text)"
    opened.press("y", "y")
    direction = "getComputedStyle(document.querySelector('#query .text span')).direction"
    assert opened.page.evaluate(direction) == "rtl"
    opened.press("y")
    box = opened.page.locator("#candidate .texts")
    assert box.get_attribute("tabindex") == "0"  # it scrolls, by keyboard too
    assert box.bounding_box()["height"] < 500
    opened.press("y", "y")
    assert opened.text("count") == "5 of 5 labelled" and opened.text("query").endswith("(nothing to show)")
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.messages == []
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_a_browser_that_keeps_nothing_says_so(browser: Any, tmp_path: Path) -> None:
    none = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('denied'); } })"
    page = write_page(tmp_path / "page.html", image_pairs(2), "Pairs", IMAGE_TEXT, [])
    opened = OpenPage(browser, page, script=none)
    assert opened.page.locator("#not-kept").is_visible()
    opened.press("y")
    assert opened.download(tmp_path / "labels.csv")[1:] == [["i0", "c0", "yes"]]
    assert opened.messages == []
    opened.context.close()


@in_browser
@pytest.mark.thorough
def test_a_page_without_pairs_opens(browser: Any, tmp_path: Path) -> None:
    opened = OpenPage(browser, write_page(tmp_path / "page.html", [], "Pairs", IMAGE_TEXT, FACTS))
    opened.press("y", "z", "d", "ArrowRight")
    assert opened.text("count") == "No pairs" and opened.messages == []
    opened.context.close()


STRATA = (Stratum(0.01), Stratum(0.19), Stratum(0.8))


def design_pairs(each: int = 12, for_fit: int = 2) -> list[PagePair]:
    """Return pairs of three strata in turn, then pairs that serve the fit alone."""
    rows = [DesignRow(k % 3 + 1, 3, STRATA[k % 3].share) for k in range(3 * each)]
    pairs = text_pairs([f"q{k}" for k in range(3 * each + for_fit)])
    return [replace(pair, design=row) for pair, row in zip(pairs, [*rows, *[None] * for_fit], strict=True)]


def is_match(number: int) -> bool:
    """Return whether a pair matches: 2 in 3 of the first stratum, 1 in 6 of the second."""
    return (number % 3 == 0 and number % 9 != 6) or number % 18 == 1


def assert_counted(text: str, counted: Counted) -> None:
    """Assert that the text has the numbers, but for the rounding of a half."""
    rate = counted.rate
    assert text.startswith(f"Counted from {counted.answers} answers, no model: ")
    shown = [float(number) for number in re.findall(r"([\d.e-]+) %", text)]
    assert rate.low is not None and rate.high is not None
    for number, exact in zip(shown, (rate.value, rate.low, rate.high), strict=True):
        magnitude = 10.0 ** (math.floor(math.log10(100 * exact)) - 1) if exact else 1.0
        assert abs(number - 100 * exact) <= 0.500001 * magnitude


@in_browser
def test_the_page_asks_what_python_asks_and_counts_the_same_rate(browser: Any, tmp_path: Path) -> None:
    pairs, strata = design_pairs(), list(STRATA)
    design = PageDesign({}, STRATA, precision=4.0, size=20)
    opened = OpenPage(browser, write_page(tmp_path / "page.html", pairs, "Pairs", QUERY_DOCUMENT, [], None, design))
    queues = [[number for number in range(36) if number % 3 == k] for k in range(3)]
    asked = []
    for _ in range(16):
        stratum = next_stratum(strata, [bool(queue) for queue in queues])
        assert stratum is not None
        number = queues[stratum].pop(0)
        assert opened.text("place") == f"Pair {number + 1} of 38"
        opened.press("y" if is_match(number) else "n")
        of = strata[stratum]
        strata[stratum] = Stratum(of.share, of.answers + 1, of.yes + is_match(number))
        counted = counted_rate(strata)
        if counted is None:
            assert opened.text("rate").startswith("Counted from")
        else:
            assert_counted(opened.text("rate"), counted)
            assert not opened.text("enough")
        asked.append(number)
    assert opened.page.locator("#history line").count() == 14  # each stratum has an answer from the third on
    assert "Interval after 3 answers" in str(opened.page.locator("#history").get_attribute("aria-label"))
    assert opened.text("count") == "16 of 20 labelled"
    before = opened.text("rate")
    opened.press("u")
    assert opened.text("rate") == before and "1 unsure, not counted" in opened.text("not-counted")
    opened.press("z", "z")
    assert opened.text("place") == f"Pair {asked[-1] + 1} of 38" and "from 15 answers" in opened.text("rate")
    opened.load()
    assert "from 15 answers" in opened.text("rate") and opened.messages == []
    opened.context.close()


@in_browser
def test_pairs_that_are_ranked_only_have_no_probability_on_the_page(browser: Any, tmp_path: Path) -> None:
    """An audit without probabilities gives NaN, but for copies."""
    pairs = [PagePair(PageItem(f"q{k}"), PageItem(f"d{k}"), p, ()) for k, p in enumerate((1.0, float("nan")))]
    opened = OpenPage(browser, write_page(tmp_path / "page.html", pairs, "Pairs", QUERY_DOCUMENT, []))
    assert opened.text("probability") == "the text of a positive"
    opened.press("n")
    assert opened.text("place") == "Pair 2 of 2" and opened.text("probability") == ""
    assert opened.page.locator("#list .number").all_inner_texts() == ["1", "copy", "2", ""]
    assert opened.messages == []
    opened.context.close()


@in_browser
def test_answers_ahead_of_their_turn_count_when_their_turn_comes(browser: Any, tmp_path: Path) -> None:
    """A person who picks pairs from the list would choose the sample of the rate."""
    pairs = design_pairs(each=2, for_fit=1)
    known, drawn = {("e", "ed"): "no"}, {("e", "ed"): DesignRow(3, 3, 0.8)}
    design = PageDesign(drawn, (*STRATA[:2], Stratum(0.8, 1, 0)), size=6)
    page = write_page(tmp_path / "page.html", pairs, "Pairs", QUERY_DOCUMENT, [], known, design)
    opened = OpenPage(browser, page)
    opened.page.locator(".row").nth(3).click()  # the second pair of the first stratum
    opened.press("y")
    assert "1 answered ahead of their turn" in opened.text("not-counted")
    assert opened.text("rate").startswith("Counted from 1 answers")
    opened.page.locator(".row").nth(6).click()  # for the fit
    opened.press("n")
    rows = opened.download(tmp_path / "labels.csv")
    assert rows[0] == ["query", "document", "answer", "stratum", "share"]
    assert rows[1][:4] == ["e", "ed", "no", "3 of 3"]
    assert [row[0] for row in rows[2:] if isinstance(row[3], str)] == []
    assert opened.text("place") == "Pair 1 of 7"
    opened.press("y")
    assert not opened.text("not-counted") and opened.text("rate").startswith("Counted from 3 answers")
    rows = opened.download(tmp_path / "labels.csv")
    assert [row[3:] for row in rows[2:4]] == [["1 of 3", 0.01]] * 2
    assert opened.messages == []
    opened.context.close()


@in_browser
def test_it_says_when_answers_are_enough_and_goes_on(browser: Any, tmp_path: Path) -> None:
    shares = (Stratum(0.5), Stratum(0.5))
    pairs = text_pairs([f"q{k}" for k in range(41)])
    pairs = [replace(pair, design=DesignRow(k % 2 + 1, 2, 0.5) if k < 40 else None) for k, pair in enumerate(pairs)]
    design = PageDesign({}, shares, precision=8.0, size=20)
    opened = OpenPage(browser, write_page(tmp_path / "page.html", pairs, "Pairs", QUERY_DOCUMENT, [], None, design))
    presses = 0
    while not opened.text("enough"):
        opened.press("yn"[presses // 2 % 2])
        presses += 1
        assert presses < 10
    assert presses >= 2 * FIRST_ROUND
    assert opened.text("enough") == "Precise enough, but --labels needs 10 answers, yes and no among them."
    assert opened.text("enough") in opened.text("status")
    assert opened.text("place") == "Pair 41 of 41"  # pairs for the fit come next
    opened.press(*"yn" * 5)
    assert opened.text("enough") == "Enough: download. More answers narrow it further."
    assert opened.text("place").endswith("of 41") and opened.messages == []
    opened.context.close()


def test_a_page_of_suspects_has_no_design(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page.html", text_pairs(["a"]), "Pairs", QUERY_DOCUMENT, [], None, PageDesign({}))
    data = data_of(page)
    assert data["design"] is None and data["header"] == "query,document,answer\n"
    assert 'id="rate"' not in page.read_text(encoding="utf-8")
