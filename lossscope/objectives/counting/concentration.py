"""How evenly the counted weight of a query is spread over its entries."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights
from lossscope.core.row_ops import dot, largest

TOP = 5  # entries that `top5` adds up
_LEAST = -200.0  # in place of log 0, which times 0 would be no number


@dataclass(frozen=True)
class Concentration:
    """Of p = w / Σ w, (n,) each: 1 / Σ p², exp(−Σ p ln p), the largest p, the sum of the five largest.

    NaN in rows without weight.
    """

    n_eff: Tensor
    perplexity: Tensor
    top1: Tensor
    top5: Tensor

    @classmethod
    def of(cls, counted: CountedWeights) -> Concentration:
        """Of weights one by one. p is taken before it is squared: squares of weights of 1e-30 would vanish."""
        p = (counted.weights / counted.total[:, None, None]).flatten(1)
        few = largest(p, min(TOP, p.shape[1]))
        perplexity = p.log().clamp_(min=_LEAST).mul_(p).sum(1).neg_().exp_()
        return cls(1 / dot(p, p), perplexity, few.amax(1), few.sum(1))

    @classmethod
    def even(cls, number: Tensor) -> Concentration:
        """Of so many equal weights, (n,)."""
        some = number.where(number > 0, torch.nan)
        return cls(some, some, 1 / some, some.clamp(max=TOP) / some)
