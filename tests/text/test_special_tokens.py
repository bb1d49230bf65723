"""Is the text of a special token in a caption plain text, where a model's authors lower-case first?"""

from __future__ import annotations

from lossscope.encoders.mmt import MMT
from lossscope.encoders.xvlm import XVLM
from lossscope.text.special_tokens import split_special_tokens
from lossscope.text.subwords import Subwords, _build_wordpiece
from tests.each import each

WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] [ ] mask a .".split()
PARTS = Subwords(_build_wordpiece({word: row for row, word in enumerate(WORDS)}, True))


@each("tokeniser, expected", [
    (PARTS, [2, 8, 4, 3]),
    (split_special_tokens(PARTS), [2, 8, 5, 7, 6, 3]),
    (MMT(lower=True).prepare(PARTS), [2, 8, 5, 7, 6, 9, 3]),
    (XVLM(sep=False).prepare(PARTS), [2, 8, 5, 7, 6]),
])  # fmt: skip
def test_a_special_token_in_a_caption(tokeniser: Subwords, expected: list[int]) -> None:
    assert tokeniser.encode("A [MASK]") == expected
