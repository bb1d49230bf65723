"""Any objective with some of its negatives: what is true of the truncated objective because it is of the whole one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from lossscope.core.cached import cached_property
from lossscope.core.counts import CountedWeights
from lossscope.core.similarity import Mask
from lossscope.core.types import Convention, CountedDirection
from lossscope.core.weights import Weights
from lossscope.registry import build, spec_of

from .base import Gradient, Objective, Traits
from .counting.truncation import truncate


class Truncated(Gradient):
    """W of the objective `of`, with 0 on the negatives that are not `kept`; it has no value.

    The choice of negatives depends on S, so the truncated W is the gradient of no loss in general. Where the rows of W
    sum to 0, the positives of a query share the pull of the negatives that are kept.
    """

    of: str  # spec of the whole objective; every field is stated once it is built

    def kept(self, S: Tensor, mask: Mask, W: Tensor) -> Tensor:
        """Return (q, c) bool: the negatives that are kept; W (q, c) is that of the whole objective."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        object.__setattr__(self, "of", spec_of(self.whole))

    @cached_property
    def whole(self) -> Objective:
        """The objective of which this is a part."""
        objective: Objective = build("objectives", self.of)
        return objective

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """Those of the whole objective; published counters count whole objectives alone."""
        return replace(self.whole.traits, conventions=("corrected",), is_part=True)

    @property
    def counted_directions(self) -> tuple[CountedDirection, ...]:
        return self.whole.counted_directions

    @property
    def coupled(self) -> bool:
        return self.whole.coupled

    @property
    def warmup(self) -> str | None:
        return self.whole.warmup

    @property
    def depends_on_batch_size(self) -> bool:
        return self.whole.depends_on_batch_size

    @property
    def rows_sum_to_zero(self) -> bool:
        return self.whole.rows_sum_to_zero

    @property
    def paper_scale(self) -> float | None:
        return self.whole.paper_scale

    @property
    def learnable(self) -> Mapping[str, float]:
        return self.whole.learnable

    def with_learnt(self, learnt: Mapping[str, float]) -> Self:
        """Return the same part of the whole objective with learnt values of `scale` and `bias`."""
        part: Any = self
        changed: Self = replace(part, of=spec_of(self.whole.with_learnt(learnt)))
        return changed

    def network(self) -> nn.Module | None:
        return self.whole.network()

    def differentiable_weights(self, S: Tensor, mask: Mask) -> Tensor:
        return self._truncate(S, mask, self.whole.differentiable_weights(S, mask))

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """Return W of the whole objective, truncated, without values."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self(S, mask)
        weights = self.whole(S, mask)
        return replace(weights, W=self._truncate(S, mask, weights.W), values=None)

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        """Return the counted weights of the negatives that are kept; that of the positive shrinks as its W does."""
        self.require(convention)
        W, counted = self.whole(S, mask).W, self.whole.counted_weights(S, mask)
        kept = self.kept(S, mask, W)
        left_out = mask.negatives & ~kept
        pull, left = (
            (weights.abs() * mask.positives).sum(1) for weights in (W, truncate(W, mask, kept, self.rows_sum_to_zero))
        )
        share = torch.where(pull > 0, left / pull, 1.0).to(counted.positive.dtype)
        return replace(
            counted, weights=counted.weights.masked_fill(left_out[:, None], 0), positive=counted.positive * share
        )

    def _truncate(self, S: Tensor, mask: Mask, W: Tensor) -> Tensor:
        return truncate(W, mask, self.kept(S, mask, W.detach()), self.rows_sum_to_zero)
