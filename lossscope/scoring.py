"""A split through a frozen encoder whose S is not a product of vectors: pairs are scored when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .datasets.base import Split
from .embed import embed
from .encoders.base import Encoder, Side, on_device
from .errors import InputError
from .sentences import Sentences
from .tokens import Tokens
from .weights import Pair

Rows = npt.NDArray[np.int64]
Progress = Callable[[str, int, int], None]
_IMAGES = 1024  # whose local features are held at a time


@dataclass(frozen=True)
class Scorer:
    """S of any images and captions of a split: both are encoded, then scored in tiles, in eval mode.

    batch_size: items encoded at a time. The model stays in the mode it was in.
    """

    model: Encoder
    split: Split
    words: Tokens
    batch_size: int = 256
    progress: Progress | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sentences", Sentences(self.split, self.words))

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
                f"similarities of split {self.split.name!r} must be finite; that of image {image_rows[row]} and "
                f"caption {caption_rows[column]} is not. The training diverged: take an earlier checkpoint"
            )
        return found.clone()

    def _scored(self, image_rows: Rows, caption_rows: Rows) -> Tensor | Pair[Tensor]:
        if self.model.whole:  # what is scored depends on the whole matrix
            return self.model.score(self._images(image_rows), self._captions(caption_rows))
        rows: list[Tensor] = []
        for image_part in _parts(image_rows, _IMAGES):
            images = self._images(image_part)
            tiles = []
            for place, caption_part in enumerate(_parts(caption_rows, self.batch_size)):
                tile = self.model.score(images, self._captions(caption_part))
                assert isinstance(tile, Tensor)
                tiles.append(tile.float())
                if self.progress and len(caption_rows) > self.batch_size:
                    done = len(rows) * _IMAGES * len(caption_rows)
                    done += len(image_part) * min((place + 1) * self.batch_size, len(caption_rows))
                    self.progress(f"scoring {self.split.name} pairs", done, len(image_rows) * len(caption_rows))
            rows.append(torch.cat(tiles, 1))
        return torch.cat(rows)

    def _images(self, rows: Rows) -> Side:
        device = next(self.model.parameters()).device
        parts = [
            self.model.encode_images(on_device(self.split.images.take(part), device))
            for part in _parts(rows, self.batch_size)
        ]
        return joined(parts)

    def _captions(self, rows: Rows) -> Side:
        device = next(self.model.parameters()).device
        sentences: Sentences = getattr(self, "_sentences")  # noqa: B009 - set once by a frozen dataclass
        return joined([
            self.model.encode_texts(*sentences.take(part, device)) for part in _parts(rows, self.batch_size)
        ])  # fmt: skip


def seen(
    model: Encoder, split: Split, words: Tokens, images: int = 0, progress: Progress | None = None
) -> tuple[Pair[Tensor], Rows]:
    """S of a split in both directions, queries as rows, on the CPU, and the image row of its captions.

    images: only the first so many with their captions (0: all). Raises InputError when S is not finite.
    """
    rows = np.arange(min(images or len(split.images), len(split.images)), dtype=np.int64)
    columns = np.flatnonzero(split.caption_image < len(rows)).astype(np.int64)
    owner = split.caption_image[columns]
    if model.dot:
        v, t = embed(model, split, words, progress=None)
        S = v[: len(rows)] @ t[torch.from_numpy(columns)].T
        return Pair(S, S.T), owner
    found = Scorer(model, split, words, progress=progress)(rows, columns)
    both = (found if isinstance(found, Pair) else Pair(found, found.T)).map(torch.Tensor.cpu)
    return both, owner


def joined(sides: list[Side]) -> Side:
    """Sides one below the other, padded to the longest."""
    if len(sides) == 1:
        return sides[0]
    names = sides[0].tensors
    return Side.of({name: _stacked([side.tensors[name] for side in sides]) for name in names})


def _stacked(parts: list[Tensor]) -> Tensor:
    if parts[0].ndim < 2 or len({part.shape[1:] for part in parts}) == 1:
        return torch.cat(parts)
    longest = max(part.shape[1] for part in parts)
    grown = [torch.cat([p, p.new_zeros(len(p), longest - p.shape[1], *p.shape[2:])], 1) for p in parts]
    return torch.cat(grown)


def _parts(rows: Rows, size: int) -> list[Rows]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]
