"""Words -> ids: a vocabulary with the way captions are cut."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

from .word_tokenisers import WORD_TOKENISERS, WordTokeniser, require_word_tokeniser, tokenise

SPECIAL = ("<pad>", "<start>", "<end>", "<unk>")


@dataclass(frozen=True)
class Vocabulary:
    """Words whose ids are their positions. Raises InputError when one repeats or a special word is missing.

    >>> words = Vocabulary.build(["a red dog", "a dog"], min_count=2)
    >>> words.words
    ('<pad>', '<start>', '<end>', '<unk>', 'a', 'dog')
    >>> words.encode("A blue dog.")
    [1, 4, 3, 5, 2]
    """

    words: tuple[str, ...]  # by id, special words included
    word_tokeniser: WordTokeniser = "words"  # how captions are cut

    def __post_init__(self) -> None:
        for word, count in Counter(self.words).most_common(1):
            if count > 1:
                raise InputError(f"words of a vocabulary must be unique; got {word!r} {count} times")
        missing = [word for word in SPECIAL if word not in self.ids]
        if missing:
            raise InputError(f"a vocabulary must hold {', '.join(SPECIAL)}; got none of {', '.join(missing)}")
        require_word_tokeniser(self.word_tokeniser)

    @classmethod
    def build(cls, captions: Iterable[str], min_count: int = 4) -> Vocabulary:
        """Return the words seen at least `min_count` times: special words, then by falling count, then by alphabet.

        Only captions of the training split belong here. Raises InputError when min_count < 1.
        """
        if min_count < 1:
            raise InputError(f"min_count must be at least 1; got {min_count}")
        counts = Counter(word for caption in captions for word in tokenise(caption))
        kept = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        return cls((*SPECIAL, *(word for _, word in kept)))

    @classmethod
    def from_list(cls, words: Sequence[str], word_tokeniser: str = "words") -> Vocabulary:
        """Return the vocabulary that `to_list` wrote. Raises InputError for a tokeniser that is not known."""
        return cls(tuple(words), require_word_tokeniser(word_tokeniser))

    def to_list(self) -> list[str]:
        """Return the words by id as a list, for JSON and checkpoints."""
        return list(self.words)

    @functools.cached_property
    def ids(self) -> Mapping[str, int]:
        """Word -> id."""
        return {word: row for row, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def tokenise(self, caption: str) -> list[str]:
        """Return the words of a caption, known and unknown ones."""
        return WORD_TOKENISERS[self.word_tokeniser](caption)

    def encode(self, caption: str) -> list[int]:
        """Return [start] + ids of the caption's tokens + [end]; unknown words become `<unk>`."""
        unknown = self.ids["<unk>"]
        words = (self.ids.get(word, unknown) for word in self.tokenise(caption))
        return [self.ids["<start>"], *words, self.ids["<end>"]]


def pad(rows: Sequence[Sequence[int]], fill: int = 0) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return ragged ids as (n, L) int64, filled up with `fill`, and their (n,) int64 lengths.

    >>> pad([[1, 5, 2], [1, 2]])[0].tolist()
    [[1, 5, 2], [1, 2, 0]]
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.full((len(rows), int(lengths.max(initial=0))), fill, dtype=np.int64)
    for row, values in enumerate(rows):
        ids[row, : len(values)] = values
    return ids, lengths
