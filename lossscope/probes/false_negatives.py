"""False negatives: how many negatives of a query are likely to be relevant after all?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.known_pairs import KnownPairs, read_known_pairs
from lossscope.core.similarity import Mask, normalise
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Probe, Reads, Statistic
from .views.view import DenseRows, View

_STATISTICS = tuple(
    Statistic(name, name, "mean", "samples") for name in ("same_image", "duplicates", "outranking", "near")
)
_SUSPECTED = Statistic("suspected", "suspected", "mean", "samples")  # of listed pairs alone


@dataclass(frozen=True)
class FalseNegatives(Probe):
    """Number of negatives of a query that share its image, copy its positive, rank above it, or lie close to it.

    Statistics:
        same_image: other captions of the query's image, or further copies of the caption's image, in the batch (E7); 0
            if they are masked.
        same_item: known positives of the query among its negatives; the name of same_image for data without images.
        duplicates: negatives of other items with the same input (pixels, words) as a positive, whatever their
            embeddings; NaN if the source does not know its inputs.
        outranking: negatives strictly above the best positive.
        near: negatives whose embedding has a cosine of at least `near` with that of a positive, copies included; NaN
            if the source has similarities only.
        suspected: sum of the probabilities of the negatives that an audit lists, from 0.05 on, or from the audit's
            threshold. It is a lower bound of the expected number of false negatives, as the list lacks the many
            negatives of lower probability. It needs the option `audit`.

    Raises InputError unless -1 < near <= 1, and for an audit of other items.
    """

    near: float = 0.95  # smallest cosine with a positive at which a negative is near
    audit: Path | None = None  # folder of `lossscope audit`, or its mask.npz
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "extremes", "embeddings", "keys"})

    def __post_init__(self) -> None:
        if not -1 < self.near <= 1:
            raise InputError(f"near must be a cosine in (-1, 1]; got {self.near}")

    def tile(self, view: View) -> Accumulators:
        rows = view.rows
        same_image = _same_image(rows)
        columns = {
            "same_image": _count(same_image, rows),
            "duplicates": _count(_duplicates(rows, same_image), rows),
            "outranking": view.extremes.above,
            "near": _count(_near(rows, self.near), rows),
        }
        if self.audit is not None:
            columns["suspected"] = _sum_suspects(rows, read_known_pairs(self.audit))
        return {name: Accumulator(value) for name, value in columns.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS if self.audit is None else (*_STATISTICS, _SUSPECTED)


def _count(selected: Tensor | None, rows: DenseRows) -> Tensor:
    """(k·q,) number of negatives in a selection, (k·q, c) bool; NaN if it is None."""
    if selected is None:
        return torch.full((len(rows.S),), torch.nan, device=rows.S.device)
    return (selected & rows.mask.negatives).sum(1)


def _same_image(rows: DenseRows) -> Tensor | None:
    """(k·q, c) whether query and candidate are, or describe, the same image; for other sides, whether they match."""
    return None if rows.related is None else rows.related.to(rows.S.device)


def _duplicates(rows: DenseRows, same_image: Tensor | None) -> Tensor | None:
    """(k·q, c) whether a candidate of another image is a copy of a positive."""
    if rows.candidate_keys is None:
        return None
    keys = rows.candidate_keys.to(rows.S.device)
    duplicates = torch.zeros_like(rows.mask.match)
    for column, present in _positives(rows.mask):
        positive = keys.gather(1, column.view(len(keys), -1)).where(present.view(len(keys), -1), -1)
        duplicates |= (positive[:, :, None] == keys[:, None, :]).flatten(0, 1)
    return duplicates if same_image is None else duplicates & ~same_image


def _near(rows: DenseRows, threshold: float) -> Tensor | None:
    """(k·q, c) whether a candidate's cosine with a positive is at least the threshold, within rounding."""
    if rows.candidates is None:
        return None
    vectors = normalise(rows.candidates)
    threshold -= 4 * torch.finfo(vectors.dtype).eps
    k, _, d = vectors.shape
    near = torch.zeros_like(rows.mask.match)
    for column, present in _positives(rows.mask):
        positive = vectors.gather(1, column.view(k, -1, 1).expand(-1, -1, d))
        near |= (torch.bmm(positive, vectors.transpose(1, 2)) >= threshold).flatten(0, 1) & present[:, None]
    return near


def _sum_suspects(rows: DenseRows, known: KnownPairs) -> Tensor:
    """(k·q,) sum of the probabilities of listed negatives."""
    if rows.items is None:
        raise InputError(
            "false-negatives:audit looks items up by the ids of both sides. Views of one set, further "
            "candidates (--terms) and batches of a training loop have none"
        )
    probability = torch.from_numpy(rows.items.probabilities(known)).to(rows.S.device)
    return torch.where(rows.mask.negatives, probability, 0.0).sum(1)


def _positives(mask: Mask) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the first positive of each row, then the second, ...: (k·q,) columns, and bool whether the row has it."""
    remaining = mask.positives.clone()
    for _ in range(1 if mask.first_row_with_two_positives is None else int(remaining.sum(1).max())):
        column = remaining.to(torch.uint8).argmax(1)
        yield column, remaining.gather(1, column[:, None])[:, 0]
        remaining.scatter_(1, column[:, None], False)
