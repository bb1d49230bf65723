"""What a data set is: named splits of images and captions, with the image row of each caption."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.types import TEXT_SHAPE
from lossscope.core.types import ItemShape as ItemShape
from lossscope.core.types import Rows as Rows
from lossscope.errors import InputError

USUAL_SPLITS = ("train", "val", "test")
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


@dataclass(frozen=True)
class Texts:
    """Texts as the first side of a split: queries, questions, titles. An encoder's tokeniser makes them items.

    They have no shape and cannot be taken before; `TokenisedTexts` of a model can.
    """

    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def shape(self) -> ItemShape:
        """TEXT_SHAPE: texts of any length."""
        return TEXT_SHAPE

    def take(self, rows: Rows) -> Items:
        """Raise InputError: a model of pictures or features was given texts."""
        raise InputError(
            "items must be pictures or features for this; these are texts. Take an encoder of two texts (biencoder)"
        )


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
    """One split: N items of the first side, such as images, and M texts of the second, such as captions.

    Of images and captions `caption_image` is given; of any other two sides it is None, and `relations` is given.
    Raises InputError when the columns have different lengths.
    """

    name: str
    images: Images  # N items; `Texts` where the first side is texts
    captions: list[str]  # M texts
    caption_image: Rows | None  # (M,) row of the image that each caption describes
    image_ids: list[str]  # N unique texts
    caption_ids: list[str]  # M unique texts
    fingerprint: str  # hex, of the content
    # M captions as ids of a vocabulary file, start and end included, where the data set has ids
    tokens: Sequence[Sequence[int]] | None = field(default=None, kw_only=True)
    # vectors of the words of M captions, where the data set has those
    words: CaptionVectors | None = field(default=None, kw_only=True)
    notices: tuple[str, ...] = field(default=(), kw_only=True)  # what the user should know of how it was read
    # (row of the first side, row of the second, score) of pairs that people or a model scored
    scores: Sequence[tuple[int, int, float]] = field(default=(), kw_only=True)
    # how many rows of which file, `all 350 rows of rows.jsonl`, where it is of a file of rows
    used: str = field(default="", kw_only=True)
    # positives and mined negatives; of images and captions they follow from caption_image
    relations: Relations = field(default=None, kw_only=True)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        images, captions = len(self.images), len(self.captions)
        self._require_columns(images, captions)
        if self.caption_image is not None:
            self._take_caption_image(Relations.of_captions(self.caption_image, images))
        if (self.relations.first, self.relations.second) != (images, captions):
            got = f"{self.relations.first} x {self.relations.second}"
            raise InputError(f"relations of {self.name!r} must be of {images} x {captions} items; got {got}")

    def texts_by_id(self) -> Pair[Mapping[str, str] | None]:
        """Return id -> text of both sides; None of one that has no texts."""
        first = self.images.texts if isinstance(self.images, Texts) else ()
        return Pair(_by_id(self.image_ids, first), _by_id(self.caption_ids, self.captions))

    def _take_caption_image(self, derived: Relations) -> None:
        """Keep the relations that follow from caption_image. Raises InputError where others are given beside it."""
        given: Relations | None = self.relations
        same = given is None or (
            given.sides == derived.sides
            and given.labels is None
            and given.negatives is None
            and (given.first, given.second) == (derived.first, derived.second)
            and np.array_equal(given.positives, derived.positives)
        )
        if not same:
            raise InputError(
                f"split {self.name!r} must have caption_image, or relations; got both, and they differ. Give "
                "caption_image=None beside relations, and relations=None beside caption_image"
            )
        object.__setattr__(self, "relations", derived)

    def _require_columns(self, images: int, captions: int) -> None:
        if len(self.image_ids) != images:
            raise InputError(f"split {self.name!r} must have one id per image; got {len(self.image_ids)} for {images}")
        owners = self.caption_image
        given: Any = self.relations
        if given is None and owners is None:
            raise InputError(f"split {self.name!r} must have caption_image or relations; got neither")
        rows = captions if owners is None else len(owners)
        if (rows, len(self.caption_ids)) != (captions, captions):
            got = f"{len(self.caption_ids)} ids and {rows} image rows for {captions} captions"
            raise InputError(f"split {self.name!r} must have one id and one image row per caption; got {got}")
        if owners is not None and len(owners) and not (int(owners.min()) >= 0 and int(owners.max()) < images):
            raise InputError(f"caption_image of {self.name!r} must be in 0..{len(self.images) - 1}")
        for what, column in (("tokens", self.tokens), ("words", self.words)):
            if column is not None and len(column) != captions:
                raise InputError(f"{what} of {self.name!r} must be {captions}, one per caption; got {len(column)}")


def _by_id(ids: Sequence[str], texts: Sequence[str]) -> Mapping[str, str] | None:
    return dict(zip(ids, texts, strict=True)) if any(texts) else None


@runtime_checkable
class Dataset(Protocol):
    """A frozen dataclass whose fields are its options."""

    def splits(self) -> tuple[str, ...]:
        """Return the names of the splits, train first."""

    def split(self, name: str) -> Split:
        """Return the split of a name. Raises InputError, listing the splits, for another name."""


def require_split(name: str, splits: Sequence[str], of: str = "", otherwise: str = "none", advice: str = "") -> None:
    """Raise InputError, listing the splits, unless a name is one of them.

    Args:
        name: of a split.
        splits: of the data set.
        of: what they are of, for the message.
        otherwise: what the message says where there are none.
        advice: what to do, at the end of the message.
    """
    if name not in splits:
        what = f"split of {of}" if of else "split"
        raise InputError(f"{what} must be one of {', '.join(splits) or otherwise}; got {name!r}{advice}")


def require_range(option: str, value: float, low: float, high: float) -> None:
    """Raise InputError, naming `dataset:option`, unless a value is in low..high; NaN is not."""
    if not low <= value <= high:
        raise InputError(f"{option} must be in {low}..{high}; got {value}")


def order_splits(names: Collection[str], first: Sequence[str] = USUAL_SPLITS) -> tuple[str, ...]:
    """Return names of splits: those of `first` in its order, then all others by name."""
    return (*filter(names.__contains__, first), *sorted(set(names) - set(first)))


def group_captions(pairs_of: Sequence[Sequence[tuple[str, str]]]) -> tuple[list[str], list[str], Rows]:
    """Return ids and texts of all captions, and the row of the image of each.

    Args:
        pairs_of: (id, text) pairs of the captions of each image.
    """
    ids = [id for pairs in pairs_of for id, _ in pairs]
    texts = [text for pairs in pairs_of for _, text in pairs]
    return ids, texts, np.repeat(np.arange(len(pairs_of), dtype=np.int64), [len(pairs) for pairs in pairs_of])
