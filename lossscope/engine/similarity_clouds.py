"""Where is a model's data on the triplet diagram? s₊ and the hardest s₋ of every query, batch by batch."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from lossscope.core.batches import Sampling, SamplingMode
from lossscope.core.embedded import SplitEmbeddings
from lossscope.errors import InputError
from lossscope.io.frames import Frame

from .batch_runner import Progress
from .plan import Sweep

COLUMNS = ("source", "split", "epoch", "direction", "query", "s_pos", "s_neg", "batch_size", "sampling", "seed")
DIRECTIONS = ("i2t", "t2i", "both")


def similarity_cloud(
    embedded: SplitEmbeddings,
    batch_size: int | None = 128,
    seed: int = 0,
    direction: str = "both",
    sampling: SamplingMode = "pairs",
    epoch: float = math.nan,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """(s₊, hardest s₋) of every query within its batch: a row per query; see `COLUMNS`.

    s₊ is the similarity of the best positive, s₋ of the hardest negative in the batch, as the probe `similarity` has
    them: larger batches hold harder negatives, so a cloud belongs to a batch size. batch_size None: all in one, which
    the frame has as NaN. Queries without a positive or a negative are left out. epoch: what the rows are to say of
    themselves.
    Raises InputError for another direction, and where no query has both.
    """
    if direction not in DIRECTIONS:
        raise InputError(f"direction must be one of {', '.join(DIRECTIONS)}; got {direction!r}")
    # `similarity` weighs no objective, and batches are of `sampling`: the one named here is not looked at
    sweep = Sweep(("triplet",), ("similarity",), sampling, batch_size, seed, per_query=True)
    with tempfile.TemporaryDirectory(prefix="lossscope-density-") as folder:
        frame = Frame.open(Path(folder) / "frame", {"name": "density"})
        sweep.run(embedded, frame, progress)
        rows = frame.read("query")
    rows = rows.rename(columns={"positive": "s_pos", "hardest": "s_neg"}).dropna(subset=["s_pos", "s_neg"])
    rows = rows if direction == "both" else rows[rows["direction"] == direction]
    if rows.empty:
        raise InputError(f"{embedded.name} must have queries with a positive and a negative in a batch; it has none")
    said = {
        "split": embedded.split,
        "epoch": epoch,
        "batch_size": math.nan if batch_size is None else float(batch_size),
    }
    return rows.assign(**said)[list(COLUMNS)].reset_index(drop=True)


def hardest_negative_counts(
    embedded: SplitEmbeddings, batch_size: int | None = 128, seed: int = 0, direction: str = "i2t"
) -> pd.DataFrame:
    """N_c = in how many queries each candidate is the hardest negative: columns label, candidate, count.

    Over one sweep of pairs, in which a candidate is as often as it has pairs; each batch has its own hardest negatives.
    Of equal negatives the first. Another caption of the image is a negative, as the papers have it. label: the source
    and the direction.
    Raises InputError for a direction other than i2t and t2i.
    """
    if direction not in DIRECTIONS[:2]:
        raise InputError(f"direction must be i2t or t2i; got {direction!r}")
    i2t = direction == "i2t"
    ids = embedded.caption_ids if i2t else embedded.image_ids
    count = np.zeros(len(ids), dtype=np.int64)
    for batch in Sampling("pairs", batch_size, seed).batches(embedded.caption_image):
        both = embedded.both(batch.images, batch.captions)
        S = (both.i2t if i2t else both.t2i).clone().nan_to_num(-math.inf).fill_diagonal_(-math.inf)
        found = S.max(1)
        rows = (batch.captions if i2t else batch.images)[found.indices[found.values > -math.inf].cpu().numpy()]
        np.add.at(count, rows, 1)
    return pd.DataFrame({"label": f"{embedded.name} {direction}", "candidate": ids, "count": count})


def join_clouds(parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Clouds of several sources or epochs; sources of one name are told apart by a number.

    Two parts of one source and epoch would be one cloud in the picture.
    """
    seen: dict[tuple[str, float], int] = {}
    named = []
    for part in parts:
        name, epoch = str(part["source"].iloc[0]), float(part["epoch"].iloc[0])
        key = (name, -1.0 if math.isnan(epoch) else epoch)
        seen[key] = seen.get(key, 0) + 1
        named.append(part if seen[key] == 1 else part.assign(source=f"{name} ({seen[key]})"))
    return pd.concat(named, ignore_index=True)
