"""Where do a model's queries lie on the triplet diagram? s₊ and the hardest s₋ of every query, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pandas as pd

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import DIRECTIONS, Progress, SamplingMode
from lossscope.errors import InputError

from .small_batches import rows_of_stack
from .sweep import Sweep

COLUMNS = ("source", "split", "epoch", "direction", "query", "s_pos", "s_neg", "batch_size", "sampling", "seed")


def similarity_cloud(
    embedded: SplitEmbeddings,
    batch_size: int | None = 128,
    seed: int = 0,
    direction: str = "both",
    sampling: SamplingMode = "pairs",
    epoch: float = math.nan,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return (s₊, hardest s₋) of every query within its batch: a row per query, with the columns COLUMNS.

    s₊ is the similarity of the best positive, s₋ of the hardest negative in the batch, as in the probe `similarity`.
    Larger batches hold harder negatives, so a cloud belongs to a batch size. The cloud leaves out queries without a
    positive or without a negative.

    Args:
        embedded: the split.
        batch_size: pairs of a batch; None: everything in one batch, which the rows record as NaN.
        seed: of the batches.
        direction: a direction of the source, such as i2t, t2i or q2d; or both. i2t and t2i stand for the first and the
            second direction of any source.
        sampling: how to make batches.
        epoch: recorded in every row.
        progress: called with (label, done, of).

    Raises:
        InputError: the direction is unknown, or no query has a positive and a negative.
    """
    if direction != "both" and direction not in (*embedded.sides.labels, *DIRECTIONS):
        raise InputError(f"direction must be one of {', '.join(embedded.sides.labels)}, both; got {direction!r}")
    label = direction if direction == "both" else _label_of(embedded, direction)
    if embedded.relations.one_set and sampling == "pairs":
        sampling = "classes"
    # the probe depends on no objective, and `sampling` decides the batches: any objective will do
    sweep = Sweep(("triplet",), ("similarity",), sampling, batch_size, seed, per_query=True, interval=None)
    rows = sweep.run(embedded, progress=progress).queries
    rows = rows.rename(columns={"positive": "s_pos", "hardest": "s_neg"}).dropna(subset=["s_pos", "s_neg"])
    rows = rows if label == "both" else rows[rows["direction"] == label]
    if rows.empty:
        raise InputError(f"{embedded.name} must have queries with a positive and a negative in a batch; it has none")
    size = math.nan if batch_size is None else float(batch_size)
    rows = rows.assign(split=embedded.split, epoch=epoch, batch_size=size)
    return rows[list(COLUMNS)].reset_index(drop=True)


def hardest_negative_counts(
    embedded: SplitEmbeddings, batch_size: int | None = 128, seed: int = 0, direction: str = "i2t"
) -> pd.DataFrame:
    """Return N_c = number of queries whose hardest negative is candidate c, with the columns label, candidate, count.

    The count is over one pass of pairs, in which a candidate occurs once for each of its pairs. Each batch has its own
    hardest negatives, of ties the first. Another caption of the same image is a negative, as in the papers. `label` is
    the source and the direction.

    Raises InputError for an unknown direction.
    """
    label = _label_of(embedded, direction)
    i2t = label == embedded.sides.labels[0]
    ids = embedded.caption_ids if i2t else embedded.image_ids
    count = np.zeros(len(ids), dtype=np.int64)
    for batch in Sampling("pairs", batch_size, seed).batches(embedded.relations):
        rows = rows_of_stack(embedded, [batch], "keep")[0 if i2t else 1]
        columns = rows.extremes.column[~rows.skipped].cpu().numpy()
        np.add.at(count, (batch.captions if i2t else batch.images)[columns], 1)
    return pd.DataFrame({"label": f"{embedded.name} {label}", "candidate": ids, "count": count})


def _label_of(embedded: SplitEmbeddings, direction: str) -> str:
    """Return the name of a direction under the source's sides. Raises InputError for an unknown direction."""
    labels = embedded.sides.labels
    if direction in labels:
        return direction
    if direction in DIRECTIONS and not embedded.relations.one_set:
        return labels[DIRECTIONS.index(direction)]
    raise InputError(f"direction must be one of {', '.join(labels)}; got {direction!r}")


def join_clouds(clouds: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Concatenate clouds of several sources or epochs; sources with the same name get a number: `run`, `run (2)`.

    Otherwise two clouds of the same source and epoch would merge in the picture.
    """
    seen: dict[tuple[str, float], int] = {}
    named = []
    for cloud in clouds:
        name, epoch = str(cloud["source"].iloc[0]), float(cloud["epoch"].iloc[0])
        key = (name, -1.0 if math.isnan(epoch) else epoch)
        seen[key] = seen.get(key, 0) + 1
        named.append(cloud if seen[key] == 1 else cloud.assign(source=f"{name} ({seen[key]})"))
    return pd.concat(named, ignore_index=True)
