"""A fault undone on frozen vectors: without hubs, whitened, paired again."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import TooLittle
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.types import Rows

from ..types import Cure
from .items import subset

_FLOOR = 0.01  # of the mean variance, added to each direction: variance below it is rounding


@dataclass(frozen=True)
class Remedy:
    """A change that undoes a fault, and the source after it, or the cure itself."""

    what: str
    split: SplitEmbeddings | None = None  # a sample of the source with the fault undone
    cure: Cure | None = None  # None: recall@1 of the split beside that of the source


def without(split: SplitEmbeddings, first: Rows, second: Rows) -> SplitEmbeddings:
    """Return a split without the given rows, and without items of the other side that lose their last pair.

    Raises TooLittle where fewer than two of a side are left.
    """
    keep = Pair(np.ones(split.relations.first, bool), np.ones(split.relations.second, bool))
    keep.i2t[first], keep.t2i[second] = False, False
    pairs = split.relations.positives
    pairs = pairs[keep.i2t[pairs[:, 0]] & keep.t2i[pairs[:, 1]]]
    rows = Pair(np.unique(pairs[:, 0]), np.unique(pairs[:, 1]))
    if min(map(len, rows)) < 2:
        raise TooLittle("fewer than two items of a side are left")
    return subset(split, rows)


def whitened(split: SplitEmbeddings) -> SplitEmbeddings:
    """Return a split whose sides are centred, and equally wide in all directions that they use together."""
    first, second = embeddings_of(split)
    sides = [(side - side.mean(0)).double() for side in (first, second)]
    both = torch.cat(sides)
    widths, directions = torch.linalg.eigh(both.T @ both / len(both))
    widths = widths.clamp(min=0)
    map_ = directions * (widths + _FLOOR * widths.mean()).rsqrt()
    return with_embeddings(split, *(side @ map_ for side in sides))


def centred(split: SplitEmbeddings) -> SplitEmbeddings:
    """Return a split whose sides have no direction in common."""
    first, second = embeddings_of(split)
    return with_embeddings(split, first - first.mean(0), second - second.mean(0))


def paired_again(split: SplitEmbeddings, pairs: Rows) -> SplitEmbeddings:
    """Return a split with other positives and their items.

    Args:
        split: of two sides.
        pairs: (n, 2) rows.
    """
    relations = split.relations
    again = Relations(relations.first, relations.second, pairs, relations.sides)
    moved = replace(split, relations=again, caption_image=None)
    return subset(moved, Pair(np.unique(pairs[:, 0]), np.unique(pairs[:, 1])))


def embeddings_of(split: SplitEmbeddings) -> tuple[Tensor, Tensor]:
    """Return the embeddings of both sides. Raises ValueError where there are none."""
    if split.images is None or split.captions is None:
        raise ValueError("embeddings are needed")
    return split.images.float(), split.captions.float()


def with_embeddings(split: SplitEmbeddings, first: Tensor, second: Tensor) -> SplitEmbeddings:
    """Return a split with other rows, of unit length."""
    images = torch.nn.functional.normalize(first, dim=1).float()
    is_one_set = split.relations.one_set
    captions = images if is_one_set else torch.nn.functional.normalize(second, dim=1).float()
    return replace(split, images=images, captions=captions, similarity=None, layer_gradients=None)
