"""Only above: any objective with the negatives that `lossscope cocos` counts, without the others."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._truncated import Truncated
from .counting.units import resolve_unit, weights_in_unit


@dataclass(frozen=True)
class OnlyAbove(Truncated):
    """l_q: none; W = W of `of` on the negatives whose counted weight is above eps, and 0 on all other negatives.

    The count of `lossscope cocos` at eps, as an objective: if only what counts teaches, it learns as `of` does. A
    triplet of smoothap counts with any of its positives.
    W: that of `of`. Where the rows of `of` sum to 0, the positives pull as hard as the kept negatives push; otherwise
    they keep their W.
    Counted: as `of` counts, of the kept negatives.
    Source: ours; an intervention on the counts of Bleeker & de Rijke 2022, section 4.
    """

    of: str = "ntxent:tau=0.1"  # spec of any objective
    eps: float = 0.01  # a negative with a larger counted weight is kept; in the unit of the paper of `of`

    def __post_init__(self) -> None:
        if not self.eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {self.eps}")
        super().__post_init__()

    def kept(self, S: Tensor, mask: Mask, W: Tensor) -> Tensor:
        unit = resolve_unit(self.whole, None)
        counted = self.whole.counted_weights(S, mask) if unit == "paper" else weights_in_unit(self.whole, W, mask, unit)
        return mask.negatives & (counted.weights > self.eps).any(1)
