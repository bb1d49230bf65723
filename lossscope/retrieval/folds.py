"""Retrieval of a whole split, of equal runs of its images, and of the mean of several sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.relations import Relations
from lossscope.core.sides import plural
from lossscope.core.types import Progress, Rows
from lossscope.engine.blocks.matrix import TiledMatrix
from lossscope.errors import InputError

from .metrics import retrieve, retrieve_by_tiles
from .results import Retrieval


def retrieve_both(
    embedded: SplitEmbeddings,
    images: Rows,
    captions: Rows,
    progress: Progress | None = None,
    cutoffs: Sequence[int] = (),
) -> tuple[Retrieval, Retrieval]:
    """Return both directions of a split, or of a run of its images; in tiles where S is a product of vectors.

    Args:
        embedded: the source.
        images: (n,) consecutive rows of the first side.
        captions: (m,) rows of the second: all, or the captions of these images.
        progress: called after each tile.
        cutoffs: k of the measures; without any, only ranks and the ten best are computed.
    """
    whole = len(images) == len(embedded.image_ids) and len(captions) == len(embedded.caption_ids)
    related: Relations | Rows = embedded.relations
    if not whole:
        related = embedded.relations.caption_image[captions] - images[0]
    if embedded.images is not None:
        return retrieve_by_tiles(TiledMatrix(embedded, images, captions), related, progress, cutoffs)
    return retrieve(embedded.similarities(images, captions), related, cutoffs)


def retrieve_folds(
    embedded: Sequence[SplitEmbeddings], folds: int, progress: Progress | None, cutoffs: Sequence[int]
) -> Iterator[tuple[Retrieval, Retrieval]]:
    """Yield both directions of each fold of a source, or of an ensemble.

    Args:
        embedded: the source, or those of the ensemble.
        folds: number of equal runs of images; 1: the whole split.
        progress: called after each tile.
        cutoffs: k of the measures.

    Raises:
        InputError: folds do not divide the images, have no captions, or are of other sides than images and captions.
    """
    first = embedded[0]
    n = len(first.image_ids)
    if folds != 1 and not first.sides.is_image_text:
        names = [plural(side) for side in (first.sides.first, first.sides.second) if side is not None]
        raise InputError(
            f"--folds cuts images with their captions; {first.name} has {' and '.join(names)}. Leave it out"
        )
    if folds < 1 or n % folds:
        raise InputError(f"--folds must divide the number of images, {n}; got {folds}")
    size = n // folds
    for fold in range(folds):
        images = np.arange(fold * size, (fold + 1) * size, dtype=np.int64)
        captions = np.arange(len(first.caption_ids), dtype=np.int64)
        related: Relations | Rows = first.relations
        if folds > 1:
            owners = first.relations.caption_image
            captions = np.flatnonzero((owners >= images[0]) & (owners <= images[-1]))
            related = owners[captions] - images[0]
        if not len(captions):
            where = f"fold {fold + 1} of {folds}, rows {images[0]}..{images[-1]}"
            raise InputError(f"every fold must have captions; images have none in {where}. Use fewer --folds")
        if len(embedded) == 1:
            yield retrieve_both(first, images, captions, progress, cutoffs)
            continue
        S = torch.stack([e.similarity_block(images, captions) for e in embedded]).mean(0)
        yield retrieve(Pair(S, S.T), related, cutoffs)


def mean_of(embedded: Sequence[SplitEmbeddings]) -> SplitEmbeddings:
    """Return an ensemble as a source: the mean of the similarities of several, each scored once.

    Raises InputError unless the sources hold the same items, each with one matrix for both directions.
    """
    require_same_items(embedded)
    first = embedded[0]
    images, captions = (np.arange(len(ids), dtype=np.int64) for ids in (first.image_ids, first.caption_ids))
    S = torch.stack([e.similarity_block(images, captions) for e in embedded]).mean(0)
    return replace(
        first, name="mean of " + ", ".join(e.name for e in embedded), similarity=S, images=None, captions=None,
        shards=None, pair_scorer=None, encode_rows=None, layer_gradients=None, seed=None, scores=(),
    )  # fmt: skip


def require_same_items(embedded: Sequence[SplitEmbeddings]) -> None:
    """Raise InputError unless the sources of an ensemble have the same ids and positives."""
    for other in embedded[1:]:
        if not _same_items(embedded[0], other):
            raise InputError(
                f"sources of an ensemble must hold the same items; {embedded[0].name} and {other.name} differ"
            )


def _same_items(first: SplitEmbeddings, other: SplitEmbeddings) -> bool:
    """Return whether two sources have the same ids and positives."""
    a, b = first.relations, other.relations
    if first.image_ids != other.image_ids or first.caption_ids != other.caption_ids or a.sides != b.sides:
        return False
    if a.labels is not None and b.labels is not None:
        return np.array_equal(a.labels, b.labels)
    return np.array_equal(a.positives, b.positives)
