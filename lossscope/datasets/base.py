"""What a data set is: named splits of images and captions; a caption knows its image by row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lossscope.errors import InputError

Rows = npt.NDArray[np.int64]
Items = npt.NDArray[Any] | Mapping[str, npt.NDArray[Any]]
Shape = tuple[int, ...] | Mapping[str, tuple[int, ...]]


class Images(Protocol):
    """The images of one split, by row; decoding happens in `take`, so a split costs nothing until used."""

    @property
    def shape(self) -> Shape:
        """Shape of one item: (3, H, W) uint8 pixels, (d,) / (R, d) float32 features, or several shapes by name."""

    def __len__(self) -> int: ...

    def take(self, rows: Rows) -> Items:
        """Items of `rows`, stacked: (n, 3, H, W) uint8, (n, d) / (n, R, d) float32, or several such arrays by name."""


class CaptionVectors(Protocol):
    """Vectors of the words of each caption, by the caption's row."""

    @property
    def width(self) -> int:
        """d, numbers of a word."""

    def __len__(self) -> int: ...

    def take(self, rows: Rows) -> Sequence[npt.NDArray[np.float32]]:
        """One (W, d) array for each of `rows`, W its number of words, at least 1."""


@dataclass(frozen=True)
class Split:
    """One split. Raises InputError when the columns do not fit each other.

    images: N items. captions: M texts. caption_image: (M,) row of the image each caption describes.
    image_ids: N, caption_ids: M, unique texts that name the items outside. fingerprint: hex, of content.
    tokens: M captions as ids of a vocabulary file, start and end included, where the data set holds ids.
    words: vectors of the words of M captions, where the data set holds those.
    """

    name: str
    images: Images
    captions: list[str]
    caption_image: Rows
    image_ids: list[str]
    caption_ids: list[str]
    fingerprint: str
    tokens: Sequence[Sequence[int]] | None = field(default=None, kw_only=True)
    words: CaptionVectors | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        images, captions = len(self.images), len(self.captions)
        if len(self.image_ids) != images:
            raise InputError(f"split {self.name!r} must have one id per image; got {len(self.image_ids)} for {images}")
        if (len(self.caption_image), len(self.caption_ids)) != (captions, captions):
            got = f"{len(self.caption_ids)} ids and {len(self.caption_image)} image rows for {captions} captions"
            raise InputError(f"split {self.name!r} must have one id and one image row per caption; got {got}")
        if len(self.caption_image) and not (
            int(self.caption_image.min()) >= 0 and int(self.caption_image.max()) < len(self.images)
        ):
            raise InputError(f"caption_image of {self.name!r} must be in 0..{len(self.images) - 1}")
        for what, column in (("tokens", self.tokens), ("words", self.words)):
            if column is not None and len(column) != captions:
                raise InputError(f"{what} of {self.name!r} must be {captions}, one a caption; got {len(column)}")


@runtime_checkable
class Dataset(Protocol):
    """A frozen dataclass whose fields are its options."""

    def splits(self) -> tuple[str, ...]:
        """Names of the splits there are, train first."""

    def split(self, name: str) -> Split:
        """The split of that name. Raises InputError listing the splits when there is none."""
