"""Are captions cleaned as by the authors of CLIP and SigLIP, with ftfy required only where a caption needs it?"""

from __future__ import annotations

import sys

import pytest

from lossscope.errors import InputError
from lossscope.text.caption_cleaning import clean
from lossscope.text.subwords import Subwords
from tests.each import each


@each("caption", ["A man's T-shirt, 1,234 (red)!", "tabs\tand\nlines", "", "#tag @you <b> \\ ~"])
def test_plain_captions_need_no_ftfy(caption: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ftfy", None)
    assert clean(caption, "clip") == " ".join(caption.split()).lower()


@each("caption", ["fish &amp; chips", "café", "it\u2019s", "\x1b[0m", "🐶"])
def test_other_captions_are_refused_without_ftfy(caption: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ftfy", None)
    with pytest.raises(InputError, match=r"such as '.*' need ftfy, .*: pip install 'lossscope\[hf\]'"):
        clean(caption, "clip")
    assert clean(caption, "") == caption


def test_entities_and_encodings_are_repaired() -> None:
    pytest.importorskip("ftfy")
    assert clean("Fish &amp;amp; CHIPS &lt;b&gt;", "clip") == "fish & chips <b>"
    assert clean("cafÃ©  itâ€™s", "clip") == "café it's"


def test_punctuation_goes_for_siglip() -> None:
    assert clean("  A man's T-shirt; & more_\n", "siglip") == "a mans tshirt more"


def test_a_cleaning_is_stored_and_an_unknown_one_refused() -> None:
    pytest.importorskip("tokenizers")
    plain = Subwords.train(["a red square"] * 4, 60)
    assert "cleaning" not in plain.to_json()
    assert Subwords.from_json(Subwords(plain.content, None, "siglip").to_json()).cleaning == "siglip"
    with pytest.raises(InputError, match="cleaning of a tokeniser must be one of"):
        Subwords(plain.content, None, "soap")
