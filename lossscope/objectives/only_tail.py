"""Only tail: any objective without its k heaviest negatives."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from lossscope.core.similarity import Mask
from lossscope.errors import InputError

from ._truncated import Truncated
from .counting.truncation import heaviest


@dataclass(frozen=True)
class OnlyTail(Truncated):
    """l_q: none; W = W of `of`, with 0 on the k negatives of largest |W|.

    The opposite of only_top: what does the rest teach, which no threshold counts? It also drops the negatives that are
    most likely to be positives. Of equal weights the most similar negatives are left out,
    and of these the last columns.
    W: that of `of`. Where the rows of `of` sum to 0, the positives pull as hard as the kept negatives push; otherwise
    they keep their W.
    Counted: as `of` counts, of the kept negatives.
    Source: ours; an intervention on the counts of Bleeker & de Rijke 2022, section 4.
    """

    of: str = "ntxent:tau=0.1"  # spec of any objective
    k: int = 5  # number of negatives of a query that are left out, from 1

    def __post_init__(self) -> None:
        if not self.k >= 1:
            raise InputError(f"k must be >= 1; got {self.k}")
        super().__post_init__()

    def kept(self, S: Tensor, mask: Mask, W: Tensor) -> Tensor:
        return mask.negatives & ~heaviest(W, S, mask, self.k, "last")
