"""Are captions cut into words as by nltk's word_tokenize, where a released vocabulary needs it?"""

from __future__ import annotations

import pytest

from lossscope.errors import InputError
from lossscope.text import word_tokenisers
from lossscope.text.vocabulary import Vocabulary
from lossscope.text.word_tokenisers import has_punkt, may_hold_sentences, tokenise_treebank
from tests.authors.answers import Answers
from tests.each import each

ANSWERS = Answers("words").content["rows"]


@pytest.fixture
def no_punkt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_tokenisers, "has_punkt", lambda: False)


@pytest.mark.usefixtures("punkt")
def test_tokens_are_those_of_word_tokenize() -> None:
    assert has_punkt() and any(may_hold_sentences(row["caption"]) for row in ANSWERS)
    assert {row["caption"]: tokenise_treebank(row["caption"]) for row in ANSWERS} == {
        row["caption"]: row["tokens"] for row in ANSWERS
    }


@pytest.mark.usefixtures("no_punkt")
def test_tokens_of_captions_of_one_sentence_are_the_same_without_punkt() -> None:
    for row in ANSWERS:
        assert may_hold_sentences(row["caption"]) or tokenise_treebank(row["caption"]) == row["tokens"]


@pytest.mark.usefixtures("no_punkt")
def test_without_punkt_a_caption_is_one_sentence() -> None:
    assert tokenise_treebank("A dog runs. It is wet.") == ["a", "dog", "runs.", "it", "is", "wet", "."]


def test_sentences_are_those_of_punkt_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Halves:
        def tokenize(self, text: str) -> list[str]:
            return text.split("| ")

    monkeypatch.setattr(word_tokenisers, "has_punkt", lambda: True)
    monkeypatch.setattr(word_tokenisers, "_punkt", Halves)
    assert tokenise_treebank("A dog runs.| It is wet.") == ["a", "dog", "runs", ".", "it", "is", "wet", "."]


@each(
    "text, doubtful",
    [("A dog. A cat", True), ('"A dog." A cat', True), ("A dog.", False), ("3.5 m", False), ("A dog? A cat", False)],
)
def test_a_full_stop_inside_is_in_doubt(text: str, doubtful: bool) -> None:
    assert may_hold_sentences(text) is doubtful


def test_an_unknown_tokeniser_is_refused() -> None:
    with pytest.raises(InputError, match=r"word_tokeniser must be one of words, treebank, treebank-ascii; got 'spacy'"):
        Vocabulary.from_list(["<pad>", "<start>", "<end>", "<unk>"], "spacy")


def test_captions_that_are_made_lower_case_as_bytes_keep_other_capitals() -> None:
    words = Vocabulary(("<pad>", "<start>", "<end>", "<unk>", "a", "café", "cafÉ"), "treebank-ascii")
    assert (words.tokenise("A CAFÉ"), words.encode("A CAFÉ")) == (["a", "cafÉ"], [1, 4, 6, 2])
    assert Vocabulary(words.words, "treebank").encode("A CAFÉ") == [1, 4, 5, 2]
