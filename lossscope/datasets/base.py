"""What a data set is: named splits of images and captions, with the image row of each caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lossscope.core.types import ItemShape as ItemShape
from lossscope.core.types import Rows as Rows
from lossscope.errors import InputError

Items = npt.NDArray[Any] | Mapping[str, npt.NDArray[Any]]  # one array, or several by name


class Images(Protocol):
    """The images of one split, by row; they are read and decoded in `take` only."""

    @property
    def shape(self) -> ItemShape:
        """Shape of one item: (3, H, W) pixels, (d,) / (R, d) float32 features, or several shapes by name."""

    def __len__(self) -> int: ...

    def take(self, rows: Rows) -> Items:
        """Return the items of `rows`: pixels, (n, 3, H, W) uint8 or float32 in 0..1; features, (n, d) or (n, R, d)
        float32; or several arrays by name."""


class CaptionVectors(Protocol):
    """Vectors of the words of each caption, by row of the caption."""

    @property
    def width(self) -> int:
        """Width d of a word's vector."""

    def __len__(self) -> int: ...

    def take(self, rows: Rows) -> Sequence[npt.NDArray[np.float32]]:
        """Return one (W, d) array for each of `rows`, W its number of words, at least 1."""


@dataclass(frozen=True)
class Split:
    """One split: N images and M captions. Raises InputError when the columns have different lengths."""

    name: str
    images: Images  # N items
    captions: list[str]  # M texts
    caption_image: Rows  # (M,) row of the image that each caption describes
    image_ids: list[str]  # N unique texts
    caption_ids: list[str]  # M unique texts
    fingerprint: str  # hex, of the content
    # M captions as ids of a vocabulary file, start and end included, where the data set has ids
    tokens: Sequence[Sequence[int]] | None = field(default=None, kw_only=True)
    # vectors of the words of M captions, where the data set has those
    words: CaptionVectors | None = field(default=None, kw_only=True)
    notices: tuple[str, ...] = field(default=(), kw_only=True)  # what the user should know of how it was read

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
        """Return the names of the splits, train first."""

    def split(self, name: str) -> Split:
        """Return the split of a name. Raises InputError, listing the splits, for another name."""
