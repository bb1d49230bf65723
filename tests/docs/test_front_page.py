"""Is README short, and does its picture show what the commands print?"""

from __future__ import annotations

import html
import re
from pathlib import Path

import make_terminal
import pytest

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
PICTURE = make_terminal.PICTURE.read_text(encoding="utf-8")
ENDED = re.compile(r"[\d.,]+ at the start, [\d.,]+ at the end")


def test_the_front_page_is_read_in_a_minute_and_has_both_set_up_commands() -> None:
    """README had 1,973 words and 26 commands."""
    assert len(README.split()) <= 500
    assert "\nmake demo " in README and "\nmake test " in README and "(figures/doctor.svg)" in README


def test_the_picture_needs_no_network() -> None:
    assert not re.search(r"https?://(?!www\.w3\.org)", PICTURE)
    assert "@font-face" not in PICTURE


@pytest.mark.thorough
def test_the_picture_shows_what_the_commands_print(tmp_path: Path) -> None:
    """The test compares words and their order.

    A learning rate of 1 makes last bits large: another processor ends at another model, and the doctor may say
    something else of it. There only the start is compared: what is typed, and which numbers the doctor begins with.
    """
    texts = re.findall(r"<text class=\"lossscope-r\d+\"[^>]*>(.*?)</text>", PICTURE)
    shown = html.unescape(" ".join(texts)).replace("\xa0", " ")
    words = re.compile(r"[a-z][a-z-]+")
    printed = make_terminal.terminal(tmp_path).plain
    shown, printed = " ".join(shown.split()), " ".join(printed.split())
    if ENDED.findall(shown) != ENDED.findall(printed):
        shown, printed = (text.partition(" checks;")[0].rpartition(")")[0] for text in (shown, printed))
    assert words.findall(shown) == words.findall(printed)
