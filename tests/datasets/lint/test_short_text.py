"""Does lint find texts cut into characters, and not labels, short answers or other languages?"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from lossscope.datasets.lint.suite import lint

from .test_suite import ListedRows, Row, counts

PASSAGE = "a passage of many words that answers the question number"
LONG = "x" * 40


def short(rows: Sequence[Row]) -> int:
    return counts(lint({"a": ListedRows(rows)})).get("short-text", 0)


SICK: dict[str, tuple[list[Row], int]] = {
    "characters in place of negatives": ([(f"q{n}", [f"{PASSAGE} {n}"], ["a", "7", "걳"]) for n in range(9)], 9),
    "in a third of the rows": (
        [(f"q{n}", [f"{PASSAGE} {n}"], ["b" if n % 3 else f"other {PASSAGE}", f"no {n}"]) for n in range(9)],
        6,
    ),
    "a positive that was cut": ([(f"question {n}", list("some answer"), []) for n in range(4)], 4),
    "ids in place of passages": ([(f"q{n}", [f"{PASSAGE} {n}" * 4], [f"d{n}", f"d{n + 1}"]) for n in range(9)], 9),
    "characters of passages without blanks": ([(f"q{n}", [f"{n}这是一个很长的段落" * 4], ["这"]) for n in range(9)], 9),
}
WELL: dict[str, list[Row]] = {
    "labels": [(f"a long query about {n}", [str(n % 5)], [str((n + 1) % 5)]) for n in range(9)],
    "class names of one character": [(f"{PASSAGE} {n}", ["马" if n % 2 else "自行车"], ["车"]) for n in range(9)],
    "short answers": [(f"{PASSAGE} {n}", [f"in {1900 + n}"], ["7", "no"]) for n in range(9)],
    "answers of one character beside sentences": [
        *((f"q{n}", [f"{PASSAGE} {n}"], ["7", f"no {PASSAGE}"]) for n in range(9)),
        ("how many are there", ["7"], [PASSAGE]),
    ],
    "labels of many classes": [(f"{PASSAGE} {n}", ["A", "B", "C"], ["D"]) for n in range(9)],
    "negatives of other lengths": [(f"q{n}", [f"{PASSAGE} {n}" * 4], [f"short passage {n}", "no"]) for n in range(9)],
    "one negative far shorter": [
        (f"q{n}", [f"{PASSAGE} {n}" * 4], ["an id" if not n else f"{PASSAGE} not {n}"]) for n in range(9)
    ],
    "no negatives": [(f"q{n}", [f"{PASSAGE} {n}"], []) for n in range(9)],
    "no positives": [(f"q{n}", [], ["a"]) for n in range(9)],
}


@pytest.mark.parametrize("name", SICK)
def test_texts_that_are_no_texts(name: str) -> None:
    rows, number = SICK[name]
    assert short(rows) == number


@pytest.mark.parametrize("name", WELL)
def test_texts_that_are_short_by_nature(name: str) -> None:
    assert short(WELL[name]) == 0


def test_the_example_shows_what_is_short() -> None:
    (found,) = lint({"a": ListedRows([("q", [LONG], [LONG[1:], "a"]), ("r", list("cut up"), [])])}).findings[:1]
    assert found.id == "empty-text"  # the blank of "cut up"
    (found,) = lint({"a": ListedRows([("q", [LONG], [LONG[1:], "a"]), ("r", list("whole"), [LONG])])}).findings[:1]
    assert (found.id, found.count) == ("short-text", 1)
    assert found.examples[0].text == "positives 'w', 'h', 'o', 'l', ... of 'r'"
