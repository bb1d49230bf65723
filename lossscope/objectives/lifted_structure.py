"""Lifted structured loss: a positive against a soft minimum of the distances to all negatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from lossscope.core.similarity import Mask, euclidean
from lossscope.errors import InputError

from .base import LossObjective, Traits


@dataclass(frozen=True)
class LiftedStructure(LossObjective):
    """l_q = (1/(2|P|)) Σ_p max(0, J_qp)², J_qp = log(Σ_n e^{margin − d_qn} + Σ_q' e^{margin − d_q'p}) + d_qp.

    d = √(2 − 2s). The second sum is over the queries q' for which p is a negative: the negatives of both ends of a pair
    count, so a row of W also depends on other rows (coupled). Rows without a positive or without a negative are left
    out, so their similarities are missing from the second sum.
    form=anchor, the generalised loss: l_q = max(0, log Σ_p e^{d_qp} + log Σ_n e^{margin − d_qn}); rows are independent.
    W: by autograd, through ∂d/∂s = −1/d; 0 for a pair at d = 0, where no direction is defined.
    Counted: |W|.
    Training: 0.5 (mean i2t + mean t2i). Both directions have every positive pair with the same J, so with one positive
    a query this is 1/(2|P|) over the pairs of the batch, once each. The paper of the anchor form sums instead.
    Defaults: margin 1, that of pytorch-metric-learning and TensorFlow; the papers' vectors may have any length.
    Source: Oh Song et al. 2016, eq. 4; anchor: Hermans, Beyer & Leibe 2017, the generalised lifted loss L_LG.
    """

    form: Literal["pair", "anchor"] = "pair"  # negatives of both ends of a pair, or of the query alone
    margin: float = 1.0  # in distance
    traits: ClassVar[Traits] = Traits(positives="many", directions=0.5, reduction="mean")

    def __post_init__(self) -> None:
        if not self.margin >= 0:
            raise InputError(f"margin must be >= 0; got {self.margin}")

    @property
    def coupled(self) -> bool:
        """True for the pair form, which has the negatives of the candidate as well."""
        return self.form == "pair"

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        d = euclidean(S)
        near = (self.margin - d).masked_fill(mask.non_negatives, -torch.inf)
        of_query = near.logsumexp(1, keepdim=True)
        if self.form == "anchor":
            far = d.masked_fill(~mask.positives, -torch.inf).logsumexp(1)
            return (far + of_query.squeeze(1)).relu()
        J = torch.logaddexp(of_query, near.logsumexp(0, keepdim=True)) + d
        return (J.relu().square() * mask.positives).sum(1) / (2 * mask.positives.sum(1))
