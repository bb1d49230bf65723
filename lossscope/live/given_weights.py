"""Use the W of the watched loss itself, which comes with the mask of the batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor

from lossscope.core.counts import CountedWeights, counted_from_weights
from lossscope.core.similarity import Mask
from lossscope.core.types import Convention
from lossscope.errors import InputError
from lossscope.objectives.base import Gradient, Traits

WEIGHTS = "W"  # their name in `mask.info`


@dataclass(frozen=True)
class GivenWeights(Gradient):
    """W = info["W"], (q, c): dL/dS of a training step, computed by autograd in its graph.

    It belongs to the sum over queries, as in every objective: if the loss is a mean, W is multiplied by the number of
    rows or triplets.
    Counted: |W| / saturated.
    """

    saturated: float = 1.0  # weight that counts as 1, such as 1/tau of a softmax
    traits: ClassVar[Traits] = Traits(positives="many", required_info=(WEIGHTS,))

    @property
    def coupled(self) -> bool:
        """True, as any row may influence any other."""
        return True

    @property
    def paper_scale(self) -> float:
        return self.saturated

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        if WEIGHTS not in mask.info:
            raise InputError(
                "a watched loss gives weights for its own batches alone, in the units paper (shares of "
                "the saturated weight, where the loss has one) and cosine. Leave unit=relative out"
            )
        return mask.info[WEIGHTS].to(S.dtype)

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        self.require(convention)
        return counted_from_weights(self(S, mask).W.abs() / self.saturated, mask)
