"""Captions as sentences: tokeniser steps that add a full stop and a capital where a caption has none."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import Any

from lossscope.errors import InputError

from .subwords import Subwords

_STRIP: dict[str, Any] = {"type": "Strip", "strip_left": True, "strip_right": True}
_LOWERCASE: dict[str, Any] = {"type": "Lowercase"}
_SENTENCE_ENDS = ".?!"


def as_sentence(caption: str) -> str:
    """Return a caption without spaces around it, with a full stop at its end unless it ends a sentence already.

    >>> as_sentence(" two men talk ")
    'two men talk.'
    """
    caption = caption.strip()
    return caption if not caption or caption[-1] in _SENTENCE_ENDS else f"{caption}."


def add_sentence_case(tokeniser: Subwords, sentence: bool, lower: bool) -> Subwords:
    """Return the same tokeniser, which reads captions as sentences (as_sentence) or in lower case without accents.

    Args:
        tokeniser: the tokeniser.
        sentence: add the full stop and, unless `lower`, a capital first letter (a to z), the other letters lower case.
        lower: no capitals at all, also where the vocabulary is cased.
    """
    steps = _sentence_steps(lower) if sentence else []
    if lower:
        steps += [_LOWERCASE, {"type": "NFD"}, {"type": "StripAccents"}]
    return _prepend_steps(tokeniser, steps) if steps else tokeniser


def _sentence_steps(lower: bool) -> list[dict[str, Any]]:
    stop = _replace_step(rf"(?<=[^{_SENTENCE_ENDS}])\z", ".")
    if lower:
        return [_STRIP, stop]
    return [_STRIP, stop, _LOWERCASE, *(_replace_step(rf"\A{c}", c.upper()) for c in string.ascii_lowercase)]


def _replace_step(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _prepend_steps(tokeniser: Subwords, steps: list[dict[str, Any]]) -> Subwords:
    settings = json.loads(tokeniser.content)
    if not isinstance(settings, dict):
        raise InputError("a tokeniser must be the tokenizers library's JSON object")
    existing = [settings["normalizer"]] if settings.get("normalizer") else []
    sequence = {"type": "Sequence", "normalizers": steps + existing}
    return replace(tokeniser, content=json.dumps({**settings, "normalizer": sequence}))
