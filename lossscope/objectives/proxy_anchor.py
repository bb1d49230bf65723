"""Proxy-Anchor: each class vector pulls its hard items of the batch and pushes those of other classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask
from lossscope.core.types import Convention
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class ProxyAnchor(LossObjective):
    """Σ_q l_q / n = mean_P⁺ log(1 + Σ_{q∈p} e^{−alpha (s_qp − δ)}) + mean_P log(1 + Σ_{q∉p} e^{alpha (s_qp + δ)}).

    δ is the margin. Rows are the n items q, columns are the class vectors p of P; P⁺ are those with an item in the
    batch. Each logarithm is shared equally by the items under it, so that the mean of l_q is the loss. The sums run
    over the items of a column: a row of W also depends on other rows (coupled).
    W: −alpha n/|P⁺| times the item's part of 1 + Σ of its class, alpha n/|P| times its part of that of other classes.
    Counted: |W| / alpha.
    Training: mean i2t + mean t2i, ours: the paper has one direction, items against all class vectors.
    Defaults: the paper's.
    Source: Kim et al. 2020, eq. 4.
    """

    alpha: float = 32.0  # factor on similarities
    margin: float = 0.1  # in similarity
    traits: ClassVar[Traits] = Traits(positives="many", reduction="mean")

    def __post_init__(self) -> None:
        if not (self.alpha > 0 and self.margin >= 0):
            raise InputError(f"alpha must be > 0 and margin >= 0; got {self.alpha} and {self.margin}")

    @property
    def coupled(self) -> bool:
        """True: the sums run over the items of the batch."""
        return True

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        pull = _shares(-self.alpha * (S - self.margin), mask.positives)
        push = _shares(self.alpha * (S + self.margin), mask.negatives)
        return len(S) * (pull / mask.positives.any(0).sum() + push / mask.valid.any(0).sum())

    @property
    def paper_scale(self) -> float:
        return self.alpha

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        return counted_from_weights(self(S, mask).W.abs() / self.alpha, mask)


def _shares(exponents: Tensor, included: Tensor) -> Tensor:
    """(q,) Σ_p log(1 + Σ_q e^x_qp) over included entries, each logarithm shared equally by its items."""
    x = exponents.masked_fill(~included, -torch.inf)
    logarithms = torch.cat([x, x.new_zeros(1, x.shape[1])]).logsumexp(0)
    return (included * (logarithms / included.sum(0).clamp(min=1))).sum(1)
