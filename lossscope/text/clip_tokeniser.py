"""The tokeniser of a file of OpenAI's CLIP or open_clip: its byte pairs, with its authors' way to read captions."""

from __future__ import annotations

import json
from dataclasses import replace

from lossscope.errors import InputError

from .clip_captions import has_byte_pairs
from .subwords import Subwords


def fit_to_clip(tokeniser: Subwords, cleaning: str, context: int) -> Subwords:
    """Return byte pairs that read captions as OpenAI's CLIP (`clip`) or open_clip. Raises InputError for other parts.

    Args:
        tokeniser: of a folder, or of merges.
        cleaning: one of SPECIAL_WORDS.
        context: ids of the model's longest caption, to which longer ones are cut.
    """
    if not has_byte_pairs(tokeniser.content):
        kind = json.loads(tokeniser.content)["model"].get("type")
        raise InputError(
            "captions of OpenAI's CLIP and open_clip's need byte pairs with </w> at the end of a word; got a "
            f"tokeniser of {kind}. Name the folder of CLIP's, or bpe_simple_vocab_16e6.txt.gz"
        )
    return replace(tokeniser, cleaning=cleaning, max_length=context)
