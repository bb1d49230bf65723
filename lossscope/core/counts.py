"""What a paper counts of one batch: the weights it thresholds, and the counts per query."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

import torch
from torch import Tensor, nn

from lossscope.errors import InputError

from .similarity import Mask

Convention = Literal["corrected", "released", "text"]
CONVENTIONS: tuple[Convention, ...] = ("corrected", "released", "text")


class HasCounted(Protocol):
    """Anything with the weights that its paper thresholds: an objective, for one."""

    def counted_weights(self, S: Tensor, mask: Mask) -> CountedWeights:
        """Return the weights of S (q, c)."""
        ...


@dataclass(frozen=True)
class Counts:
    """What a paper counts, per query.

    above: (q,) weights above eps. mass_above, mass_below: (q,) their sum, and the sum of the rest. positive: (q,)
    counted weight on the positive. n_eff: (q,) (Σ w)² / Σ w² over the negatives: as many equal weights would be as
    uneven; NaN without weight. skipped: (q,) rows that had no positive or no negative: zero everywhere, left out of
    every denominator.
    """

    above: Tensor
    mass_above: Tensor
    mass_below: Tensor
    positive: Tensor
    n_eff: Tensor
    skipped: Tensor


@dataclass(frozen=True)
class CountedWeights:
    """The weights that `counts` thresholds: blocks of (query, positive, candidate); all but smoothap have p = 1.

    weights: (q, p, c) >= 0 in the paper's own scale, 0 where an entry can not be counted (the positive, say).
    divisor: (q,) number of positives that a query's count is divided by. positive: (q,) weight on the positive.
    skipped: (q,) bool. below: whether mass_below leaves out a weight equal to eps (released counters do).
    """

    weights: Tensor
    divisor: Tensor
    positive: Tensor
    skipped: Tensor
    below: bool = False

    def threshold(self, eps: float) -> Counts:
        """Count what is strictly above eps. Raises InputError unless eps >= 0."""
        if not eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {eps}")
        w = self.weights
        high = w > eps
        low = (w < eps) if self.below else ~high
        return Counts(
            above=high.sum((1, 2)) / self.divisor,
            mass_above=(w * high).sum((1, 2)) / self.divisor,
            mass_below=(w * low).sum((1, 2)) / self.divisor,
            positive=self.positive,
            n_eff=self.n_eff,
            skipped=self.skipped,
        )

    @classmethod
    def joined(cls, parts: list[CountedWeights]) -> CountedWeights:
        """Those of several batches, one below the other; blocks are padded to the most positives."""
        most = max(part.weights.shape[1] for part in parts)
        blocks = [nn.functional.pad(part.weights, (0, 0, 0, most - part.weights.shape[1])) for part in parts]
        columns = [[part.divisor, part.positive, part.skipped] for part in parts]
        divisor, positive, skipped = (torch.cat(column) for column in zip(*columns, strict=True))
        return cls(torch.cat(blocks), divisor, positive, skipped, parts[0].below)

    @cached_property
    def total(self) -> Tensor:
        """(q,) Σ w."""
        return self.weights.sum((1, 2))

    @cached_property
    def n_eff(self) -> Tensor:
        """(q,) (Σ w)² / Σ w², of weights divided by their sum first: the squares of small ones would vanish."""
        shares = self.weights / self.total[:, None, None]
        return 1 / torch.einsum("qpc,qpc->q", shares, shares)


def check_inputs(S: Tensor, mask: Mask, positives: str) -> Tensor:
    """(q,) bool usable rows. Raises InputError: shapes, NaN or infinity among valid entries, too many positives."""
    if S.shape != mask.match.shape:
        raise InputError(f"S and mask must have one shape; got {tuple(S.shape)} and {tuple(mask.match.shape)}")
    if not S.is_floating_point():
        raise InputError(f"S must be floating point; got {S.dtype}")
    if not math.isfinite(S.detach().sum()):  # else no entry is NaN or infinite
        bad = ~torch.isfinite(S) & mask.valid
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            raise InputError(
                f"valid similarities must be finite; got {float(S[row, column])} at row {row}, column {column}"
            )
    if positives == "one" and mask.first_row_with_two_positives is not None:
        row = mask.first_row_with_two_positives
        raise InputError(
            f"each query must have one positive; row {row} has {int(mask.positives[row].sum())}. Sample pairs instead "
            "of images, or take an objective with positives=many"
        )
    return mask.usable


def counted_from_weights(weights: Tensor, mask: Mask) -> CountedWeights:
    """Counted of an objective with one block per query: (q, c) weights, thresholded on the negatives."""
    usable = mask.usable
    if mask.first_row_with_two_positives is None and mask.all_valid and mask.all_usable:
        positive = weights.gather(1, mask.first_positive).squeeze(1)
        counted = weights.scatter(1, mask.first_positive, 0.0)
    else:
        positive = weights.masked_fill(~mask.positives, 0).sum(1) * usable
        counted = weights * (mask.negatives & usable[:, None])
    return CountedWeights(counted[:, None, :], torch.ones_like(positive), positive, ~usable)
