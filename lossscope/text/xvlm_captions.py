"""X-VLM's rules for captions: in plain Python for data sets, and as steps of a tokeniser for the encoder.

The rules: lower case, no punctuation, `-` and `/` as spaces, the first words only. Source: Zeng et al. 2022 (X-VLM).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lossscope.errors import InputError

from .subwords import Subwords, require_tokenizers

_PUNCTUATION = ".'!?\"()*#:;~,"


def clean_caption(caption: str, words: int) -> str:
    """Return a caption under X-VLM's rules, cut to its first `words` words: for data sets, without any tokeniser.

    >>> clean_caption("A man's T-shirt; <person> (red/blue).", 5)
    'a mans t shirt person'
    """
    text = caption.lower().translate({ord(mark): None for mark in _PUNCTUATION}).replace("-", " ").replace("/", " ")
    return " ".join(text.replace("<person>", "person").split()[:words])


def clean_captions(captions: Iterable[str], words: int) -> list[str]:
    """Return captions as the steps of `add_cleaning` leave them: for training a tokeniser on what it will read.

    Args:
        captions: the captions.
        words: number of words that stay; 0 changes nothing.
    """
    if not words:
        return list(captions)
    steps = require_tokenizers().normalizers.Sequence(_cleaning_steps(words))
    return [" ".join(steps.normalize_str(caption).split()) for caption in captions]


def add_cleaning(tokeniser: Subwords, words: int, end: bool) -> Subwords:
    """Return the same tokeniser with the rules as its first steps, so that a checkpoint stores them with it.

    Raises InputError for a tokeniser without [CLS] when [SEP] is left out.

    Args:
        tokeniser: of the encoder.
        words: number of words that stay; 0 cleans nothing.
        end: whether [SEP] ends a caption.
    """
    library = require_tokenizers()
    changed = library.Tokenizer.from_str(tokeniser.content)
    if words:
        steps = [*_cleaning_steps(words), *([changed.normalizer] if changed.normalizer else [])]
        changed.normalizer = library.normalizers.Sequence(steps)
    if not end:
        start = tokeniser.id_of("[CLS]")
        if start is None:
            raise InputError("a tokeniser must have [CLS] where sep=false leaves [SEP] out; this one has none")
        changed.post_processor = library.processors.TemplateProcessing(
            single="[CLS] $A", special_tokens=[("[CLS]", start)]
        )
    return replace(tokeniser, content=str(changed.to_str()))


def _cleaning_steps(words: int) -> list[Any]:
    """Return the rules of `clean_caption` as the tokenizers library applies and stores them."""
    library = require_tokenizers()
    names, regex = library.normalizers, library.Regex
    rest = rf"\A\s*(?:\S+\s+){{{words - 1}}}\S+\K\s[\s\S]*"
    return [
        names.Lowercase(),
        names.Replace(regex(f"[{_PUNCTUATION}]"), ""),
        names.Replace(regex(r"[-/]"), " "),
        names.Replace("<person>", "person"),
        names.Replace(regex(rest), ""),
    ]
