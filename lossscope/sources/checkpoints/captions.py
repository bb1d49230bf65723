"""The captions of a split as inputs of an encoder: ids of its tokeniser or of the data set, or word vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.datasets.base import Rows, Split, Texts
from lossscope.errors import InputError
from lossscope.text.tokenizer import Tokeniser
from lossscope.text.vocabulary import pad


class CaptionBatcher:
    """Batches of captions of a split by row, tokenised at first use.

    Where the data set has word vectors of its captions, those are the inputs; where it has ids, the ids are, provided
    that they fit the tokeniser.
    """

    def __init__(self, split: Split, tokeniser: Tokeniser) -> None:
        self.split, self.tokeniser = split, tokeniser

    def __len__(self) -> int:
        return len(self.split.captions)

    @cached_property
    def ids(self) -> Sequence[Sequence[int]]:
        """Ids of every caption. Raises InputError for ids of the data set that are outside the vocabulary."""
        if self.split.tokens is None:
            return [self.tokeniser.encode(caption) for caption in self.split.captions]
        highest = max((max(row, default=0) for row in self.split.tokens), default=0)
        if highest >= len(self.tokeniser):
            raise InputError(
                f"ids of split {self.split.name!r} must be below the vocabulary's size, {len(self.tokeniser)}; "
                f"got {highest}. Name the vocabulary file of these ids"
            )
        return self.split.tokens

    def lengths(self) -> npt.NDArray[np.int64]:
        """Return the number of ids (M,) of each caption; 0 for word vectors, whose number is known only when read."""
        if self.split.words is not None:
            return np.zeros(len(self), dtype=np.int64)
        return np.array([len(row) for row in self.ids], dtype=np.int64)

    def take(self, rows: Rows, device: torch.device) -> tuple[Tensor, Tensor]:
        """Return padded (n, L) ids or (n, L, d) vectors of `rows` on the device, and (n,) lengths on the CPU."""
        if self.split.words is not None:
            vectors, lengths = _pad_vectors(self.split.words.take(rows))
            return torch.from_numpy(vectors).to(device), torch.from_numpy(lengths)
        ids, lengths = pad([self.ids[row] for row in rows])
        return torch.from_numpy(ids).to(device), torch.from_numpy(lengths)


@dataclass(frozen=True)
class TokenisedTexts(Texts):
    """Texts of the first side as items of an encoder: `ids` (n, L), padded, and `lengths` (n,)."""

    tokeniser: Tokeniser

    @cached_property
    def ids(self) -> list[Sequence[int]]:
        """Ids of every text."""
        return [self.tokeniser.encode(text) for text in self.texts]

    def take(self, rows: Rows) -> dict[str, npt.NDArray[Any]]:
        """Return the ids and lengths of the texts of `rows`."""
        ids, lengths = pad([self.ids[row] for row in rows])
        return {"ids": ids, "lengths": lengths}


def with_tokens(split: Split, tokeniser: Tokeniser) -> Split:
    """Return the split with the texts of its first side as items of an encoder; as it is where they are no texts."""
    if not isinstance(split.images, Texts):
        return split
    return replace(split, images=TokenisedTexts(split.images.texts, tokeniser))


def texts_of(split: Split) -> Sequence[str]:
    """Return every text of a split that its tokeniser should know: captions, and the first side's where it is texts."""
    return [*split.images.texts, *split.captions] if isinstance(split.images, Texts) else split.captions


def _pad_vectors(rows: Sequence[npt.NDArray[Any]]) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    padded = np.zeros((len(rows), int(lengths.max(initial=1)), rows[0].shape[1]), dtype=np.float32)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return padded, lengths
