"""Does lint find a slightly changed positive in another row, and no instance of a template?"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lossscope.datasets.lint import near_pairs
from lossscope.datasets.lint.near_keys import KEYS, NONE, SIDES, WHOLE, near_keys
from lossscope.datasets.lint.suite import LintReport, lint
from lossscope.datasets.lint.targets import lint_sources
from lossscope.datasets.rows.row_block import RowBlock
from lossscope.errors import InputError
from tests.datasets.lint.test_suite import ListedRows, Row, write

LETTERS = "etaoinshrdlucmfwypvbgkqjxz"


def draw(rng: random.Random, words: int = 25) -> str:
    """Return a text of words that no other text has."""
    return " ".join("".join(rng.choices(LETTERS, range(26, 0, -1), k=rng.randint(4, 9))) for _ in range(words))


def insert(word: str) -> Callable[[str, random.Random], str]:
    def change(text: str, rng: random.Random) -> str:
        words = text.split()
        position = rng.randint(0, len(words))
        return " ".join([*words[:position], word, *words[position:]])

    return change


def blank(text: str, rng: random.Random) -> str:
    inside = [index for index, letter in enumerate(text) if letter != " " and text[index - 1] != " "][1:]
    index = rng.choice(inside)
    return f"{text[:index]} {text[index:]}"


CHANGES: dict[str, Callable[[str, random.Random], str]] = {
    "full stop": lambda text, rng: f"{text}.",
    "quotes": lambda text, rng: f"“{text}”",
    "commas": lambda text, rng: text.replace(" ", ", ", 9),
    "blank": blank,
    "title": lambda text, rng: f"{draw(rng, 4)}: {text}",
    "long title": lambda text, rng: f"{draw(rng, 20)} | {text}",
    "article": insert("the"),
    "form of be": insert("is"),
    "joining word": insert("which"),
}
LEAST = {"article": 0.94, "form of be": 0.94, "joining word": 0.94}  # recall of the others is 1
TRAPS: dict[str, Callable[[str, random.Random], str]] = {
    "word more": insert("green"),
    "negation": insert("not"),
    "number": insert("7"),
    "word replaced": lambda text, rng: text.replace(rng.choice(text.split()), "yellow", 1),
    "letter more": lambda text, rng: f"{text}s",
    "digit more": lambda text, rng: f"{text} 5",
    "half": lambda text, rng: text[: len(text) // 2],
    "words in another order": lambda text, rng: " ".join(reversed(text.split())),
    "two articles": lambda text, rng: f"the {text} the",
}


def rows_of(texts: list[str]) -> list[Row]:
    return [(f"question {number}", [text], []) for number, text in enumerate(texts)]


def lint_rows(rows: list[Row]) -> LintReport:
    return lint({"a": ListedRows(rows)})


def count(rows: list[Row]) -> int:
    return {finding.id: finding.count for finding in lint_rows(rows).findings}.get("near-duplicates", 0)


@pytest.mark.parametrize("what", CHANGES)
def test_a_changed_copy_in_another_row_is_found(what: str) -> None:
    rng = random.Random(0)
    texts = [draw(rng) for _ in range(300)]
    copies = [CHANGES[what](text, rng) for text in texts[:200]]
    number = count(rows_of([*texts, *copies]))
    assert LEAST.get(what, 1) * 200 <= number <= 200


@pytest.mark.parametrize("what", TRAPS)
def test_another_word_makes_another_text(what: str) -> None:
    rng = random.Random(0)
    texts = [draw(rng) for _ in range(200)]
    assert count(rows_of([*texts, *(TRAPS[what](text, rng) for text in texts)])) == 0


@pytest.mark.parametrize(
    "template",
    [
        "{name} is a nurse in {town}, where {name} has lived with a dog and two cats for many years",
        "The opening hours of shop {number} in {town} are from nine in the morning to five in the afternoon",
        "The meeting of the board was held on {number} May in the town hall. All of its members were there.",
        "a man in a {colour} shirt is riding a {colour} horse along the beach",
        "A {number}. A letter was sent to the people who had asked for one in the course of that year",
    ],
)
def test_instances_of_a_template_are_none(template: str) -> None:
    rng = random.Random(0)
    values = [
        {"name": draw(rng, 1), "town": draw(rng, 1), "number": number, "colour": draw(rng, 1)} for number in range(500)
    ]
    report = lint_rows(rows_of([template.format(**value) for value in values]))
    assert not report.findings


def test_a_copy_of_an_instance_of_a_template_is_found() -> None:
    texts = [f"Person {number} is a nurse in the town hospital and has a dog" for number in range(500)]
    assert count(rows_of([*texts, *(f"{text}." for text in texts[:100])])) == 100


def test_what_was_not_compared_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    behind = draw(rng, 40)
    texts = [f"{draw(rng, 3)} {behind}" for _ in range(40)]
    report = lint_rows(rows_of(texts))
    assert report.notes == (
        "near-duplicates: 40 positives share their beginning or end with more than 31 others, as instances of a "
        "template do; by that part they were not compared, so that a word more or less may be missed",
    )
    monkeypatch.setattr(near_pairs, "MOST", 40)
    assert lint_rows(rows_of(texts)).notes == ()


def test_the_first_of_the_copies_and_exact_copies_are_none() -> None:
    text = draw(random.Random(0))
    assert count(rows_of([text, text, text.upper()])) == 0
    assert count(rows_of([text, f"{text}."])) == 1
    assert count(rows_of([text, f"{text}.", text])) == 2  # the last one is a near copy of the second
    assert count([("q", [text, f"{text}."], [])]) == 0  # one row
    assert count([("q", [text], []), ("q", [f"Book: {text}"], [])]) == 1  # the same query


def test_titles_of_one_text_are_found_whatever_stands_first() -> None:
    text = draw(random.Random(0))
    assert count(rows_of([f"A: {text}", f"B: {text}", f"C: {text}"])) == 0
    assert count(rows_of([f"A: {text}", text, f"B: {text}", f"C: {text}"])) == 3
    assert count(rows_of([text, *(f"Title {number}: {text}" for number in range(100))])) == 100


def test_very_many_copies_cost_no_more_than_their_number() -> None:
    text = draw(random.Random(0))
    assert count(rows_of([text[:position] + "," * (position > 0) + text[position:] for position in range(100)])) == 99


def test_examples_are_the_copies_with_their_lines(tmp_path: Path) -> None:
    rng = random.Random(0)
    texts = [draw(rng, 7) for _ in range(3000)]
    texts[2500], texts[2999] = f"{texts[7]}.", f"Title: {texts[1500]}"
    file = write(tmp_path / "a.jsonl", [{"query": f"q{n}", "positive": text} for n, text in enumerate(texts)])
    (finding,) = lint(lint_sources(file)).findings
    assert (finding.id, finding.severity, finding.count) == ("near-duplicates", "warning", 2)
    assert [row.line for row in finding.examples] == [2501, 3000]
    assert finding.examples[0].text == texts[2500]


def test_rows_that_change_while_they_are_read_are_an_error() -> None:
    text = draw(random.Random(0))

    class Changing(ListedRows):
        def blocks(self, only: Any = None) -> Iterator[RowBlock]:
            rows = self.rows if only is None else rows_of([text, "another text of as many letters"])
            return ListedRows(rows).blocks(only)

    with pytest.raises(InputError, match="a must not change during lint; its second reading gave other rows"):
        lint({"a": Changing(rows_of([text, f"{text}."]))})


def test_keys_are_of_letters_alone_and_short_texts_have_none() -> None:
    text = draw(random.Random(0))
    keys = near_keys([text, f"“{text.replace(' ', ', ')}…”", "short", "", "é" * 400])
    assert keys.shape == (5, KEYS) and (keys[0] == keys[1]).all() and (keys[0, [WHOLE, *SIDES]] != NONE).all()
    assert (keys[2:4, : KEYS - 1] == NONE).all()


def test_keys_of_texts_are_those_of_each_alone() -> None:
    rng = random.Random(0)
    texts = [draw(rng, words) for words in (1, 3, 30, 9, 2, 500, 40_000, 7)]
    np.testing.assert_array_equal(near_keys(texts), np.concatenate([near_keys([text]) for text in texts]))
    assert near_keys([]).shape == (0, KEYS)
