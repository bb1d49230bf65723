"""Captions cleaned by a tokeniser are those that the data set cleans, and its end can be left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lossscope.encoders.xvlm import XVLM
from lossscope.errors import InputError
from lossscope.text.clean_captions import cleaned
from lossscope.text.subwords import Subwords
from lossscope.text.xvlm_captions import cleaned_all, cleaning

pytest.importorskip("tokenizers")

TEXTS = ["A man's T-shirt; <person> (red/blue)!", "  two   words ", "one", "", "a-b/c  D, e. f g h"]


@pytest.mark.parametrize("words", [1, 2, 5, 30])
def test_captions_are_cleaned_as_the_data_set_cleans_them(words: int) -> None:
    assert cleaned_all(TEXTS, words) == [cleaned(text, words) for text in TEXTS]
    assert cleaned_all(TEXTS, 0) == TEXTS


def test_the_tokeniser_cleans_cuts_and_leaves_out_the_end() -> None:
    plain = Subwords.train(cleaned_all(TEXTS, 30) * 3, 120)
    spec = XVLM(max_words=3, max_tokens=5, sep=False)
    words = Subwords.from_json(spec.prepare(plain).to_json())
    for text in TEXTS:
        short = plain.encode(cleaned(text, 3))
        assert words.encode(text) == short[:-1][:5]
        assert replace(spec, sep=True).prepare(plain).encode(text) == [*short[:-1][:4], short[-1]]
    assert len(words) == len(plain)
    whole = replace(spec, max_words=0, sep=True, max_tokens=40).prepare(plain)
    assert whole.encode(TEXTS[0]) == plain.encode(TEXTS[0])
    assert len(spec.tokens(TEXTS * 3, 1)) <= spec.pieces


def test_a_tokeniser_without_a_start_keeps_its_end() -> None:
    plain = Subwords.train(TEXTS * 3, 120)
    odd = replace(plain, content=plain.content.replace("[CLS]", "[BEGIN]"))
    assert cleaning(odd, 3, end=True).encode("one") == plain.encode("one")
    with pytest.raises(InputError, match=r"a tokeniser must have \[CLS\] where sep=false"):
        cleaning(odd, 3, end=False)
