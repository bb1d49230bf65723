"""Results of every single query: the rank of its best positive, and its average precision."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import Progress
from lossscope.errors import InputError

from .evaluate import retrieve_both
from .metrics import Retrieval

COLUMNS = ("direction", "query", "image", "rank", "ap5", "relevant")


def per_query(embedded: SplitEmbeddings, progress: Progress | None = None) -> pd.DataFrame:
    """Return a row per query of both directions: first the images that have a caption (i2t), then the captions (t2i).

    Means over the rows are those of `evaluate`: 100 · mean(rank < k) is R@k. Images without a caption are no queries;
    they stay candidates. Columns:

    - direction: i2t or t2i.
    - query: id of the image or of the caption.
    - image: id of the image that the query is, or describes.
    - rank: 0-based, of the best positive: candidates strictly above it.
    - ap5: average precision at 5, divisor min(5, relevant).
    - relevant: number of positives.

    Raises InputError when ids are not unique, and where `evaluate` does.
    """
    for what, ids in (("image", embedded.image_ids), ("caption", embedded.caption_ids)):
        require_unique(what, ids, embedded.name)
    captions = np.arange(len(embedded.caption_ids))
    i2t, t2i = retrieve_both(embedded, np.arange(len(embedded.image_ids)), captions, progress)
    images = np.asarray(embedded.image_ids, dtype=object)
    with_caption = images[np.unique(embedded.caption_image)]
    described = images[embedded.caption_image]
    parts = (_rows("i2t", with_caption, with_caption, i2t), _rows("t2i", embedded.caption_ids, described, t2i))
    return pd.concat(parts, ignore_index=True)


def _rows(direction: str, queries: Iterable[str], images: Iterable[str], retrieval: Retrieval) -> pd.DataFrame:
    values = (direction, list(queries), list(images), retrieval.ranks, retrieval.precisions(5), retrieval.relevant)
    return pd.DataFrame(dict(zip(COLUMNS, values, strict=True)))


def require_unique(what: str, ids: Sequence[str], name: str) -> None:
    """Raise InputError naming an id that several items of source `name` have; `what` is image or caption."""
    first, times = Counter(ids).most_common(1)[0]
    if times > 1:
        raise InputError(
            f"{what} ids of {name} must be unique to identify queries; got {first!r} {times} times. Number them, or "
            f"leave {what}_id out of the dump"
        )
