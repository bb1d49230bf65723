"""Encode every different text once: what the cache has is read, the rest goes longest first, in batches of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossscope.core.request import Request
from lossscope.core.sides import plural
from lossscope.core.types import Progress, Rows

from ._row_cache import RowCache

_TOKENS, _TOKENS_OF_GPU = 1024, 1 << 16  # of a batch, with padding: what one thread, or a GPU, takes shortest for
_COUNTED = 4096  # texts whose tokens are counted at a time

EncodedTexts = tuple[Tensor, Tensor]  # vectors (n, d), float32 on the CPU, and whether a text was cut (n,)
Encode = Callable[[Sequence[str], str], EncodedTexts]  # texts of a batch, and what they are: query, document, caption
CountTokens = Callable[[Sequence[str]], Sequence[int]]  # of each text, as many as are read


@dataclass(frozen=True)
class TextVectors:
    """The vectors of any number of texts by a model."""

    encode: Encode
    count_tokens: CountTokens
    role: Callable[[str], str]  # side -> what the model puts before its texts, which is part of their key
    cache: RowCache
    request: Request  # has the device, the most texts of a batch, progress

    def __call__(self, texts: Sequence[str], side: str) -> EncodedTexts:
        """Return the vectors of the texts of a side, in their order."""
        keys = [self.cache.key(self.role(side), text) for text in texts]
        number_of = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        text_of = dict(zip(keys, texts, strict=True))
        distinct = list(number_of)
        rows = _Rows(len(distinct))
        for cached in self.cache.read(number_of):
            rows.put(*cached)
        missing = rows.missing
        report = _Report(self.request.progress, side, len(distinct), len(distinct) - len(missing))
        with self.cache.writer() as writer:
            lengths = self._lengths([text_of[distinct[number]] for number in missing])
            for batch in token_batches(lengths, self._most_tokens, self.request.batch_size):
                numbers = missing[batch]
                encoded = self.encode([text_of[distinct[number]] for number in numbers], side)
                rows.put(numbers, *encoded)
                writer.add([distinct[number] for number in numbers], *encoded)
                report.encoded(len(numbers))
        if len(distinct) == len(texts):
            return rows.vectors, rows.cut
        order = torch.tensor([number_of[key] for key in keys])
        return rows.vectors[order], rows.cut[order]

    def _lengths(self, texts: Sequence[str]) -> Rows:
        starts = range(0, len(texts), _COUNTED)
        return np.array([n for start in starts for n in self.count_tokens(texts[start : start + _COUNTED])], np.int64)

    @property
    def _most_tokens(self) -> int:
        """Of a batch; threads wait for each other at every layer, so more of them take larger batches."""
        if self.request.device != "cpu":
            return _TOKENS_OF_GPU
        threads = torch.get_num_threads()
        return _TOKENS if threads == 1 else 4 * _TOKENS * threads


def token_batches(lengths: Rows, most_tokens: int, most_rows: int) -> Iterator[Rows]:
    """Yield rows of texts of similar length, the longest first: a batch that memory cannot hold fails at once.

    Args:
        lengths: (n,) tokens.
        most_tokens: of a batch, each text as long as the longest; a single text may have more.
        most_rows: of a batch.
    """
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        rows = min(max(most_tokens // max(int(lengths[order[start]]), 1), 1), most_rows)
        yield order[start : start + rows]
        start += rows


class _Rows:
    """Vectors that come in parts, in any order."""

    def __init__(self, number: int) -> None:
        self.cut = torch.zeros(number, dtype=torch.bool)
        self._vectors: Tensor | None = None
        self._known = np.zeros(number, dtype=bool)

    def put(self, numbers: Rows, vectors: Tensor, cut: Tensor) -> None:
        """Take the vectors of some rows."""
        if self._vectors is None:
            self._vectors = torch.empty(len(self.cut), vectors.shape[1])
        rows = torch.from_numpy(numbers)
        self._vectors[rows], self.cut[rows] = vectors, cut
        self._known[numbers] = True

    @property
    def missing(self) -> Rows:
        """The rows without a vector."""
        return np.flatnonzero(~self._known)

    @property
    def vectors(self) -> Tensor:
        """All vectors."""
        assert self._vectors is not None and self._known.all()
        return self._vectors


@dataclass
class _Report:
    """Progress on the texts of a side: how many come from the cache, how many are encoded."""

    progress: Progress | None
    side: str
    total: int  # different texts
    done: int  # of them from the cache

    def __post_init__(self) -> None:
        if self.progress and self.done:
            self.progress(f"{plural(self.side)} from the cache (lossscope cache)", self.done, self.done)

    def encoded(self, texts: int) -> None:
        """Count texts that were encoded."""
        self.done += texts
        if self.progress:
            self.progress(f"encoding {plural(self.side)}", self.done, self.total)
