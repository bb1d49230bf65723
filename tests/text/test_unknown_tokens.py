"""Is the share of unknown tokens counted, and a large share a warning?"""

from __future__ import annotations

import pytest

from lossscope.text import unknown_tokens, word_tokenisers
from lossscope.text.subwords import Subwords
from lossscope.text.unknown_tokens import count_unknown
from lossscope.text.vocabulary import SPECIAL, Vocabulary
from lossscope.text.xvlm_captions import add_cleaning

CAPTIONS = ["A dog runs.", "The dog's red."]
WORDS = Vocabulary((*SPECIAL, "a", "dog", "runs", "the", "'s", "."), "treebank")


def test_unknown_words_are_counted_and_named() -> None:
    unknown = count_unknown(WORDS, CAPTIONS)
    assert unknown is not None
    assert (unknown.total, unknown.unknown, unknown.share) == (9, {"red": 1}, pytest.approx(1 / 9))
    (text,) = unknown.notices()
    assert text.startswith(
        "WARNING: 11.11% of 9 tokens of the captions are unknown to the vocabulary, most often 'red'"
    )


def test_a_small_share_is_only_stated() -> None:
    unknown = count_unknown(WORDS, ["a dog runs"] * 40)
    assert unknown is not None
    assert unknown.notices() == ("0.00% of 120 tokens of the captions are unknown to the vocabulary",)


def test_special_words_in_captions_are_unknown() -> None:
    unknown = count_unknown(Vocabulary((*SPECIAL, "unk", "<", ">")), ["<unk>"])
    assert unknown is not None
    assert unknown.unknown == {}


def test_captions_that_punkt_might_split_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (unknown_tokens, word_tokenisers):
        monkeypatch.setattr(module, "has_punkt", lambda: False)
    unknown = count_unknown(WORDS, ["A dog. A dog.", "A dog."])
    assert unknown is not None
    assert unknown.split_in_doubt == 1
    assert "1 captions have a full stop inside" in unknown.notices()[1]


def test_parts_of_words_are_counted_too() -> None:
    parts = Subwords.train(["a dog runs"] * 3, size=40)
    unknown = count_unknown(parts, ["a dog runs", "ж"])
    assert unknown is not None
    assert unknown.unknown == {"[UNK]": 1}
    assert unknown.total > 1


def test_no_captions_say_nothing() -> None:
    unknown = count_unknown(WORDS, [])
    assert unknown is not None
    assert unknown.notices() == ()


def test_a_tokeniser_without_an_end_loses_no_token() -> None:
    parts = add_cleaning(Subwords.train(["a dog runs"] * 3, size=40), words=0, end=False)
    unknown = count_unknown(parts, ["ж", "a"])
    assert unknown is not None
    assert (unknown.total, unknown.unknown) == (2, {"[UNK]": 1})
