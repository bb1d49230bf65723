"""A split through a frozen encoder whose S is not a product of vectors: pairs are scored when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lossscope.core.pair import Pair
from lossscope.datasets.base import Split
from lossscope.encoders.base import Encoder
from lossscope.encoders.types import EncodedBatch, on_device
from lossscope.errors import InputError

from .captions import CaptionBatcher
from .embed import embed

Rows = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]
_IMAGES = 1024  # whose local features are held at a time
_KEPT = 2 << 30  # bytes of encoded captions that are kept between blocks of images


@dataclass(frozen=True)
class PairScorer:
    """S of any images and captions of a split: both are encoded, then scored in tiles, in eval mode.

    batch_size: items encoded at a time. The model stays in the mode it was in.
    """

    model: Encoder
    sentences: CaptionBatcher
    batch_size: int = 256
    progress: Progress | None = None

    def __call__(self, image_rows: Rows, caption_rows: Rows) -> Tensor | Pair[Tensor]:
        """(n, m) float32 on the model's device, or a Pair of (n, m) and (m, n) where the directions differ.

        Raises InputError when a score is not finite, unless the encoder leaves pairs unscored.
        """
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                found = self._scored(image_rows, caption_rows)
        finally:
            self.model.train(training)
        if isinstance(found, Pair):
            return found.map(torch.clone)
        if not bool(torch.isfinite(found).all()):
            row, column = (~torch.isfinite(found)).nonzero()[0].tolist()
            raise InputError(
                f"similarities of split {self._split.name!r} must be finite; that of image {image_rows[row]} and "
                f"caption {caption_rows[column]} is not. The training diverged: take an earlier checkpoint"
            )
        return found.clone()

    def _scored(self, image_rows: Rows, caption_rows: Rows) -> Tensor | Pair[Tensor]:
        if self.model.whole:  # what is scored depends on the whole matrix
            return self.model.score(self._images(image_rows), self._captions(caption_rows))
        blocks, parts = _parts(image_rows, _IMAGES), _parts(caption_rows, self.batch_size)
        kept = self._kept(parts) if len(blocks) > 1 else {}
        rows: list[Tensor] = []
        for block in blocks:
            images = self._images(block)
            tiles = []
            for place, part in enumerate(parts):
                tile = self.model.score(images, kept[place] if place in kept else self._captions(part))
                assert isinstance(tile, Tensor)
                tiles.append(tile.float())
                if self.progress and len(parts) > 1:
                    done = len(rows) * _IMAGES * len(caption_rows) + len(block) * sum(map(len, parts[: place + 1]))
                    self.progress(f"scoring {self._split.name} pairs", done, len(image_rows) * len(caption_rows))
            rows.append(torch.cat(tiles, 1))
        return torch.cat(rows)

    def _kept(self, parts: list[Rows]) -> dict[int, EncodedBatch]:
        """The captions, encoded once for all blocks of images, as far as they fit into 2 GiB."""
        kept: dict[int, EncodedBatch] = {}
        room = _KEPT
        for place, part in enumerate(parts):
            side = self._captions(part)
            room -= sum(tensor.nbytes for tensor in side.tensors.values())
            if room < 0:
                break
            kept[place] = side
        return kept

    @property
    def _split(self) -> Split:
        return self.sentences.split

    def _images(self, rows: Rows) -> EncodedBatch:
        device = next(self.model.parameters()).device
        images = self._split.images
        parts = _parts(rows, self.batch_size)
        return joined([self.model.encode_images(on_device(images.take(part), device)) for part in parts])

    def _captions(self, rows: Rows) -> EncodedBatch:
        device = next(self.model.parameters()).device
        parts = _parts(rows, self.batch_size)
        return joined([self.model.encode_texts(*self.sentences.take(part, device)) for part in parts])


def score_split(model: Encoder, sentences: CaptionBatcher, progress: Progress | None = None) -> Pair[Tensor]:
    """S of a whole split in both directions, queries as rows, on the CPU. Raises InputError when it is not finite."""
    if model.dot:
        images, captions = embed(model, sentences)
        S = images @ captions.T
        return Pair(S, S.T)
    rows, columns = (np.arange(n, dtype=np.int64) for n in (len(sentences.split.images), len(sentences)))
    found = PairScorer(model, sentences, progress=progress)(rows, columns)
    return (found if isinstance(found, Pair) else Pair(found, found.T)).map(torch.Tensor.cpu)


def joined(sides: list[EncodedBatch]) -> EncodedBatch:
    """Sides one below the other, padded to the longest."""
    if len(sides) == 1:
        return sides[0]
    names = sides[0].tensors
    return EncodedBatch.of({name: _stacked([side.tensors[name] for side in sides]) for name in names})


def _stacked(parts: list[Tensor]) -> Tensor:
    if parts[0].ndim < 2 or len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    longest = max(part.shape[1] for part in parts)
    grown = [torch.cat([p, p.new_zeros(len(p), longest - p.shape[1], *p.shape[2:])], 1) for p in parts]
    return torch.cat(grown)


def _parts(rows: Rows, size: int) -> list[Rows]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
