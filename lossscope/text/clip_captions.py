"""Captions of OpenAI's CLIP and open_clip's: byte pairs, and special words where the authors' pattern finds them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .byte_pairs import WORDS, build_splitter

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIAL_WORDS = {"clip": ("<|startoftext|>", "<|endoftext|>"), "open_clip": ("<start_of_text>", "<end_of_text>")}
"""Cleaning -> the words in captions that are its start and its end; the words of the other are plain text."""


def has_byte_pairs(content: str) -> bool:
    """Return whether a tokeniser of the tokenizers library has CLIP's kind of parts."""
    model = json.loads(content)["model"]
    return model.get("type") == "BPE" and bool(model.get("end_of_word_suffix"))


def prepare_for_clip(tokeniser: Tokenizer, library: Any) -> None:
    """Let a tokeniser take captions as clean, and cut them by CLIP's pattern, special words like any other text."""
    tokeniser.normalizer = library.normalizers.Sequence([])
    if has_byte_pairs(tokeniser.to_str()):
        tokeniser.pre_tokenizer = build_splitter(library)
        tokeniser.encode_special_tokens = True


def encode_special_words(
    tokeniser: Tokenizer, caption: str, special: Sequence[str], length: int | None, library: Any
) -> list[int]:
    """Return the ids of a clean caption that holds special words: start or end where the pattern finds one.

    It tries them before other words, but does not begin inside of one: in `wow!<|endoftext|>` it takes `!<|` first.

    Args:
        tokeniser: that prepare_for_clip has changed.
        caption: a clean one.
        special: the two words.
        length: ids of the longest caption; the rest is cut off before the end.
        library: tokenizers.
    """
    start, end = tokeniser.encode("").ids
    pattern = library.Regex("|".join([*map(re.escape, special), WORDS]))
    words = library.pre_tokenizers.Split(pattern, behavior="removed", invert=True).pre_tokenize_str(caption)
    known = dict(zip(special, (start, end), strict=True))
    ids = [start]
    for word, _ in words:
        ids += [known[word]] if word in known else tokeniser.encode(word, add_special_tokens=False).ids
    return [*ids[: None if length is None else length - 1], end]
