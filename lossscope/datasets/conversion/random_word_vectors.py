"""Generate random vectors of the words of captions: a random direction for each word, the same in all captions.

They distinguish words and carry no meaning; real vectors come from a language model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lossscope.core.types import OnStep
from lossscope.errors import InputError
from lossscope.text.word_tokenisers import tokenise

from ..formats.ragged import Floats, RowsByName, write_ragged
from .synthetic_experts import random_generator


def write_word_vectors(
    captions: Mapping[str, str], out: Path, width: int, seed: int = 0, progress: OnStep | None = None
) -> None:
    """Write (W, width) word vectors of each caption: n / sqrt(width), n standard normal for each word.

    A caption without a word gets one row of zeros.

    Args:
        captions: caption id -> caption.
        out: stem of the ragged arrays.
        width: of a vector.
        seed: of the directions.
        progress: called after each caption.

    Raises:
        InputError: there is no caption, or width < 1.
    """
    if not captions or width < 1:
        raise InputError(f"captions must be at least one and width at least 1; got {len(captions)} and {width}")
    words = {id: tuple(tokenise(text)) for id, text in captions.items()}
    vectors: dict[str, Floats] = {}
    for caption in words.values():
        for word in caption:
            if word not in vectors:
                vectors[word] = _direction(word, width, seed)
    empty = np.zeros((1, width), dtype=np.float32)

    def rows(id: str) -> Floats:
        return np.stack([vectors[word] for word in words[id]]) if words[id] else empty

    lengths = {id: max(len(caption), 1) for id, caption in words.items()}
    write_ragged(out, RowsByName(lengths, width, rows), progress)


def _direction(word: str, width: int, seed: int) -> Floats:
    rng = random_generator(seed, "word", word)
    return np.asarray(rng.standard_normal(width, dtype=np.float32) / math.sqrt(width), dtype=np.float32)
