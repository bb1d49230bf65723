"""Do the tokeniser's steps equal X-VLM's rules for captions, and can [SEP] be left out?"""

from __future__ import annotations

from dataclasses import replace

import pytest

from lossscope.encoders.xvlm import XVLM
from lossscope.errors import InputError
from lossscope.text.subwords import Subwords
from lossscope.text.xvlm_captions import add_cleaning, clean_caption, clean_captions
from tests.each import each

pytest.importorskip("tokenizers")

TEXTS = ["A man's T-shirt; <person> (red/blue)!", "  two   words ", "one", "", "a-b/c  D, e. f g h"]


@each("words", [1, 2, 5, 30])
def test_the_steps_of_the_tokeniser_equal_the_plain_rules(words: int) -> None:
    assert clean_captions(TEXTS, words) == [clean_caption(text, words) for text in TEXTS]
    assert clean_captions(TEXTS, 0) == TEXTS


def test_the_tokeniser_cleans_and_cuts_captions_and_leaves_out_sep() -> None:
    plain = Subwords.train(clean_captions(TEXTS, 30) * 3, 120)
    spec = XVLM(max_words=3, max_tokens=5, sep=False)
    words = Subwords.from_json(spec.prepare(plain).to_json())
    for text in TEXTS:
        short = plain.encode(clean_caption(text, 3))
        assert words.encode(text) == short[:-1][:5]
        assert replace(spec, sep=True).prepare(plain).encode(text) == [*short[:-1][:4], short[-1]]
    assert len(words) == len(plain)
    whole = replace(spec, max_words=0, sep=True, max_tokens=40).prepare(plain)
    assert whole.encode(TEXTS[0]) == plain.encode(TEXTS[0])
    assert len(spec.build_tokeniser(TEXTS * 3, 1)) <= spec.pieces


def test_a_tokeniser_without_a_start_keeps_its_end() -> None:
    plain = Subwords.train(TEXTS * 3, 120)
    odd = replace(plain, content=plain.content.replace("[CLS]", "[BEGIN]"))
    assert add_cleaning(odd, 3, end=True).encode("one") == plain.encode("one")
    with pytest.raises(InputError, match=r"a tokeniser must have \[CLS\] where sep=false"):
        add_cleaning(odd, 3, end=False)
