"""GENERATED vectors of the words of captions: a random direction for each word, the same wherever it stands.

They hold which words there are and nothing of what they mean; real ones come from a language model.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from lossscope.errors import InputError
from lossscope.io.files import fingerprint_of
from lossscope.text.vocabulary import tokenise

from ..formats.ragged import Floats, Writing, write_ragged

Progress = Callable[[int, int], None]


def write_word_vectors(
    told: Mapping[str, str], out: Path, width: int, seed: int = 0, progress: Progress | None = None
) -> None:
    """Caption id -> caption, to a set of arrays: (W, width) for each, n / sqrt(width) with n normal for each word.

    A caption without a word gets one row of zeros. Raises InputError when there is no caption or width < 1.
    """
    if not told or width < 1:
        raise InputError(f"captions must be at least one and width at least 1; got {len(told)} and {width}")
    words = {id: tuple(tokenise(text)) for id, text in told.items()}
    known: dict[str, Floats] = {}
    for said in words.values():
        for word in said:
            if word not in known:
                known[word] = _direction(word, width, seed)
    empty = np.zeros((1, width), dtype=np.float32)

    def rows(id: str) -> Floats:
        return np.stack([known[word] for word in words[id]]) if words[id] else empty

    write_ragged(out, Writing({id: max(len(said), 1) for id, said in words.items()}, width, rows), progress)


def _direction(word: str, width: int, seed: int) -> Floats:
    dice = np.random.Generator(np.random.Philox(int(fingerprint_of(str(seed), "word", word)[:32], 16)))
    return np.asarray(dice.standard_normal(width, dtype=np.float32) / math.sqrt(width), dtype=np.float32)
