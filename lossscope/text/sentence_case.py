"""Captions as sentences: a tokeniser that puts a full stop and a capital where a caption has none."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from typing import Any

from lossscope.errors import InputError

from .subwords import Subwords

_STRIPPED: dict[str, Any] = {"type": "Strip", "strip_left": True, "strip_right": True}
_SMALL: dict[str, Any] = {"type": "Lowercase"}
_ENDS = ".?!"


def as_sentence(caption: str) -> str:
    """A caption without spaces around it, with a full stop behind unless it ends so already.

    >>> as_sentence(" two men talk ")
    'two men talk.'
    """
    caption = caption.strip()
    return caption if not caption or caption[-1] in _ENDS else f"{caption}."


def phrased(words: Subwords, sentence: bool, lower: bool) -> Subwords:
    """The same tokeniser, reading captions as sentences first (as_sentence), or in small letters without accents.

    sentence: also a capital first letter (a to z), the rest small. lower: no capital at all, whatever the parts are.
    """
    steps = _sentence(lower) if sentence else []
    if lower:
        steps += [_SMALL, {"type": "NFD"}, {"type": "StripAccents"}]
    return _before(words, steps) if steps else words


def _sentence(lower: bool) -> list[dict[str, Any]]:
    stop = _replaced(rf"(?<=[^{_ENDS}])\z", ".")
    if lower:
        return [_STRIPPED, stop]
    return [_STRIPPED, stop, _SMALL, *(_replaced(rf"\A{c}", c.upper()) for c in string.ascii_lowercase)]


def _replaced(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}


def _before(words: Subwords, steps: list[dict[str, Any]]) -> Subwords:
    found = json.loads(words.content)
    if not isinstance(found, dict):
        raise InputError("a tokeniser must be the tokenizers library's JSON object")
    after = [found["normalizer"]] if found.get("normalizer") else []
    sequence = {"type": "Sequence", "normalizers": steps + after}
    return replace(words, content=json.dumps({**found, "normalizer": sequence}))
