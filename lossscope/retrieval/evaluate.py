"""The retrieval protocol: recalls, average precision and ranks of a source, over folds, and of ensembles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.pair import Pair
from lossscope.core.types import Progress, Rows
from lossscope.engine.tiled.matrix import TiledMatrix
from lossscope.errors import InputError
from lossscope.io.frames import SUMMARY

from .metrics import Retrieval, retrieve, retrieve_by_tiles

_UNITS = {
    "rsum": "sum of %",
    "medr": "rank",
    "meanr": "rank",
    "MRR": "1",
    "mAP@5": "1",
    "mAP@5_hits": "1",
    "ties": "queries",
}  # fmt: skip - all others are recalls, in per cent


def evaluate(embedded: Sequence[SplitEmbeddings], folds: int = 1, progress: Progress | None = None) -> pd.DataFrame:
    """Return summary rows (probe `recall`) of one source, or of an ensemble: the mean of several sources' similarities.

    Args:
        embedded: the source, or those of the ensemble.
        folds: number of equal runs of images, in file order, that are evaluated apart and averaged (COCO 1K is 5 folds
            of 5,000); std is then over folds.
        progress: called after each tile.

    Raises:
        InputError: sources hold different items, folds do not divide the images, or a fold has no captions.
    """
    first = embedded[0]
    for other in embedded[1:]:
        same = other.image_ids == first.image_ids and other.caption_ids == first.caption_ids
        if not same or not np.array_equal(other.caption_image, first.caption_image):
            raise InputError(f"sources of an ensemble must hold the same items; {first.name} and {other.name} differ")
    name = first.name if len(embedded) == 1 else "mean of " + ", ".join(e.name for e in embedded)
    floor = first.floors_median_rank
    statistics = [_statistics(i2t, t2i, floor) for i2t, t2i in _retrieve_folds(embedded, folds, progress)]
    seed = first.seed if len(embedded) == 1 else None
    rows = []
    for direction, statistic in statistics[0]:
        values = np.array([of_fold[direction, statistic] for of_fold in statistics])
        rows.append({
            "source": name, "objective": first.objective if len(embedded) == 1 else None, "direction": direction,
            "probe": "recall", "statistic": statistic, "mean": float(values.mean()),
            "std": float(values.std()) if folds > 1 else np.nan, "n": _count(first, direction, folds),
            "n_defined": _count(first, direction, folds),
            "unit": _UNITS.get(statistic, "%"), "convention": None, "eps": np.nan,
            "batch_size": np.nan, "sampling": f"{folds} folds" if folds > 1 else _split_name(first), "seed": seed,
        })  # fmt: skip
    return pd.DataFrame(rows, columns=list(SUMMARY))


def retrieve_both(
    embedded: SplitEmbeddings, images: Rows, captions: Rows, progress: Progress | None = None
) -> tuple[Retrieval, Retrieval]:
    """Return i2t and t2i of a run of consecutive images and their captions; in tiles where S is a product of vectors.

    Args:
        embedded: the source.
        images: (n,) consecutive rows.
        captions: (m,) rows of the captions of these images.
        progress: called after each tile.
    """
    owner = embedded.caption_image[captions] - images[0]
    if embedded.images is not None:
        return retrieve_by_tiles(TiledMatrix(embedded, images, captions), owner, progress)
    return retrieve(embedded.similarities(images, captions), owner)


def metric_values(S: Pair[Tensor], caption_image: Rows, floor_median: bool = True) -> dict[str, float]:
    """Return `i2t_R@1` ... `t2i_ties` and `rsum` of S: what training validates with after each epoch.

    Args:
        S: similarities of each direction, queries as rows.
        caption_image: (M,) row of the image that each caption describes.
        floor_median: whether the median rank is rounded down.
    """
    values = _statistics(*retrieve(S, caption_image), floor_median)
    return {name if direction == "both" else f"{direction}_{name}": v for (direction, name), v in values.items()}


def _statistics(i2t: Retrieval, t2i: Retrieval, floor_median: bool) -> dict[tuple[str, str], float]:
    """Return (direction, statistic) -> value, rsum included."""
    values = {("i2t", k): v for k, v in i2t.statistics(floor_median).items()}
    values |= {("t2i", k): v for k, v in t2i.statistics(floor_median).items()}
    values["both", "rsum"] = sum(values[d, f"R@{k}"] for d in ("i2t", "t2i") for k in (1, 5, 10))
    return values


def _retrieve_folds(
    embedded: Sequence[SplitEmbeddings], folds: int, progress: Progress | None
) -> Iterator[tuple[Retrieval, Retrieval]]:
    first = embedded[0]
    n = len(first.image_ids)
    if folds < 1 or n % folds:
        raise InputError(f"--folds must divide the number of images, {n}; got {folds}")
    size = n // folds
    for fold in range(folds):
        images = np.arange(fold * size, (fold + 1) * size, dtype=np.int64)
        captions = np.flatnonzero((first.caption_image >= images[0]) & (first.caption_image <= images[-1]))
        if not len(captions):
            place = f"fold {fold + 1} of {folds}, rows {images[0]}..{images[-1]}"
            raise InputError(f"every fold must have captions; images have none in {place}. Use fewer --folds")
        if len(embedded) == 1:
            yield retrieve_both(first, images, captions, progress)
            continue
        S = torch.stack([e.similarity_block(images, captions) for e in embedded]).mean(0)
        yield retrieve(Pair(S, S.T), first.caption_image[captions] - images[0])


def _split_name(embedded: SplitEmbeddings) -> str | None:
    return f"{embedded.split} split" if embedded.split else None


def _count(embedded: SplitEmbeddings, direction: str, folds: int) -> int:
    """Return the number of folds, or of the queries where there is one fold."""
    if folds > 1:
        return folds
    return len(embedded.caption_image) if direction == "t2i" else len(np.unique(embedded.caption_image))
