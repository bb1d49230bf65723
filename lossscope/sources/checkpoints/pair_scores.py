"""Scores of pairs of a split by a frozen encoder whose S is no product of vectors, computed when they are needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lossscope.core.float32_products import float32_products
from lossscope.core.pair import Pair
from lossscope.core.types import Progress, Rows
from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import EncodedBatch, on_device
from lossscope.errors import InputError

from .captions import CaptionBatcher
from .embed import embed

_BLOCK = 1024  # images whose local features are in memory at a time
_CACHE_BYTES = 2 << 30  # of encoded captions that are kept between blocks of images


@dataclass(frozen=True)
class PairScorer:
    """S of any images and captions of a split: both are encoded, then scored in tiles, in eval mode.

    The model stays in the mode it was in.
    """

    model: Encoder
    captions: CaptionBatcher
    batch_size: int = 256  # items encoded at a time
    progress: Progress | None = None  # called after each tile

    @float32_products()
    def __call__(self, image_rows: Rows, caption_rows: Rows) -> Tensor | Pair[Tensor]:
        """Return (n, m) float32 on the model's device, or a Pair of (n, m) and (m, n) where the directions differ.

        Raises InputError when a score is not finite, unless the encoder leaves pairs unscored.
        """
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                scores = self._score(image_rows, caption_rows)
        finally:
            self.model.train(training)
        if isinstance(scores, Pair):
            return scores.map(torch.clone)
        if not bool(torch.isfinite(scores).all()):
            row, column = (~torch.isfinite(scores)).nonzero()[0].tolist()
            raise InputError(
                f"similarities of split {self._split.name!r} must be finite; that of image {image_rows[row]} and "
                f"caption {caption_rows[column]} is not. The training diverged: take an earlier checkpoint"
            )
        return scores.clone()

    def _score(self, image_rows: Rows, caption_rows: Rows) -> Tensor | Pair[Tensor]:
        if self.model.needs_full_matrix:  # what is scored depends on the whole matrix
            return self.model.score(self._encode_images(image_rows), self._encode_captions(caption_rows))
        blocks, parts = _cut(image_rows, _BLOCK), _cut(caption_rows, self.batch_size)
        kept = self._encode_for_all_blocks(parts) if len(blocks) > 1 else {}
        rows: list[Tensor] = []
        for block in blocks:
            images = self._encode_images(block)
            tiles = []
            for index, part in enumerate(parts):
                tile = self.model.score(images, kept[index] if index in kept else self._encode_captions(part))
                assert isinstance(tile, Tensor)
                tiles.append(tile.float())
                if self.progress and len(parts) > 1:
                    done = len(rows) * _BLOCK * len(caption_rows) + len(block) * sum(map(len, parts[: index + 1]))
                    self.progress(f"scoring {self._split.name} pairs", done, len(image_rows) * len(caption_rows))
            rows.append(torch.cat(tiles, 1))
        return torch.cat(rows)

    def _encode_for_all_blocks(self, parts: list[Rows]) -> dict[int, EncodedBatch]:
        """Encode the captions once for all blocks of images, as many as fit into 2 GiB; number of the part -> batch."""
        kept: dict[int, EncodedBatch] = {}
        free = _CACHE_BYTES
        for index, part in enumerate(parts):
            batch = self._encode_captions(part)
            free -= sum(tensor.nbytes for tensor in batch.tensors.values())
            if free < 0:
                break
            kept[index] = batch
        return kept

    @property
    def _split(self) -> Split:
        return self.captions.split

    def _encode_images(self, rows: Rows) -> EncodedBatch:
        device = next(self.model.parameters()).device
        images = self._split.images
        parts = _cut(rows, self.batch_size)
        return concatenate_batches([self.model.encode_images(on_device(images.take(part), device)) for part in parts])

    def _encode_captions(self, rows: Rows) -> EncodedBatch:
        device = next(self.model.parameters()).device
        parts = _cut(rows, self.batch_size)
        return concatenate_batches([self.model.encode_texts(*self.captions.take(part, device)) for part in parts])


def score_split(model: Encoder, captions: CaptionBatcher, progress: Progress | None = None) -> Pair[Tensor]:
    """Return S of a whole split in both directions, queries as rows, on the CPU.

    Raises InputError when it is not finite.
    """
    if model.is_dot_product:
        image_vectors, caption_vectors = embed(model, captions)
        S = image_vectors @ caption_vectors.T
        return Pair(S, S.T)
    rows, columns = (np.arange(n, dtype=np.int64) for n in (len(captions.split.images), len(captions)))
    scores = PairScorer(model, captions, progress=progress)(rows, columns)
    return (scores if isinstance(scores, Pair) else Pair(scores, scores.T)).map(torch.Tensor.cpu)


def concatenate_batches(batches: list[EncodedBatch]) -> EncodedBatch:
    """Concatenate encoded batches, padded to the longest items."""
    if len(batches) == 1:
        return batches[0]
    names = batches[0].tensors
    return EncodedBatch.from_tensors({name: _concatenate([batch.tensors[name] for batch in batches]) for name in names})


def _concatenate(parts: list[Tensor]) -> Tensor:
    if parts[0].ndim < 2 or len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    longest = max(part.shape[1] for part in parts)
    padded = [torch.cat([p, p.new_zeros(len(p), longest - p.shape[1], *p.shape[2:])], 1) for p in parts]
    return torch.cat(padded)


def _cut(rows: Rows, size: int) -> list[Rows]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
