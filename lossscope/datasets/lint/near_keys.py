"""Keys that near copies share: the letters of a text, those behind its title, those on one side of two sequences in it.

A word more, less or other is on one side of such a sequence, so that what stands on the other side is the same. The
sequences are those of the least and the largest hash in the middle half of a text: a change elsewhere keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from lossscope.core.near_text import MARKS, TITLE_MARKS
from lossscope.core.plain_text import without_title

from .hashes import Hashes

WHOLE, SIDES, REST, BAG = 0, (1, 2, 3, 4), 5, 6  # all letters, those before and behind sequences, behind a title
KEYS = 7  # columns: the last one is no key, but the sum of a number of each letter
NONE = 0  # of a text that is too short
_LEAST = 10  # bytes of a text that has keys: 20 letters have at least as many
_SIDED = 25  # of a text that has sides: of fewer than 10 words nothing is compared by them
_GRAM = 8  # letters of a sequence, a number of 64 bits
_PART = 1 << 18  # bytes that are looked at together, in the processor's cache
_MIX = np.uint64(0x9E3779B97F4A7C15)
_SQUARE, _LINE = np.uint16(0x9E37), np.uint16(0x85EB)
_LOW = np.uint64(0xFFFFFFFF)
_END = b"\n"  # of a text: normal forms have none
_SKIPPED = bytes({
    *(code for code in range(128) if not chr(code).isalnum() and code != _END[0]),
    *(code for code in "".join((MARKS, *TITLE_MARKS)).encode() if code > 127),
})  # fmt: skip
"""Marks, and of other letters than ASCII's the bytes that marks have, too: fewer bytes never part two copies."""


def near_keys(forms: Sequence[str]) -> npt.NDArray[np.int64]:
    """(n, 7) keys of normal forms: equal where letters are, and some of them where most are; 0 where there is none."""
    keys = [_keys(forms[part]) for part in _parts(forms)]
    return np.concatenate(keys) if keys else np.zeros((0, KEYS), np.int64)


def _parts(forms: Sequence[str]) -> Iterator[slice]:
    """Yield parts of texts that have few bytes together, or are one text."""
    start = size = 0
    for number, form in enumerate(forms):
        size += len(form)
        if size > _PART:
            yield slice(start, number + 1)
            start, size = number + 1, 0
    if start < len(forms):
        yield slice(start, len(forms))


def _keys(forms: Sequence[str]) -> npt.NDArray[np.int64]:
    joined = "\n".join(forms)
    texts = _letters(joined)
    keys = np.full((len(forms), KEYS), NONE, np.int64)
    keys[:, WHOLE] = list(map(hash, texts.split(_END)))
    codes = np.frombuffer(texts + _END, np.uint8)
    ends = np.flatnonzero(codes == _END[0])
    starts = np.concatenate(([0], ends[:-1] + 1))
    keys[ends - starts < _LEAST, WHOLE] = NONE
    _add_sides(keys, codes, starts, ends)
    keys[:, BAG] = np.add.reduceat(_numbers_of(codes), starts)  # a text's line feed counts, too
    marks = [mark for mark in TITLE_MARKS if mark[0] in joined and mark in joined]  # a lone character is found sooner
    for number, form in enumerate(forms) if marks else ():
        rest = without_title(form) if any(mark in form for mark in marks) else None
        if rest is not None and len(text := _letters(rest)) >= _LEAST:
            keys[number, REST] = hash(text)
    return keys


def bag(word: str) -> int:
    """Return what a word adds to the sum of a text, modulo 2¹⁶."""
    return int(_numbers_of(np.frombuffer(_letters(word), np.uint8)).sum(dtype=np.uint16))


def _numbers_of(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint16]:
    numbers = codes.astype(np.uint16)
    numbers *= numbers * _SQUARE + _LINE
    return numbers


def _letters(forms: str) -> bytes:
    return forms.encode("utf-8", "surrogatepass").translate(None, _SKIPPED)


def _add_sides(keys: npt.NDArray[np.int64], codes: npt.NDArray[np.uint8], starts: Hashes, ends: Hashes) -> None:
    """Write sums of the hashes of sequences before and behind two of them.

    Args:
        keys: (n, 7) of texts.
        codes: letters of all texts.
        starts: (n,) where each text begins in them.
        ends: (n,) where it ends.
    """
    vowels = np.flatnonzero((codes[: 1 - _GRAM] & 7) == 5)  # where e, m and u are: the same in every copy
    grams = np.ndarray(max(len(codes) - _GRAM + 1, 0), np.uint64, codes, strides=(1,))[vowels] * _MIX
    begin, end = np.searchsorted(vowels, starts), np.searchsorted(vowels, ends - _GRAM + 1)
    kept = np.flatnonzero((ends - starts >= _SIDED) & (begin < end))
    if not len(kept):
        return
    begin, end = begin[kept], end[kept]
    quarter = (end - begin) // 4
    sums = np.concatenate((np.zeros(1, np.uint64), np.cumsum(grams)))
    numbered = np.arange(len(grams) + 1, dtype=np.uint64)  # an extreme comes with its number; the last one is a bound
    numbered[:-1] |= grams & ~_LOW
    middle = np.stack((begin + quarter, end - quarter), 1).ravel()
    for column, extreme in ((SIDES[0], np.minimum), (SIDES[2], np.maximum)):
        at = (extreme.reduceat(numbered, middle)[::2] & _LOW).astype(np.int64)
        keys[kept, column] = (sums[at + 1] - sums[begin]).view(np.int64)
        keys[kept, column + 1] = (sums[end] - sums[at]).view(np.int64)
