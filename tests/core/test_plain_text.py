"""Does an extra mark, blank, title or article make a near duplicate, and another name, number or colour none?"""

from __future__ import annotations

import pytest

from lossscope.core.normal_form import normal_form
from lossscope.core.plain_text import is_near_duplicate, is_same_text

TEXT = "Emma Stone is a nurse in a well-known hospital of York, and she has 482 patients on skateboards"
SAME = {
    "full stop": f"{TEXT}.",
    "quotes": f"“{TEXT}.”",
    "comma": TEXT.replace(" is ", ", is "),
    "mark without a blank": TEXT.replace("York, and", "York,and"),
    "no hyphen": TEXT.replace("well-known", "well known"),
    "brackets": TEXT.replace("of York", "(of York)"),
    "blank within a word": TEXT.replace("skateboards", "skate boards"),
    "case and blanks": f"  {TEXT.upper()}\n",
    "title": f"Nurses of York: {TEXT}",
    "title and full stop": f"Nurses of York - {TEXT}.",
    "bullet": f"- {TEXT}",
}
LIGHT = {
    "article more": TEXT.replace("on skateboards", "on the skateboards"),
    "article less": TEXT.replace("in a well", "in well"),
    "article for another": TEXT.replace("is a nurse", "is the nurse"),
    "form of be less": TEXT.replace("Stone is a", "Stone a"),
    "joining word less": TEXT.replace("York, and she", "York, she"),
}
OTHER = {
    "another name": TEXT.replace("Emma", "Mary"),
    "a name more": TEXT.replace("Stone", "Jane Stone"),
    "a letter of a name": TEXT.replace("Stone", "Stones"),
    "another town": TEXT.replace("York", "Bath"),
    "another number": TEXT.replace("482", "116"),
    "a mark within a number": TEXT.replace("482", "4,82"),
    "a negative number": TEXT.replace("482", "-482"),
    "a blank within a number": TEXT.replace("482", "48 2"),
    "a number more": f"{TEXT} 5",
    "negation": TEXT.replace("is a nurse", "is not a nurse"),
    "no": TEXT.replace("has 482", "has no 482"),
    "a word replaced": TEXT.replace("nurse", "doctor"),
    "a word more": TEXT.replace("a nurse", "a good nurse"),
    "a last word": f"{TEXT} alone",
    "a word moved": TEXT.replace("a nurse in a", "in a nurse a"),
    "two light words": TEXT.replace("is a nurse in a", "nurse in a"),
    "percent": TEXT.replace("482", "482%"),
    "title with a word less": f"Nurses: {TEXT.replace('patients ', '')}",
    "longer title": f"{'Nurses of York and of other towns ' * 4}: {TEXT}",
    "both have titles": f"Nurses: {TEXT}",
}


def compare(text: str, other: str = TEXT) -> tuple[bool, bool]:
    """Return whether two texts are equal, and whether they are near duplicates, in either order."""
    pair = normal_form(text), normal_form(other)
    answers = is_same_text(*pair), is_near_duplicate(*pair)
    assert answers == (is_same_text(*reversed(pair)), is_near_duplicate(*reversed(pair)))
    return answers


@pytest.mark.parametrize("what", SAME)
def test_punctuation_white_space_and_titles_make_no_other_text(what: str) -> None:
    assert compare(SAME[what]) == (True, normal_form(SAME[what]) != normal_form(TEXT))


@pytest.mark.parametrize("what", LIGHT)
def test_a_word_that_says_little_makes_a_near_duplicate_alone(what: str) -> None:
    assert compare(LIGHT[what]) == (False, True)


@pytest.mark.parametrize("what", OTHER)
def test_any_other_word_makes_another_text(what: str) -> None:
    other = f"Doctors: {TEXT}" if what == "both have titles" else TEXT
    assert compare(OTHER[what], other) == (False, False)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("a man in a red shirt", "the man in a red shirt"),  # few words
        ("yes", "yes."),
        ("a 482", "a 482."),  # short: an id
        ("the temperature fell to .5 degrees that day", "the temperature fell to 5 degrees that day"),
        ("the town had 5,000 people in that year", "the town had 5.000 people in that year"),
        ("in version 1 23 the bug was fixed at last", "in version 12 3 the bug was fixed at last"),
        ("the price fell by ٣.٥ euros in that year", "the price fell by ٣٥ euros in that year"),
        ("def f(a, b): return a + b or nothing", "def f(a, b): return a - b or nothing"),
    ],
)
def test_short_texts_and_numbers_are_no_copies(text: str, other: str) -> None:
    assert compare(text, other) == (False, False)


def test_a_full_stop_of_a_language_without_blanks() -> None:
    text = "一个男人骑着一匹棕色的马走过一片绿色的田野和小河"
    assert compare(f"{text}。", text) == (True, True) and compare(f"{text}吗", text) == (False, False)
