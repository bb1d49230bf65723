"""Does a tokeniser change the case of captions as its model's authors do, before it cuts them into parts?"""

from __future__ import annotations

import pytest

from lossscope.text.sentence_case import add_sentence_case, as_sentence
from lossscope.text.subwords import Subwords
from tests.each import each

CAPTIONS = ["two men talk.", "a dog runs?", "was it a café!"] * 3


def normal(words: Subwords, caption: str) -> str:
    return str(words._tokeniser.normalizer.normalize_str(caption))


@pytest.fixture(scope="module")
def learnt() -> Subwords:
    return Subwords.train(CAPTIONS, 120, max_length=30)


@pytest.fixture(scope="module")
def cased(learnt: Subwords) -> Subwords:
    """Return a tokeniser that changes no letters."""
    return Subwords(learnt.content.replace('"lowercase":true', '"lowercase":false'), 30)


@each("caption, expected", [(" a dog ", "a dog."), ("why?", "why?"), ("no!", "no!"), ("end.", "end."), (" ", "")])
def test_a_full_stop_is_put_where_there_is_no_end(learnt: Subwords, caption: str, expected: str) -> None:
    assert as_sentence(caption) == expected
    assert normal(add_sentence_case(learnt, sentence=True, lower=False), caption) == expected
    assert normal(add_sentence_case(learnt, sentence=True, lower=True), caption) == expected


def test_the_first_letter_is_a_capital_and_the_rest_lower_case_unless_all_is_lower_case(cased: Subwords) -> None:
    assert normal(cased, "two MEN at the Café") == "two MEN at the Café"
    assert normal(add_sentence_case(cased, sentence=True, lower=False), "two MEN at the Café") == "Two men at the café."
    assert normal(add_sentence_case(cased, sentence=True, lower=True), "Two MEN at the Café") == "two men at the cafe."
    assert normal(add_sentence_case(cased, sentence=False, lower=True), "Two MEN at the Café") == "two men at the cafe"


def test_without_either_a_tokeniser_stays_as_it_is(learnt: Subwords) -> None:
    assert add_sentence_case(learnt, sentence=False, lower=False) is learnt


def test_a_stored_tokeniser_is_read_back(cased: Subwords) -> None:
    words = add_sentence_case(cased, sentence=True, lower=True)
    again = Subwords.from_json(words.to_json())
    assert again == words and again.encode("Two Men") == words.encode("two men.") != cased.encode("two men")
