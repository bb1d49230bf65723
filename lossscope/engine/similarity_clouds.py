"""Where do a model's queries lie on the triplet diagram? s₊ and the hardest s₋ of every query, batch by batch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from lossscope.core.batches import Sampling
from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.types import DIRECTIONS, Progress, SamplingMode
from lossscope.errors import InputError
from lossscope.registry import build, expand, spec_of

from .small_batches import rows_of_stack
from .sweep import Sweep

PAIR_COLUMNS = (
    "objective", "source", "split", "epoch", "direction", "query", "similarity", "weight", "tangent", "batch_size"
)  # fmt: skip
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
    # the probe depends on no objective, and `sampling` decides the batches: any objective will do
    sweep = Sweep(("triplet",), ("similarity",), sampling, batch_size, seed, per_query=True, interval=None)
    rows = _rows_of_queries(embedded, sweep, direction, {"positive": "s_pos", "hardest": "s_neg"}, progress)
    return rows.assign(epoch=epoch)[list(COLUMNS)]


def tangent_cloud(
    embedded: SplitEmbeddings,
    specs: Mapping[str, str],
    batch_size: int | None = 128,
    seed: int = 0,
    direction: str = "both",
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Return |W|, cosine and tangent gradient of every query's hardest negative: a row per query and objective.

    The columns are PAIR_COLUMNS without epoch. They are those of the probe `tangent:of=hardest`: W is that of the whole
    batch.
    Source: Li et al. 2022, eq. (12) and (18).

    Args:
        embedded: the split.
        specs: title -> spec; for a range, the spec of each objective is its title.
        batch_size: as in `similarity_cloud`, also seed, direction and progress.
        seed: of the batches.
        direction: of the queries.
        progress: called with (label, done, of).

    Raises:
        InputError: the direction is unknown, there are similarities only, or no query has a positive and a negative.
    """
    titles: dict[str, str] = {}
    for title, spec in specs.items():
        members = expand("objectives", spec)
        titles |= {spec_of(build("objectives", each)): title if len(members) == 1 else each for each in members}
    sweep = Sweep(tuple(titles), ("tangent:of=hardest",), "pairs", batch_size, seed, per_query=True, interval=None)
    rows = _rows_of_queries(embedded, sweep, direction, {"tangent": "tangent"}, progress)
    rows["objective"] = rows["objective"].map(titles)
    return rows[[name for name in PAIR_COLUMNS if name != "epoch"]]


def _rows_of_queries(
    embedded: SplitEmbeddings, sweep: Sweep, direction: str, columns: Mapping[str, str], progress: Progress | None
) -> pd.DataFrame:
    """Return the rows of a sweep, one per query, with split and batch size.

    Args:
        embedded: the split.
        sweep: with `per_query`; of pairs a set of items has batches of classes.
        direction: of the queries, or both.
        columns: column of the sweep -> its name; rows where they are NaN are left out.
        progress: called with (label, done, of).
    """
    if direction != "both" and direction not in (*embedded.sides.labels, *DIRECTIONS):
        raise InputError(f"direction must be one of {', '.join(embedded.sides.labels)}, both; got {direction!r}")
    label = direction if direction == "both" else _label_of(embedded, direction)
    if embedded.relations.one_set and sweep.sampling == "pairs":
        sweep = replace(sweep, sampling="classes")
    rows = sweep.run(embedded, progress=progress).queries
    rows = rows.rename(columns=columns).dropna(subset=list(columns.values()))
    rows = rows if label == "both" else rows[rows["direction"] == label]
    if rows.empty:
        raise InputError(f"{embedded.name} must have queries with a positive and a negative in a batch; it has none")
    size = math.nan if sweep.batch_size is None else float(sweep.batch_size)
    return rows.assign(split=embedded.split, batch_size=size).reset_index(drop=True)


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
