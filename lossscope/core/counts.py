"""What a paper counts in a batch: the weights that it thresholds, the counts of each query, what moves them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from lossscope.core.cached import cached_property
from lossscope.errors import InputError

from .similarity import Mask


class HasCountedWeights(Protocol):
    """Anything that gives the weights which a paper thresholds, such as an objective."""

    def counted_weights(self, S: Tensor, mask: Mask) -> CountedWeights:
        """Return the weights of S (q, c)."""
        ...


@dataclass(frozen=True)
class Counts:
    """What a paper counts: numbers of each query."""

    above: Tensor  # (q,) number of weights above eps
    mass_above: Tensor  # (q,) their sum
    mass_below: Tensor  # (q,) sum of the other weights
    positive: Tensor  # (q,) counted weight on the positive
    n_eff: Tensor  # (q,) (Σ w)² / Σ w² over the negatives: the number of equal weights that are as even; NaN if Σ w = 0
    skipped: Tensor  # (q,) bool, rows without a positive or a negative: zero everywhere and in no denominator

    def scale_weights(self, factor: float) -> Counts:
        """Return the same counts of weights that are `factor` times as large; eps was scaled by the caller."""
        return _scale_weights(self, factor)


@dataclass(frozen=True)
class CountEffects:
    """∂ counts / ∂ (how often a candidate stands in its row), (q, c) each, 0 where an entry is no negative.

    To first order, a row in which candidate c stood twice would have the counts + the effect of c. Where a count is not
    smooth, as whether any weight is above eps, the effect is that of leaving the candidate out.
    """

    above: Tensor  # on the number of weights above eps
    any_above: Tensor  # on whether there is one
    mass_above: Tensor
    mass_below: Tensor
    positive: Tensor  # on the weight on the positive
    n_eff: Tensor  # NaN where the query would have no weight without the candidate

    def scale_weights(self, factor: float) -> CountEffects:
        """Return the effects on weights that are `factor` times as large."""
        return _scale_weights(self, factor)


C = TypeVar("C", Counts, CountEffects)


def _scale_weights(counts: C, factor: float) -> C:
    """Return the same with masses of weights that are `factor` times as large."""
    if factor == 1:
        return counts
    above, below, positive = (mass * factor for mass in (counts.mass_above, counts.mass_below, counts.positive))
    return replace(counts, mass_above=above, mass_below=below, positive=positive)


@dataclass(frozen=True)
class CountedWeights:
    """The weights that a paper thresholds, one for each (query, positive, candidate); p = 1 for all but smoothap."""

    weights: Tensor  # (q, p, c) >= 0 in the paper's own scale, 0 where an entry is not counted (such as the positive)
    divisor: Tensor  # (q,) number of positives that the count of a query is divided by
    positive: Tensor  # (q,) weight on the positive
    skipped: Tensor  # (q,) bool, rows without a positive or a negative
    excludes_equal: bool = False  # leave a weight equal to eps out of mass_below, as released counters do

    def threshold(self, eps: float) -> Counts:
        """Count the weights strictly above eps. Raises InputError unless eps >= 0."""
        if not eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {eps}")
        w = self.weights
        high = w > eps
        low = (w < eps) if self.excludes_equal else ~high
        return Counts(
            above=high.sum((1, 2)) / self.divisor,
            mass_above=(w * high).sum((1, 2)) / self.divisor,
            mass_below=(w * low).sum((1, 2)) / self.divisor,
            positive=self.positive,
            n_eff=self.n_eff,
            skipped=self.skipped,
        )

    def scale(self, factor: float) -> CountedWeights:
        """Return weights that are `factor` times as large."""
        if factor == 1:
            return self
        return replace(self, weights=self.weights * factor, positive=self.positive * factor)

    @classmethod
    def concatenate(cls, parts: list[CountedWeights]) -> CountedWeights:
        """Concatenate the queries of several batches, padding p to the largest."""
        p = max(part.weights.shape[1] for part in parts)
        blocks = [nn.functional.pad(part.weights, (0, 0, 0, p - part.weights.shape[1])) for part in parts]
        columns = [[part.divisor, part.positive, part.skipped] for part in parts]
        divisor, positive, skipped = (torch.cat(column) for column in zip(*columns, strict=True))
        return cls(torch.cat(blocks), divisor, positive, skipped, parts[0].excludes_equal)

    @cached_property
    def total(self) -> Tensor:
        """(q,) Σ w."""
        return self.weights.sum((1, 2))

    @cached_property
    def n_eff(self) -> Tensor:
        """(q,) (Σ w)² / Σ w², of weights divided by their sum first: the squares of small ones would underflow."""
        shares = self.weights / self.total[:, None, None]
        return 1 / torch.einsum("qpc,qpc->q", shares, shares)


def check_inputs(S: Tensor, mask: Mask, positives: str) -> Tensor:
    """Return which rows are usable, (q,) bool, after checking the inputs of an objective.

    Args:
        S: (q, c).
        mask: of the same shape.
        positives: `one` or `many`, how many positives a row may have.

    Raises:
        InputError: for other shapes or types, NaN or infinity among valid entries, or too many positives.
    """
    if not isinstance(S, Tensor):
        raise InputError(f"S must be a tensor, (queries, candidates); got {type(S).__name__}. Write torch.as_tensor(S)")
    if not isinstance(mask, Mask):
        raise InputError(
            f"mask must be a lossscope.Mask; got {type(mask).__name__}. For pairs, pair i on the diagonal of S, write "
            "lossscope.pair_mask(torch.arange(len(S)))"
        )
    if S.shape != mask.match.shape:
        raise InputError(f"S and mask must have one shape; got {tuple(S.shape)} and {tuple(mask.match.shape)}")
    if not S.is_floating_point():
        raise InputError(f"S must be floating point; got {S.dtype}")
    if not math.isfinite(S.detach().sum()):  # otherwise no entry is NaN or infinite
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
            "of images or groups, 2 items of each class, or take an objective with positives=many"
        )
    return mask.usable


def counted_from_weights(weights: Tensor, mask: Mask) -> CountedWeights:
    """Return the CountedWeights of (q, c) weights >= 0: the negatives are counted, the positives kept apart."""
    usable = mask.usable
    if mask.first_row_with_two_positives is None and mask.all_valid and mask.all_usable:
        positive = weights.gather(1, mask.first_positive).squeeze(1)
        counted = weights.scatter(1, mask.first_positive, 0.0)
    else:
        positive = weights.masked_fill(~mask.positives, 0).sum(1) * usable
        counted = weights * (mask.negatives & usable[:, None])
    return CountedWeights(counted[:, None, :], torch.ones_like(positive), positive, ~usable)
