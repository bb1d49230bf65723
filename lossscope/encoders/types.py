"""What encoders take and return: items, their shapes, encoded batches, released files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lossscope.core.types import ItemShape as ItemShape
from lossscope.text.word_tokenisers import WordTokeniser

ANY_NUMBER = -1
"""In the shape of an item: a number that the data decide, such as that of the regions a released model reads."""

Items = Tensor | Mapping[str, Tensor]
"""A batch of images, videos or features: one tensor, or several by name."""


@dataclass(frozen=True)
class EncodedBatch:
    """The images or the captions of a batch after encoding."""

    global_: Tensor | None  # (n, d) one vector per item, or None
    local: Tensor | None = None  # (n, L, d) regions or words, or None
    mask: Tensor | None = None  # (n, L) bool, True where local is present, the present ones first
    extra: Mapping[str, Tensor] = field(default_factory=dict)  # further tensors with n rows, by name

    @property
    def vectors(self) -> Tensor:
        """The global vectors. Raises ValueError for an encoder that scores pairs directly."""
        if self.global_ is None:
            raise ValueError("this encoder has no global embedding; its similarities come from score()")
        return self.global_

    @property
    def tensors(self) -> dict[str, Tensor]:
        """All tensors by name, with `extra.` before the names of extra."""
        named = {"global_": self.global_, "local": self.local, "mask": self.mask}
        return {k: v for k, v in named.items() if v is not None} | {f"extra.{k}": v for k, v in self.extra.items()}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> EncodedBatch:
        """Return the batch whose `tensors` are given."""
        extra = {k.removeprefix("extra."): v for k, v in tensors.items() if k.startswith("extra.")}
        return cls(tensors.get("global_"), tensors.get("local"), tensors.get("mask"), extra)

    def __len__(self) -> int:
        return len(next(iter(self.tensors.values())))

    @property
    def lengths(self) -> Tensor:
        """(n,) number of present entries of local. Raises ValueError without a mask."""
        if self.mask is None:
            raise ValueError("this batch has no mask, so no lengths")
        return self.mask.sum(1)

    def select(self, rows: Tensor | slice) -> EncodedBatch:
        """Return the items of these rows."""
        return EncodedBatch.from_tensors({k: v[rows] for k, v in self.tensors.items()})


def on_device(items: Any, device: torch.device) -> Items:
    """Return the arrays that a data set took, one or several by name, as tensors on a device."""
    if isinstance(items, Mapping):
        return {name: torch.from_numpy(array).to(device) for name, array in items.items()}
    return torch.from_numpy(items).to(device)


def fits_shape(shape: ItemShape, expected: ItemShape) -> bool:
    """Return whether items have the expected shape, in which ANY_NUMBER stands for any one.

    >>> fits_shape((10, 7), (ANY_NUMBER, 7)), fits_shape((10, 7), (36, 7))
    (True, False)
    """
    if isinstance(shape, Mapping) or isinstance(expected, Mapping):
        return shape == expected
    pairs = zip(shape, expected, strict=False)
    return len(shape) == len(expected) and all(size in (given, ANY_NUMBER) for given, size in pairs)


@dataclass(frozen=True)
class ReleasedFile:
    """The contents of a file released by a model's authors.

    Names in `towers` are without the prefix `module.`, where all names of a tower have it; only that prefix is dropped.
    """

    path: Path  # where it is
    towers: tuple[Mapping[str, Tensor], ...]  # its state dicts: one for most, [image, text(, similarity)] for VSE
    options: Mapping[str, Any] = field(default_factory=dict)  # its opt or config as plain values, {} when it has none
    epoch: int = 0  # as stored, 0 when there is none
    metrics: Mapping[str, float] = field(default_factory=dict)  # as stored, by name
    of_python2: bool = False  # whether Python 2 wrote it
    choices: Mapping[str, str] = field(default_factory=dict)  # what the user says of it: --encoder-option KEY=VALUE


@dataclass(frozen=True)
class OpenedModel:
    """A released file as an encoder."""

    encoder: Any  # the encoder's dataclass
    weights: Mapping[str, Tensor]  # all tensors, under the encoder's names
    item_shape: Any  # shape of one image or video, as the model takes it
    vocabulary_size: int  # rows of its word embedding; 0 when its tokeniser decides
    objective: str  # spec of what it was trained with, at the margin or temperature in the file; may be empty
    ignored: tuple[str, ...] = ()  # names in the file that are left out on purpose
    notices: tuple[str, ...] = ()  # what its user should know
    stored_files: Mapping[str, str] = field(default_factory=dict)  # what a checkpoint of it must store
    context_length: int = 0  # ids of the longest caption it takes; 0 for any
    reading: Mapping[str, str] = field(default_factory=dict)  # how its pictures are read: fit, resample of data sets
    word_tokeniser: WordTokeniser = "treebank"  # how a vocabulary beside it cuts captions
    cleaning: str = ""  # how captions are cleaned before its tokeniser of parts of words (caption_cleaning.CLEANINGS)
