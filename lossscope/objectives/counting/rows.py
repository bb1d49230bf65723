"""Whole rows of one direction, and what several counting rules derive from them, computed once."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.counts import check_inputs
from lossscope.core.row_ops import LN2, row_top_k
from lossscope.core.similarity import Mask

from .block import Buffers
from .concentration import TOP


@dataclass(frozen=True)
class QueryPositives:
    """The positives of n queries of one direction, which are known before the first tile."""

    similarities: Tensor  # (n, p) of the positives, −inf where a query has fewer
    number_of_negatives: Tensor  # (n,)

    @cached_property
    def usable(self) -> Tensor:
        """(n,) bool: rows with a positive and a negative."""
        return (self.similarities > -torch.inf).any(1) & (self.number_of_negatives > 0)

    @cached_property
    def best(self) -> Tensor:
        """(n,) similarity of the best positive; −inf where there is none."""
        return self.similarities.amax(1)


def query_positives(S: Tensor, mask: Mask) -> QueryPositives:
    """Return the positives of whole rows (n, c), padded to the largest number of positives in a row."""
    if mask.first_row_with_two_positives is None:
        first = S.gather(1, mask.first_positive)
        positive = first if mask.all_usable else first.where(mask.positives.any(1, keepdim=True), -torch.inf)
        return QueryPositives(positive, mask.number_of_negatives)
    p = int(mask.positives.sum(1).max())
    return QueryPositives(S.masked_fill(~mask.positives, -torch.inf).topk(p, dim=1).values, mask.number_of_negatives)


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows of similarities, (n, c), in the precision they are counted in, and their mask."""

    S: Tensor
    mask: Mask
    buffers: Buffers | None = None  # memory of matrices, under names of this direction; None: new memory
    _checked: set[str] = field(default_factory=set, init=False, repr=False)
    _exponentials: dict[float, Tensor] = field(default_factory=dict, init=False, repr=False)  # of the last scale

    @classmethod
    def from_rows(cls, S: Tensor, mask: Mask, buffers: Buffers | None = None) -> WholeRows:
        """Convert half precision to float32, where exponentials and counts are exact enough; other types stay.

        Args:
            S: (n, c).
            mask: of the rows.
            buffers: memory that the next rows of this direction overwrite; None: new memory.
        """
        S = S.detach().float() if S.dtype in (torch.float16, torch.bfloat16) else S.detach()
        return cls(S, mask, buffers)

    def _matrix(self, name: str) -> Tensor:
        """Return memory of the shape of S."""
        if self.buffers is None:
            return torch.empty(self.S.shape, dtype=self.S.dtype, device=self.S.device)
        return self.buffers.empty_like(self.S, f"{self.mask.direction} {name}")

    def _matrix_like_S(self, name: str) -> Tensor | None:
        """Return memory that lies as S does; None, new memory, where that is by columns or there is no other."""
        return self._matrix(name) if self.buffers is not None and self.S.is_contiguous() else None

    def check(self, positives: str) -> None:
        """Raise InputError for rows that an objective with `one` or `many` positives does not take; checked once."""
        if positives not in self._checked:
            check_inputs(self.S, self.mask, positives)
            self._checked.add(positives)

    @property
    def usable(self) -> Tensor:
        """(n,) bool: rows with a positive and a negative."""
        return self.mask.usable

    @cached_property
    def query_positives(self) -> QueryPositives:
        """The positives of each row, and its number of negatives."""
        return query_positives(self.S, self.mask)

    @cached_property
    def negatives(self) -> Tensor:
        """(n, c) S, −inf on entries that are not negatives."""
        return torch.add(self.S, self.mask.negative_bias, out=self._matrix_like_S("negatives"))

    @cached_property
    def hardest(self) -> Tensor:
        """(n,) similarity of the hardest negative; −inf where there is none."""
        return self.negatives.amax(1)

    @cached_property
    def finite_hardest(self) -> Tensor:
        """(n,) similarity of the hardest negative; `low` where there is none."""
        return self.hardest.clamp(min=self.low)

    @cached_property
    def gaps(self) -> Tensor:
        """(n, c) s_n − hardest <= 0 of each negative; `low` on entries that are not negatives."""
        gaps = torch.sub(self.negatives, self.finite_hardest[:, None], out=self._matrix_like_S("gaps"))
        return gaps.clamp_(min=self.low)

    def exponentials(self, scale: float) -> Tensor:
        """(n, c) exp(scale · gap), 0 on entries that are not negatives; overwritten by a call with another scale."""
        if scale not in self._exponentials:
            self._exponentials.clear()  # first, so that new memory can be theirs
            self._exponentials[scale] = torch.mul(self.gaps, scale / LN2, out=self._matrix("exponentials")).exp2_()
        return self._exponentials[scale]

    def above(self, cut: Tensor) -> Tensor:
        """(n, c) 1 where a negative is above the cut, (n,), else 0; overwritten by the next call."""
        return torch.gt(self.negatives, cut[:, None], out=self._matrix("truth"))

    def equal_to(self, cut: Tensor) -> Tensor:
        """(n, c) 1 where a negative is equal to the cut, (n,), else 0; overwritten by the next call."""
        return torch.eq(self.negatives, cut[:, None], out=self._matrix("truth"))

    @cached_property
    def largest_gaps(self) -> Tensor:
        """(k, n) the k = min(5, c) largest gaps of each row, in any order."""
        largest = row_top_k(self.gaps, min(TOP, self.gaps.shape[1]), self._matrix("truth"))
        return largest.T.clone(memory_format=torch.contiguous_format)

    @property
    def low(self) -> float:
        """A finite number far below all similarities, which can be multiplied by 0 and subtracted from."""
        return torch.finfo(self.S.dtype).min / 4
