"""False negatives: how many negatives of a query are likely to be right answers?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, normalise
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from .base import Accumulator, Accumulators, Axis, Reads, Statistic
from .views.view import DenseRows, View

_STATISTICS = tuple(
    Statistic(name, name, "mean", "samples") for name in ("same_image", "duplicates", "outranking", "near")
)


@dataclass(frozen=True)
class FalseNegatives:
    """How many negatives of a query are of its own image, copies of its positive, above it, or right beside it.

    same_image: other captions of the query's image, or further copies of the caption's image, in the batch (E7); none
    when those are masked. duplicates: negatives of other images whose input (pixels, words) equals that of a positive;
    embeddings are not looked at. outranking: negatives strictly above the best positive. near: negatives whose
    embedding has a cosine of at least `near` with that of a positive; copies are among them.
    duplicates is NaN where the source does not know its inputs, near where it has similarities only.
    Raises InputError unless -1 < near <= 1.
    """

    near: float = 0.95
    axis: ClassVar[Axis] = "query"
    reads: ClassVar[frozenset[Reads]] = frozenset({"rows", "extremes", "embeddings", "keys"})
    needs_objective: ClassVar[bool] = False
    cheap: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not -1 < self.near <= 1:
            raise InputError(f"near must be a cosine in (-1, 1]; got {self.near}")

    def tile(self, view: View) -> Accumulators:
        rows = view.rows
        own = _same_image(rows)
        columns = {
            "same_image": _counted(own, rows),
            "duplicates": _counted(_duplicates(rows, own), rows),
            "outranking": view.extremes.above,
            "near": _counted(_near(rows, self.near), rows),
        }
        return {name: Accumulator(value) for name, value in columns.items()}

    def finish(self, accumulators: Accumulators) -> dict[str, Tensor]:
        return {name: part.value for name, part in accumulators.items()}

    def statistics(self, objective: Objective | None) -> tuple[Statistic, ...]:
        return _STATISTICS

    def check(self, objective: Objective) -> None:
        """Negatives are there whatever weighs them."""


def _counted(which: Tensor | None, rows: DenseRows) -> Tensor:
    """(k·q,) how many negatives are among `which` (k·q, c); NaN where nobody knows."""
    if which is None:
        return torch.full((len(rows.S),), torch.nan, device=rows.S.device)
    return (which & rows.mask.negatives).sum(1)


def _same_image(rows: DenseRows) -> Tensor | None:
    if rows.query_groups is None or rows.candidate_groups is None:
        return None
    k = rows.shape.batches
    same: Tensor = rows.query_groups.view(k, -1, 1) == rows.candidate_groups[:, None, :]
    return same.flatten(0, 1).to(rows.S.device)


def _duplicates(rows: DenseRows, same_image: Tensor | None) -> Tensor | None:
    """(k·q, c) whether a candidate of another image is a copy of a positive."""
    if rows.candidate_keys is None:
        return None
    keys = rows.candidate_keys.to(rows.S.device)
    found = torch.zeros_like(rows.mask.match)
    for column, there in _positives(rows.mask):
        own = keys.gather(1, column.view(len(keys), -1)).where(there.view(len(keys), -1), -1)
        found |= (own[:, :, None] == keys[:, None, :]).flatten(0, 1)
    return found if same_image is None else found & ~same_image


def _near(rows: DenseRows, least: float) -> Tensor | None:
    """(k·q, c) whether a candidate's cosine with a positive is at least `least`, within rounding."""
    if rows.candidates is None:
        return None
    vectors = normalise(rows.candidates)
    least -= 4 * torch.finfo(vectors.dtype).eps
    k, _, d = vectors.shape
    found = torch.zeros_like(rows.mask.match)
    for column, there in _positives(rows.mask):
        own = vectors.gather(1, column.view(k, -1, 1).expand(-1, -1, d))
        found |= (torch.bmm(own, vectors.transpose(1, 2)) >= least).flatten(0, 1) & there[:, None]
    return found


def _positives(mask: Mask) -> Iterator[tuple[Tensor, Tensor]]:
    """The first positive of every row, then the second, ...: (k·q,) columns, and bool whether there is one."""
    left = mask.positives.clone()
    for _ in range(1 if mask.first_row_with_two_positives is None else int(left.sum(1).max())):
        column = left.to(torch.uint8).argmax(1)
        yield column, left.gather(1, column[:, None])[:, 0]
        left.scatter_(1, column[:, None], False)
