"""Which texts are the same? NFC, casefold, and one blank wherever there is white space."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

_Codes = npt.NDArray[np.uint8 | np.uint16]  # code units of texts, one text after the other with a 0 between
_NARROW = ((0x85, 0x85), (0xA0, 0xA0))
_WIDE = ((0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000))
"""Ranges of white space outside ASCII, as `str.split` has it: below and above 256."""


def normal_form(text: str) -> str:
    """Return a text in NFC, in small letters as `str.casefold` has them, with white space collapsed and cut off.

    >>> normal_form("  Cafe\\u0301  AU\\nlait ")
    'café au lait'
    """
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def normal_forms(texts: Sequence[str]) -> list[str]:
    """Return the normal forms of texts; all at once they take a small part of the time that each alone does."""
    if not all(map(str.isascii, texts)):
        texts = [text if text.isascii() else unicodedata.normalize("NFC", text) for text in texts]
    forms = list(map(str.casefold, texts))
    left: Sequence[int] = range(len(forms))
    for collapse in (_join_lines, _join_blanks, _collapse_any):  # what is usual costs less
        left = [left[odd] for odd in _with_odd_blanks([forms[index] for index in left])]
        for index in left:
            forms[index] = collapse(forms[index])
    return forms


def numbers_of_words(forms: Sequence[str]) -> list[int]:
    """Return how many words normal forms have, which single blanks separate; empty ones have one."""
    codes = _codes("\0".join(forms))
    ends = [-1, *np.flatnonzero(codes == 0).tolist(), len(codes)]
    if len(ends) != len(forms) + 1:  # a text has a NUL
        return [form.count(" ") + 1 for form in forms]
    is_blank = codes == 32
    return [int(np.count_nonzero(is_blank[start + 1 : end])) + 1 for start, end in pairwise(ends)]


def _join_lines(text: str) -> str:
    """Return a text with a blank for the white space around ends of lines."""
    return " ".join(filter(None, map(str.strip, text.split("\n"))))


def _join_blanks(text: str) -> str:
    """Return a text with a blank for each run of blanks."""
    while "  " in text:
        text = text.replace("  ", " ")
    return text


def _collapse_any(text: str) -> str:
    return " ".join(text.split())


def _with_odd_blanks(texts: Sequence[str]) -> list[int]:
    """Return the places of texts that may have white space other than single blanks between words."""
    if not texts:
        return []
    joined = "\0".join(texts)
    codes = _codes(joined)
    is_gap = codes <= 32  # a blank, a control character, or the end of a text
    odd = codes - 1 < 31  # unsigned: 0, which ends texts, becomes the largest number
    if not joined.isascii():
        for low, high in _NARROW if codes.dtype == np.uint8 else _NARROW + _WIDE:
            odd |= codes - low <= high - low
    odd[1:] |= is_gap[1:] & is_gap[:-1]
    odd[:1] |= is_gap[:1]
    odd[-1:] |= is_gap[-1:]
    if not odd.any():
        return [index for index in {0, len(texts) - 1} if not texts[index]]
    ends = np.flatnonzero(codes == 0)
    if len(ends) != len(texts) - 1:  # a text has a NUL
        return list(range(len(texts)))
    return [int(index) for index in np.unique(np.searchsorted(ends, np.flatnonzero(odd), "left"))]


def _codes(text: str) -> _Codes:
    """Return the code units of a text, of 8 bits where they suffice: all white space is below 2^16."""
    try:
        return np.frombuffer(text.encode("latin-1"), np.uint8)
    except UnicodeEncodeError:
        return np.frombuffer(text.encode("utf-16-le", "surrogatepass"), np.uint16)
