"""What an objective is: a function from similarities and a mask to W = dL/dS, and what its paper counts.

Write `values` (a LossObjective) or `weights` (a Gradient), and `counted_weights` where the paper thresholds another
scale than |W|.
Shapes: q queries, c candidates, p positives of one query (padded); rows are queries; one call is one direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol

import torch
from torch import Tensor, nn

from lossscope.core.counts import CountedWeights, Counts, check_inputs, counted_from_weights
from lossscope.core.foreign_arrays import to_tensor
from lossscope.core.mkl_warmup import warm_up
from lossscope.core.similarity import Mask
from lossscope.core.types import DIRECTIONS, Convention, CountedDirection
from lossscope.core.weights import Weights
from lossscope.errors import InputError

from ._formulas import cross_entropy as cross_entropy
from ._formulas import hardest_negative as hardest_negative
from ._formulas import mask_invalid
from ._formulas import positive_of as positive_of
from .traits import Traits as Traits

if TYPE_CHECKING:
    from .counting.fold import CountingRule

warm_up()


class Objective(Protocol):
    """A frozen dataclass; its fields are its hyper-parameters."""

    traits: ClassVar[Traits] = Traits()
    caveat: ClassVar[str] = ""  # what a reader must know who compares it with the numbers of its paper
    caveat_of: ClassVar[tuple[str, ...]] = ()  # options at whose defaults the caveat holds; none: it always does

    @property
    def counted_directions(self) -> tuple[CountedDirection, ...]:
        """Directions that have a gradient of their own; `both` where one gradient is of the two."""
        return DIRECTIONS

    @property
    def coupled(self) -> bool:
        """Whether rows of one batch influence each other's W."""
        return False

    @property
    def warmup(self) -> str | None:
        """Spec of the objective to train with first: triplet over all negatives, if `needs_warmup`; else None."""
        return f"triplet:margin={getattr(self, 'margin', 0.2)!r}" if self.traits.needs_warmup else None

    @property
    def depends_on_batch_size(self) -> bool:
        """Whether W shrinks as batches grow, so that its weights have no unit."""
        return False

    @property
    def rows_sum_to_zero(self) -> bool:
        """Whether the rows of W sum to 0: the pull is exactly as large as the push."""
        return False

    @property
    def counting_rule(self) -> CountingRule | None:
        """The rule by which its counts follow from sums over a row, tile by tile; None where there is none."""
        return None

    @property
    def paper_scale(self) -> float | None:
        """|W| / counted weight, where that is one number for all entries; else None."""
        return 1.0 if type(self).counted_weights is Objective.counted_weights else None

    @property
    def learnable(self) -> Mapping[str, float]:
        """Initial values of the `scale` and `bias` that training learns: the loss sees scale · S + bias."""
        return {}

    def with_learnt(self, learnt: Mapping[str, float]) -> Objective:
        """Return a copy with learnt values of `scale` and `bias`."""
        return self

    def network(self) -> nn.Module | None:
        """Return the network that is learnt in an outer step (lossscope/training/meta_step.py); None for most."""
        return None

    def differentiable_weights(self, S: Tensor, mask: Mask) -> Tensor:
        """W, (q, c), with its graph to the parameters of `network()`; only for objectives that have one."""
        return self(S, mask).W

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """Return the Weights of S (q, c). Raises InputError for other shapes, NaN or too many positives."""
        ...

    def counted_weights(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> CountedWeights:
        """Return the weights that its paper thresholds: |W| unless the paper has a scale of its own."""
        self.require(convention)
        weights = self(S, mask)
        return counted_from_weights(weights.W.abs(), mask)

    def counts(self, S: Tensor, mask: Mask, eps: float, convention: Convention = "corrected") -> Counts:
        """Return what its paper counts for each query: the weights strictly above eps."""
        return self.counted_weights(S, mask, convention).threshold(eps)

    def require(self, convention: str) -> None:
        """Raise InputError unless the objective supports the counting convention."""
        if convention not in self.traits.conventions:
            choices, name = ", ".join(self.traits.conventions), type(self).__name__
            raise InputError(f"convention of {name} must be one of {choices}; got {convention!r}")


class LossObjective(Objective):
    """Defines `values`; W is computed by autograd on a detached S, or by `closed_form` where that is faster."""

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        """Return the loss of each query, (q,); called with usable rows only (each has a positive and a negative)."""
        raise NotImplementedError

    def closed_form(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor] | None:
        """Return losses (q,) and W (q, c) without autograd, equal to those of `values`; None where not defined."""
        return None

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """l_q and W = d(Σ_q l_q)/dS; 0 in rows that are not usable."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self(S, mask)
        S = to_tensor(S, "S")
        usable = check_inputs(S, mask, self.traits.positives)
        wide = mask_invalid(S, mask)
        if mask.all_usable:
            values, W = self._evaluate(wide, mask)
        else:
            values, W = wide.new_zeros(len(wide)), torch.zeros_like(wide)
            if bool(usable.any()):
                values[usable], W[usable] = self._evaluate(wide[usable], mask.rows(usable))
        return Weights(W if mask.all_valid else W.masked_fill(~mask.valid, 0), values, usable, mask.number_usable)

    def _evaluate(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        closed_form = self.closed_form(S, mask)
        if closed_form is not None:
            return closed_form
        with torch.enable_grad():
            leaf = S.detach().requires_grad_()
            values = self.values(leaf, mask)
            W = torch.autograd.grad(values.sum(), leaf)[0]
        return values.detach(), W


class Gradient(Objective):
    """Defines `weights`, the gradient stated directly; it has no loss value."""

    def weights(self, S: Tensor, mask: Mask) -> Tensor:
        """Return dL/dS (q, c); called with usable rows only (each has a positive and a negative)."""
        raise NotImplementedError

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """The stated W, 0 in rows that are not usable; `values` is None."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self(S, mask)
        S = to_tensor(S, "S")
        usable = check_inputs(S, mask, self.traits.positives)
        wide = mask_invalid(S, mask)
        if mask.all_usable:
            W = self.weights(wide, mask)
        else:
            W = torch.zeros_like(wide)
            if bool(usable.any()):
                W[usable] = self.weights(wide[usable], mask.rows(usable))
        return Weights(W if mask.all_valid else W.masked_fill(~mask.valid, 0), None, usable, mask.number_usable)


def __getattr__(name: str) -> NoReturn:
    if name == "Loss":
        raise ImportError("Loss of lossscope.objectives.base is its former name: import LossObjective")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
