"""Does an extra mark, title or last word make a near copy, and a contrastive pair none?"""

from __future__ import annotations

import pytest

from lossscope.core.near_text import is_near_copy, near_copies_of, without_edges
from lossscope.core.normal_form import normal_form

TEXT = "Emma is a novel by Jane Austen about a young woman who makes matches for others in her village"
SAME = {
    "full stop": f"{TEXT}.",
    "quotes": f"“{TEXT}.”",
    "title": f"Emma (novel): {TEXT}",
    "wide title": f"エマ：{TEXT}",
    "long title with a bar": f"Emma, the fourth novel of Jane Austen | {TEXT}.",
    "list": f"- {TEXT}",
    "last word": TEXT.rpartition(" ")[0],
    "first word": TEXT.partition(" ")[2],
    "words behind the full stop": f"{TEXT}. Read on.",
}
OTHER = {
    "a word replaced": TEXT.replace("Jane", "Mary"),
    "a word moved": "a horse that stands on a man in the middle of a field",
    "negation within": TEXT.replace("is a", "is not a"),
    "a word dropped within": TEXT.replace("young ", ""),
    "half of it": TEXT[: len(TEXT) // 2],
    "a passage that holds it": f"{TEXT}. {'It was published in London and sold well at once. ' * 3}",
    "the same copy": TEXT,
}


@pytest.mark.parametrize("what", SAME)
def test_near_copies(what: str) -> None:
    text = SAME[what]
    pair = normal_form(text), normal_form(TEXT)
    assert is_near_copy(*pair) and is_near_copy(*reversed(pair))
    assert near_copies_of([pair[0]], ["another text of some length", pair[1]]) == [pair[1]]


@pytest.mark.parametrize("what", OTHER)
def test_other_texts(what: str) -> None:
    pair = normal_form(OTHER[what]), normal_form(TEXT)
    assert not is_near_copy(*pair) and not is_near_copy(*reversed(pair))


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("a man that stands on a horse in the middle of a field", OTHER["a word moved"]),
        ("yes", "yes."),
        ("the temperature fell to 5 degrees", "the temperature fell to -5 degrees"),
        ("in that year the town had 5", "in that year the town had 5,000"),
        ("the population of the town grew by 5", "the population of the town grew by 5%"),
        ("how do i learn to play chess", "how do i learn to play chess alone"),
        ("def f(a, b): return a + b", "def f(a, b): return a - b"),
        ("一个男人骑着一匹棕色的马走过一片绿色的田野和小河", "一匹棕色的马骑着一个男人走过一片绿色的田野和小河"),
    ],
)
def test_contrastive_pairs_and_short_answers_are_no_copies(text: str, other: str) -> None:
    assert not is_near_copy(text, other) and not is_near_copy(other, text)


def test_a_full_stop_of_a_language_without_blanks() -> None:
    text = "一个男人骑着一匹棕色的马走过一片绿色的田野和小河"
    assert is_near_copy(text, f"{text}。") and not is_near_copy(text, f"{text}吗")


def test_many_positives_of_one_beginning_are_compared_in_part() -> None:
    """The number of comparisons in a row does not grow with positives times negatives."""
    positives = [f"what is the answer to question {n} of this list" for n in range(3000)]
    negatives = [f"what is the answer to question {n} of that list" for n in range(3000)]
    assert near_copies_of(positives, negatives) == []
    assert near_copies_of(positives, [f"{positives[0]}."]) == [f"{positives[0]}."]


def test_queries_that_are_marks_stay() -> None:
    assert (without_edges("?"), without_edges("who?"), without_edges("c++")) == ("?", "who", "c++")
