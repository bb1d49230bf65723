"""Results of every single query: the rank of its best positive, its average precision, and further measures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.item_ids import require_unique
from lossscope.core.types import Progress

from .folds import retrieve_both
from .measures import choose_cutoffs
from .metrics import Retrieval

COLUMNS = ("direction", "query", "image", "rank", "ap5", "relevant")  # of images and captions


def per_query(
    embedded: SplitEmbeddings, progress: Progress | None = None, cutoffs: Sequence[int] | None = None
) -> pd.DataFrame:
    """Return a row per query of both directions: first the images that have a caption (i2t), then the captions (t2i).

    Of other sides likewise: the queries that have a positive (q2d), then the documents (d2q); of one set its items
    (all). Means over the rows are those of `evaluate`: 100 · mean(rank < k) is R@k. Items without a positive are no
    queries; they stay candidates. Columns:

    - direction: i2t or t2i; q2d, d2q, all.
    - query: id of the image or of the caption, or of the item.
    - image: id of the image that the query is, or describes; only of images and captions.
    - rank: 0-based, of the best positive: candidates strictly above it.
    - ap5: average precision at 5, divisor min(5, relevant).
    - relevant: number of positives.
    - R@k, recall@k, nDCG@k, MRR@k, MAP@R, R-precision: see `measures.measures`; of images and captions only where
      `cutoffs` are given.

    Args:
        embedded: the source.
        progress: called after each tile.
        cutoffs: k; 1, 5 and 10 unless given.

    Raises:
        InputError: ids are not unique, and where `evaluate` does.
    """
    sides, relations = embedded.sides, embedded.relations
    both_ids = (embedded.image_ids, embedded.caption_ids)
    for label, ids in zip(sides.labels, both_ids, strict=False):
        require_unique(sides.query(label), ids, embedded.name, "to identify queries")
    images, captions = (np.arange(len(ids)) for ids in both_ids)
    both = retrieve_both(embedded, images, captions, progress, choose_cutoffs(sides, cutoffs))
    first = np.flatnonzero(relations.number_of_positives)
    second = np.zeros(0, np.int64) if relations.one_set else np.unique(relations.positives[:, 1])
    names = [np.asarray(ids, dtype=object)[rows] for ids, rows in zip(both_ids, (first, second), strict=True)]
    parts = [_rows(label, ids, result) for label, ids, result in zip(sides.labels, names, both, strict=False)]
    if sides.is_image_text:
        described = np.asarray(embedded.image_ids, dtype=object)[relations.caption_image]
        for part, owners in zip(parts, (names[0], described), strict=True):
            part.insert(COLUMNS.index("image"), "image", owners)
    return pd.concat(parts, ignore_index=True)


def _rows(direction: str, queries: Sequence[str], retrieval: Retrieval) -> pd.DataFrame:
    columns = {
        "direction": direction, "query": list(queries), "rank": retrieval.ranks, "ap5": retrieval.precisions(5),
        "relevant": retrieval.relevant,
    }  # fmt: skip
    return pd.DataFrame(columns | dict(retrieval.measures))
