"""Cut a split to its first images and their captions, or to its first queries and all documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lossscope.core.relations import Relations
from lossscope.io.files import fingerprint_of

from ..base import CaptionVectors, Images, Items, ItemShape, Rows, Split, Texts


def first_images(split: Split, number: int) -> Split:
    """Return the first `number` images with their captions, of any other sides the first items with all of the second.

    It is the split itself for 0, or more than there are.
    """
    if not 0 < number < len(split.images):
        return split
    owners, texts = split.caption_image, split.images.texts[:number] if isinstance(split.images, Texts) else None
    rows = np.arange(len(split.captions)) if owners is None else np.flatnonzero(owners < number)
    return Split(  # not replace: what a kind of split knows of its items beside these fields is of all of them
        split.name,
        _FirstImages(split.images, number) if texts is None else Texts(texts),
        [split.captions[row] for row in rows],
        None if owners is None else owners[rows],
        split.image_ids[:number],
        [split.caption_ids[row] for row in rows],
        fingerprint_of(split.fingerprint, f"first {number}"),
        tokens=split.tokens and [split.tokens[row] for row in rows.tolist()],
        words=split.words and _WordsOfRows(split.words, rows),
        notices=split.notices,
        relations=_first_queries(split.relations, number) if owners is None else None,  # type: ignore[arg-type]
    )


def _first_queries(whole: Relations, number: int) -> Relations:
    """Return the relations of the first items of the first side."""
    kept = whole.positives[whole.positives[:, 0] < number]
    negatives = None if whole.negatives is None else whole.negatives[:number]
    return Relations(number, whole.second, kept, whole.sides, negatives=negatives)


class _FirstImages:
    """The first images of a split."""

    def __init__(self, images: Images, number: int) -> None:
        self._images, self._number = images, number

    @property
    def shape(self) -> ItemShape:
        return self._images.shape

    def __len__(self) -> int:
        return self._number

    def take(self, rows: Rows) -> Items:
        return self._images.take(rows)


class _WordsOfRows:
    """Word vectors of some captions."""

    def __init__(self, words: CaptionVectors, rows: Rows) -> None:
        self._words, self._rows = words, rows

    @property
    def width(self) -> int:
        return self._words.width

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, rows: Rows) -> Sequence[npt.NDArray[np.float32]]:
        return self._words.take(self._rows[rows])
