"""Only top: any objective with its k heaviest negatives, without the others."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._truncated import Truncated
from .counting.truncation import heaviest


@dataclass(frozen=True)
class OnlyTop(Truncated):
    """l_q: none; W = W of `of` on the k negatives with the largest |W|, and 0 on all other negatives.

    It asks what counting cannot answer: does a model learn as well from the negatives that count? With k of at least
    the number of negatives it is `of`, to the bit. Of equal weights, as those of `triplet`, the most similar negatives
    are kept, and of these the first columns.
    W: that of `of`. Where the rows of `of` sum to 0, the positives pull as hard as the kept negatives push; otherwise
    they keep their W.
    Counted: as `of` counts, of the kept negatives.
    Source: ours; an intervention on the counts of Bleeker & de Rijke 2022, section 4.
    """

    of: str = "ntxent:tau=0.1"  # spec of any objective
    k: int = 5  # number of negatives of a query that are kept, from 1

    def __post_init__(self) -> None:
        if not self.k >= 1:
            raise InputError(f"k must be >= 1; got {self.k}")
        super().__post_init__()

    def kept(self, S: Tensor, mask: Mask, W: Tensor) -> Tensor:
        return heaviest(W, S, mask, self.k)
