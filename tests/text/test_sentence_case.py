"""Captions as sentences: what a tokeniser makes of them before it cuts them into parts."""

from __future__ import annotations

import pytest

from lossscope.text.sentence_case import as_sentence, phrased
from lossscope.text.subwords import Subwords

CAPTIONS = ["two men talk.", "a dog runs?", "was it a café!"] * 3


def normal(words: Subwords, caption: str) -> str:
    return str(words._tokeniser.normalizer.normalize_str(caption))


@pytest.fixture(scope="module")
def learnt() -> Subwords:
    return Subwords.train(CAPTIONS, 120, max_length=30)


@pytest.fixture(scope="module")
def cased(learnt: Subwords) -> Subwords:
    """A tokeniser that changes nothing."""
    return Subwords(learnt.content.replace('"lowercase":true', '"lowercase":false'), 30)


@pytest.mark.parametrize(
    ("caption", "wanted"), [(" a dog ", "a dog."), ("why?", "why?"), ("no!", "no!"), ("end.", "end."), (" ", "")]
)
def test_a_full_stop_is_put_where_there_is_no_end(learnt: Subwords, caption: str, wanted: str) -> None:
    assert as_sentence(caption) == wanted
    assert normal(phrased(learnt, sentence=True, lower=False), caption) == wanted
    assert normal(phrased(learnt, sentence=True, lower=True), caption) == wanted


def test_the_first_letter_is_a_capital_and_the_rest_small_unless_all_is_small(cased: Subwords) -> None:
    assert normal(cased, "two MEN at the Café") == "two MEN at the Café"
    assert normal(phrased(cased, sentence=True, lower=False), "two MEN at the Café") == "Two men at the café."
    assert normal(phrased(cased, sentence=True, lower=True), "Two MEN at the Café") == "two men at the cafe."
    assert normal(phrased(cased, sentence=False, lower=True), "Two MEN at the Café") == "two men at the cafe"


def test_without_either_a_tokeniser_stays_as_it_is(learnt: Subwords) -> None:
    assert phrased(learnt, sentence=False, lower=False) is learnt


def test_it_survives_being_stored(cased: Subwords) -> None:
    words = phrased(cased, sentence=True, lower=True)
    again = Subwords.from_json(words.to_json())
    assert again == words and again.encode("Two Men") == words.encode("two men.") != cased.encode("two men")
