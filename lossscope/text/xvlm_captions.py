"""Captions as X-VLM reads them: a tokeniser that cleans them first and may leave out the token that ends them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from lossscope.errors import InputError

from .subwords import Subwords

_LEFT_OUT = r"""[.'!?"()*#:;~,]"""
_SPACE = r"[-/]"


def cleaned_all(captions: Iterable[str], words: int) -> list[str]:
    """Captions as the steps of such a tokeniser leave them, to learn one from; words=0: as they are."""
    if not words:
        return list(captions)
    steps = _library().normalizers.Sequence(_steps(words))
    return [" ".join(steps.normalize_str(caption).split()) for caption in captions]


def cleaning(tokeniser: Subwords, words: int, end: bool) -> Subwords:
    """The same tokeniser, cleaning captions to `words` words first (0: not at all); end: whether [SEP] ends them.

    Raises InputError for one without [CLS] where [SEP] is left out.
    """
    library = _library()
    changed = library.Tokenizer.from_str(tokeniser.content)
    if words:
        before = [*_steps(words), *([changed.normalizer] if changed.normalizer else [])]
        changed.normalizer = library.normalizers.Sequence(before)
    if not end:
        start = tokeniser.id_of("[CLS]")
        if start is None:
            raise InputError("a tokeniser must have [CLS] where sep=false leaves [SEP] out; this one has none")
        changed.post_processor = library.processors.TemplateProcessing(
            single="[CLS] $A", special_tokens=[("[CLS]", start)]
        )
    return replace(tokeniser, content=str(changed.to_str()))


def _steps(words: int) -> list[Any]:
    """What formats/clean_captions.py does to a caption, as the tokenizers library applies and stores it."""
    library = _library()
    names, regex = library.normalizers, library.Regex
    behind = rf"\A\s*(?:\S+\s+){{{words - 1}}}\S+\K\s[\s\S]*"
    return [
        names.Lowercase(),
        names.Replace(regex(_LEFT_OUT), ""),
        names.Replace(regex(_SPACE), " "),
        names.Replace("<person>", "person"),
        names.Replace(regex(behind), ""),
    ]


def _library() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise InputError("parts of words need tokenizers; install lossscope[hf]") from error
    return tokenizers
