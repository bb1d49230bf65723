"""Binomial deviance: a logistic loss on every pair, with a higher cost on negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class BinomialDeviance(LossObjective):
    """l_q = mean_p ln(1 + exp(−alpha (s_p − beta))) + mean_n ln(1 + exp(alpha cost (s_n − beta))).

    W: −alpha sigmoid(−alpha (s_p − beta)) / |P| on positives, alpha cost sigmoid(alpha cost (s_n − beta)) / |N| on
    negatives.
    Counted: |W|.
    Training: 0.5 (mean i2t + mean t2i); the paper takes each mean over the pairs of the whole batch, which is the same
    where all queries have equally many positives and equally many negatives.
    Defaults: alpha 2, beta 0.5 and cost 25, those of the code of BIER (Opitz et al. 2018). Not in
    pytorch-metric-learning.
    Source: Yi et al. 2014, binomial deviance; with the cost of negatives as Ustinova & Lempitsky 2016 write it.
    """

    alpha: float = 2.0  # steepness
    beta: float = 0.5  # similarity between positives and negatives
    cost: float = 25.0  # factor on the steepness for negatives
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and self.cost > 0):
            raise InputError(f"alpha and cost must be > 0; got {self.alpha} and {self.cost}")

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        zero = torch.zeros_like(S)
        pull = torch.logaddexp(-self.alpha * (S - self.beta), zero)
        push = torch.logaddexp(self.alpha * self.cost * (S - self.beta), zero)
        return _mean(pull, mask.positives) + _mean(push, mask.negatives)


def _mean(terms: Tensor, selected: Tensor) -> Tensor:
    """(q,) mean of the selected entries of each row; every row has one."""
    return (terms * selected).sum(1) / selected.sum(1)
