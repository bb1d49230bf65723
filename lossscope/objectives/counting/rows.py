"""Whole rows of one direction, and what several objectives need of them, made once."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from lossscope.core.counts import check_inputs
from lossscope.core.row_ops import LN2, largest
from lossscope.core.similarity import Mask

from .buffers import Buffers
from .concentration import TOP


@dataclass(frozen=True)
class QueryPositives:
    """What is known of the queries of one direction before any tile.

    positives: (n, p) similarities, −inf where there are fewer. negatives: (n,) how many candidates are negatives.
    """

    positives: Tensor
    negatives: Tensor

    @cached_property
    def usable(self) -> Tensor:
        """(n,) bool: rows with a positive and a negative."""
        return (self.positives > -torch.inf).any(1) & (self.negatives > 0)

    @cached_property
    def best(self) -> Tensor:
        """(n,) the best positive; −inf where there is none."""
        return self.positives.amax(1)


def query_positives(S: Tensor, mask: Mask) -> QueryPositives:
    """Of whole rows (n, c); p = the most positives of a row."""
    if mask.first_row_with_two_positives is None:
        own = S.gather(1, mask.first_positive)
        whole = own if mask.all_usable else own.where(mask.positives.any(1, keepdim=True), -torch.inf)
        return QueryPositives(whole, mask.number_of_negatives)
    most = int(mask.positives.sum(1).max())
    return QueryPositives(S.masked_fill(~mask.positives, -torch.inf).topk(most, dim=1).values, mask.number_of_negatives)


@dataclass(frozen=True, eq=False)
class WholeRows:
    """Rows of similarities, (n, c), in the precision they are counted in, and their mask."""

    S: Tensor
    mask: Mask
    _checked: set[str] = field(default_factory=set, init=False, repr=False)
    _space: Buffers = field(default_factory=Buffers, init=False, repr=False)
    _scale: list[float] = field(default_factory=list, init=False, repr=False)  # that of the exponentials in the room

    @classmethod
    def of(cls, S: Tensor, mask: Mask) -> WholeRows:
        """Half precision becomes float32, where exponentials and counts are exact enough; others stay."""
        return cls(S.detach().float() if S.dtype in (torch.float16, torch.bfloat16) else S.detach(), mask)

    def check(self, positives: str) -> None:
        """Raise InputError for what an objective with `one` or `many` positives can not take, looked for once."""
        if positives not in self._checked:
            check_inputs(self.S, self.mask, positives)
            self._checked.add(positives)

    @property
    def usable(self) -> Tensor:
        """(n,) bool: rows with a positive and a negative."""
        return self.mask.usable

    @cached_property
    def known(self) -> QueryPositives:
        """Positives, and the number of negatives."""
        return query_positives(self.S, self.mask)

    @cached_property
    def negatives(self) -> Tensor:
        """(n, c) S, −inf where there is no negative."""
        return self.S + self.mask.negative_bias

    @cached_property
    def hardest(self) -> Tensor:
        """(n,) the hardest negative; −inf where there is none."""
        return self.negatives.amax(1)

    @cached_property
    def top(self) -> Tensor:
        """(n,) the hardest negative; a number far below all where there is none."""
        return self.hardest.clamp(min=self.least)

    @cached_property
    def gaps(self) -> Tensor:
        """(n, c) how far each negative is below the hardest, ≤ 0; a number far below all where there is none."""
        return torch.sub(self.negatives, self.top[:, None]).clamp_(min=self.least)

    def exponentials(self, scale: float) -> Tensor:
        """(n, c) exp(scale · gap), 0 where there is no negative; the room is used again for the next scale."""
        E = self._space.like(self.negatives, "exponentials")
        if self._scale != [scale]:
            torch.mul(self.gaps, scale / LN2, out=E).exp2_()
            self._scale[:] = [scale]
        return E

    def above(self, cut: Tensor) -> Tensor:
        """(n, c) 1 where a negative is above the cut, (n,), else 0; the room is used again for the next cut."""
        return torch.gt(self.negatives, cut[:, None], out=self._space.like(self.negatives, "truth"))

    def level(self, cut: Tensor) -> Tensor:
        """(n, c) 1 where a negative is at the cut, likewise."""
        return torch.eq(self.negatives, cut[:, None], out=self._space.like(self.negatives, "truth"))

    @cached_property
    def largest(self) -> Tensor:
        """(≤ 5, n) the largest gaps, in any order."""
        return largest(self.gaps, min(TOP, self.gaps.shape[1])).T.contiguous()

    @property
    def least(self) -> float:
        """A number below all similarities, which can still be multiplied by 0 and subtracted from."""
        return torch.finfo(self.S.dtype).min / 4
