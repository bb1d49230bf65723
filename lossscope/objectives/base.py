"""What an objective is: similarities and a mask in, W = dL/dS out; and what its paper counts.

Write `values` (a Loss) or `weights` (a Gradient), and `counted_weights` where the paper thresholds another scale
than |W|.
Shapes: q queries, c candidates, p positives of one query (padded); rows are queries; one call is one direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from lossscope.core.counts import Convention, CountedWeights, Counts, check_inputs, counted_from_weights
from lossscope.core.mkl_warmup import warm_up
from lossscope.core.similarity import Mask
from lossscope.core.weights import Reduction, Weights
from lossscope.errors import InputError

from ._formulas import cross_entropy as cross_entropy
from ._formulas import hardest_negative as hardest_negative
from ._formulas import mask_invalid
from ._formulas import positive_of as positive_of

if TYPE_CHECKING:
    from .counting.base import CountingRule

warm_up()


class Objective(Protocol):
    """A frozen dataclass; its fields are its hyper-parameters.

    positives: `one` refuses rows with more than one match, naming the row. directions: factor on each direction
    when the two are added to train. reduction: the training default. conventions: ways of counting it knows.
    statistics: what `cocos` reports of it. needs: names in `mask.info` without which it can not be trained. reads:
    names there of what it takes of each pair, if it is given. square:
    takes only whole batches of pairs, pair i on the diagonal and everything taking part. embeddings: wants those of
    both sides in `mask.info`, as `queries` and `candidates`. relative: fields that, when given, replace what comes
    from the rest of the batch. collapses: the hardest negatives of a random model pull everything together.
    """

    positives: ClassVar[Literal["one", "many"]] = "one"
    directions: ClassVar[float] = 1.0
    reduction: ClassVar[Reduction] = "sum"
    conventions: ClassVar[tuple[Convention, ...]] = ("corrected",)
    statistics: ClassVar[tuple[str, ...]] = ("C_neg", "W_neg", "W_low", "W_pos", "C_0")
    required_info: ClassVar[tuple[str, ...]] = ()
    optional_info: ClassVar[tuple[str, ...]] = ()
    square: ClassVar[bool] = False
    relative: ClassVar[tuple[str, ...]] = ()
    needs_warmup: ClassVar[bool] = False
    needs_embeddings: ClassVar[bool] = False

    @property
    def coupled(self) -> bool:
        """Whether rows of one batch influence each other's W."""
        return False

    @property
    def warmup(self) -> str | None:
        """Spec of what to train with first: the triplet loss over all negatives, where `needs_warmup`; else None."""
        return f"triplet:margin={getattr(self, 'margin', 0.2)!r}" if self.needs_warmup else None

    @property
    def rows_sum_to_zero(self) -> bool:
        """Whether it pulls exactly as much as it pushes, so that the rows of W sum to 0."""
        return False

    @property
    def counting_rule(self) -> CountingRule | None:
        """How its counts follow from sums over a row, where they do, so that a row can be counted tile by tile."""
        return None

    @property
    def learnable(self) -> Mapping[str, float]:
        """`scale` and `bias` that training learns, with where they begin: the loss sees scale · S + bias."""
        return {}

    def with_learnt(self, learnt: Mapping[str, float]) -> Objective:
        """The same at other values of what is learnt."""
        return self

    def network(self) -> nn.Module | None:
        """What it learns in an outer step of its own (metastep.py), None for nearly all."""
        return None

    def differentiable_weights(self, S: Tensor, mask: Mask) -> Tensor:
        """W, (q, c), with its graph to `state()`; only of an objective that has one."""
        return self(S, mask).W

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """S (q, c) and its mask -> Weights. Raises InputError on other shapes, NaN, or too many positives."""
        ...

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        """The weights its paper thresholds; |W| unless the paper has a scale of its own."""
        self.require(convention)
        weights = self(S, mask)
        return counted_from_weights(weights.W.abs(), mask)

    def counts(self, S: Tensor, mask: Mask, eps: float, convention: Convention = "corrected") -> Counts:
        """What its paper counts, per query, above eps (strictly)."""
        return self.counted_weights(S, mask, convention).threshold(eps)

    def require(self, convention: str) -> None:
        """Raise InputError when the objective has no such way of counting."""
        if convention not in self.conventions:
            known, name = ", ".join(self.conventions), type(self).__name__
            raise InputError(f"convention of {name} must be one of {known}; got {convention!r}")


class Loss(Objective):
    """Writes `values`; W comes from one autograd step on a detached S, or from `closed_form` where that is faster."""

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        """(q,) loss of each query; called with usable rows only (each has a positive and a negative)."""
        raise NotImplementedError

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor] | None:
        """(q,) losses and (q, c) W without autograd, tested to be what `values` gives; None: there is no such form."""
        return None

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """l_q and W = d(sum_q l_q)/dS; rows that are not usable get zeros."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self(S, mask)
        usable = check_inputs(S, mask, self.positives)
        wide = mask_invalid(S, mask)
        if mask.all_usable:
            values, W = self._derived(wide, mask)
        else:
            values, W = wide.new_zeros(len(wide)), torch.zeros_like(wide)
            if bool(usable.any()):
                values[usable], W[usable] = self._derived(wide[usable], mask.rows(usable))
        return Weights(W if mask.all_valid else W.masked_fill(~mask.valid, 0), values, usable, mask.number_usable)

    def _derived(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        stated = self.closed_form(S, mask)
        if stated is not None:
            return stated
        with torch.enable_grad():
            leaf = S.detach().requires_grad_()
            values = self.values(leaf, mask)
            W = torch.autograd.grad(values.sum(), leaf)[0]
        return values.detach(), W


class Gradient(Objective):
    """Writes `weights`, the gradient stated directly; it has no value."""

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        """(q, c) dL/dS; called with usable rows only (each has a positive and a negative)."""
        raise NotImplementedError

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """The stated W; rows that are not usable get zeros. values is None."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self(S, mask)
        usable = check_inputs(S, mask, self.positives)
        wide = mask_invalid(S, mask)
        if mask.all_usable:
            W = self.weights(wide, mask)
        else:
            W = torch.zeros_like(wide)
            if bool(usable.any()):
                W[usable] = self.weights(wide[usable], mask.rows(usable))
        return Weights(W if mask.all_valid else W.masked_fill(~mask.valid, 0), None, usable, mask.number_usable)
