"""How well does a model rank a split that it does not train on? Margin, R@1, nDCG and rsum of the whole split."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from lossscope.core.float32_products import float32_products
from lossscope.core.relations import Relations
from lossscope.encoders.base import Encoder
from lossscope.retrieval.metrics import retrieve
from lossscope.sources.checkpoints.captions import CaptionBatcher
from lossscope.sources.checkpoints.pair_scores import score_split

UNITS: Mapping[str, str] = {"margin": "similarity", "R@1": "%", "nDCG": "1", "rsum": "sum of %"}
"""Metric -> its unit."""
_BOTH = "both"
_ENTRIES = 1 << 23  # of S at a time


@float32_products()
def held_out_metrics(model: Encoder, captions: CaptionBatcher) -> dict[tuple[str, str], float]:
    """Return (direction, metric) -> value of a split, the model in eval mode; `both` is the mean of both directions.

    - margin: mean over queries of s₊ − s₋, the best positive less the hardest negative of the whole split.
    - R@1: in per cent.
    - nDCG: over the whole ranking, in [0, 1]; it counts every positive.
    - rsum: R@1 + R@5 + R@10 of both directions, in per cent; of images and captions alone, of direction `both`.

    Args:
        model: stays in the mode it was in.
        captions: of the split, of two sides.

    Raises:
        InputError: the split has no positive, or a similarity is not finite.
    """
    relations = captions.split.relations
    both = score_split(model, captions)
    size = max(relations.first, relations.second)
    values: dict[tuple[str, str], float] = {}
    ranked = zip(
        relations.sides.labels, both, (relations, relations.t()), retrieve(both, relations, (1, size)), strict=True
    )
    sums = 0.0
    for label, S, related, result in ranked:
        values[label, "margin"] = mean_margin(S, related)
        values[label, "R@1"] = result.recall(1)
        values[label, "nDCG"] = float(result.measures[f"nDCG@{size}"].mean())
        sums += sum(result.recall(k) for k in (1, 5, 10))
    first, second = relations.sides.labels
    for name in ("margin", "R@1", "nDCG"):
        values[_BOTH, name] = (values[first, name] + values[second, name]) / 2
    if relations.sides.is_image_text:
        values[_BOTH, "rsum"] = sums
    return values


def mean_margin(S: Tensor, relations: Relations) -> float:
    """Return the mean of s₊ − s₋ over the queries that have a positive and a negative; NaN without any.

    Args:
        S: (q, c), queries as rows; NaN marks a pair without a score.
        relations: of queries and candidates.
    """
    candidates, total, number = np.arange(relations.second), 0.0, 0
    for rows in torch.split(torch.arange(len(S)), max(1, _ENTRIES // max(relations.second, 1))):
        match = torch.from_numpy(relations.is_positive(rows.numpy(), candidates)).to(S.device)
        scores, valid = S[rows.to(S.device)].double(), ~S[rows.to(S.device)].isnan()
        positive = scores.masked_fill(~(match & valid), -torch.inf).amax(1)
        hardest = scores.masked_fill(~(~match & valid), -torch.inf).amax(1)
        known = (positive > -torch.inf) & (hardest > -torch.inf)
        total += float((positive - hardest)[known].sum())
        number += int(known.sum())
    return total / number if number else float("nan")
