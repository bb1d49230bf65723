"""What an objective is: similarities and a mask in, W = dL/dS out; and what its paper counts.

Write `values` (a Loss) or `weights` (a Gradient), and `counted` where the paper thresholds another scale than |W|.
Shapes: q queries, c candidates, p positives of one query (padded); rows are queries; one call is one direction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

import torch
from torch import Tensor, nn

from lossscope.core.mkl_warmup import settle
from lossscope.core.similarity import Mask
from lossscope.core.weights import Reduction, Weights
from lossscope.errors import InputError

if TYPE_CHECKING:
    from .counting.base import Form

settle()

Convention = Literal["corrected", "released", "text"]
CONVENTIONS: tuple[Convention, ...] = ("corrected", "released", "text")


@dataclass(frozen=True)
class Counts:
    """What a paper counts, per query.

    above: (q,) weights above eps. mass_above, mass_low: (q,) their sum, and the sum of the rest. positive: (q,)
    counted weight on the positive. n_eff: (q,) (Σ w)² / Σ w² over the negatives: as many equal weights would be as
    uneven; NaN without weight. skipped: (q,) rows that had no positive or no negative: zero everywhere, left out of
    every denominator.
    """

    above: Tensor
    mass_above: Tensor
    mass_low: Tensor
    positive: Tensor
    n_eff: Tensor
    skipped: Tensor


@dataclass(frozen=True)
class Counted:
    """The weights that `counts` thresholds: blocks of (query, positive, candidate); all but smoothap have p = 1.

    weights: (q, p, c) >= 0 in the paper's own scale, 0 where an entry can not be counted (the positive, say).
    divisor: (q,) number of positives that a query's count is divided by. positive: (q,) weight on the positive.
    skipped: (q,) bool. below: whether mass_low leaves out a weight equal to eps (released counters do).
    """

    weights: Tensor
    divisor: Tensor
    positive: Tensor
    skipped: Tensor
    below: bool = False

    def threshold(self, eps: float) -> Counts:
        """Count what is strictly above eps. Raises InputError unless eps >= 0."""
        if not eps >= 0:
            raise InputError(f"eps must be a number >= 0; got {eps}")
        w = self.weights
        high = w > eps
        low = (w < eps) if self.below else ~high
        return Counts(
            above=high.sum((1, 2)) / self.divisor,
            mass_above=(w * high).sum((1, 2)) / self.divisor,
            mass_low=(w * low).sum((1, 2)) / self.divisor,
            positive=self.positive,
            n_eff=self.n_eff,
            skipped=self.skipped,
        )

    @classmethod
    def joined(cls, parts: list[Counted]) -> Counted:
        """Those of several batches, one below the other; blocks are padded to the most positives."""
        most = max(part.weights.shape[1] for part in parts)
        blocks = [nn.functional.pad(part.weights, (0, 0, 0, most - part.weights.shape[1])) for part in parts]
        columns = [[part.divisor, part.positive, part.skipped] for part in parts]
        divisor, positive, skipped = (torch.cat(column) for column in zip(*columns, strict=True))
        return cls(torch.cat(blocks), divisor, positive, skipped, parts[0].below)

    @cached_property
    def total(self) -> Tensor:
        """(q,) Σ w."""
        return self.weights.sum((1, 2))

    @cached_property
    def n_eff(self) -> Tensor:
        """(q,) (Σ w)² / Σ w², of weights divided by their sum first: the squares of small ones would vanish."""
        shares = self.weights / self.total[:, None, None]
        return 1 / torch.einsum("qpc,qpc->q", shares, shares)


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
    needs: ClassVar[tuple[str, ...]] = ()
    reads: ClassVar[tuple[str, ...]] = ()
    square: ClassVar[bool] = False
    relative: ClassVar[tuple[str, ...]] = ()
    collapses: ClassVar[bool] = False
    embeddings: ClassVar[bool] = False

    @property
    def coupled(self) -> bool:
        """Whether rows of one batch influence each other's W."""
        return False

    @property
    def warmup(self) -> str | None:
        """Spec of what to train with first: the triplet loss over all negatives, where `collapses`; else None."""
        return f"triplet:margin={getattr(self, 'margin', 0.2)!r}" if self.collapses else None

    @property
    def differences(self) -> bool:
        """Whether it pulls exactly as much as it pushes, so that the rows of W sum to 0."""
        return False

    @property
    def tiled(self) -> Form | None:
        """How its counts follow from sums over a row, where they do, so that a row can be counted tile by tile."""
        return None

    @property
    def learnt(self) -> Mapping[str, float]:
        """`scale` and `bias` that training learns, with where they begin: the loss sees scale · S + bias."""
        return {}

    def at(self, learnt: Mapping[str, float]) -> Objective:
        """The same at other values of what is learnt."""
        return self

    def state(self) -> nn.Module | None:
        """What it learns in an outer step of its own (metastep.py), None for nearly all."""
        return None

    def weighed(self, S: Tensor, mask: Mask) -> Tensor:
        """W, (q, c), with its graph to `state()`; only of an objective that has one."""
        return self(S, mask).W

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """S (q, c) and its mask -> Weights. Raises InputError on other shapes, NaN, or too many positives."""
        ...

    def counted(self, S: Tensor, mask: Mask, convention: Convention = "corrected") -> Counted:
        """The weights its paper thresholds; |W| unless the paper has a scale of its own."""
        self.require(convention)
        weights = self(S, mask)
        return single(weights.W.abs(), mask)

    def counts(self, S: Tensor, mask: Mask, eps: float, convention: Convention = "corrected") -> Counts:
        """What its paper counts, per query, above eps (strictly)."""
        return self.counted(S, mask, convention).threshold(eps)

    def require(self, convention: str) -> None:
        """Raise InputError when the objective has no such way of counting."""
        if convention not in self.conventions:
            known, name = ", ".join(self.conventions), type(self).__name__
            raise InputError(f"convention of {name} must be one of {known}; got {convention!r}")


class Loss(Objective):
    """Writes `values`; W comes from one autograd step on a detached S, or from `stated` where that is faster."""

    def values(self, S: Tensor, mask: Mask) -> Tensor:
        """(q,) loss of each query; called with usable rows only (each has a positive and a negative)."""
        raise NotImplementedError

    def stated(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor] | None:
        """(q,) losses and (q, c) W without autograd, tested to be what `values` gives; None: there is no such form."""
        return None

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """l_q and W = d(sum_q l_q)/dS; rows that are not usable get zeros."""
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False):
                return self(S, mask)
        usable = check(S, mask, self.positives)
        wide = taking_part(S, mask)
        if mask.all_usable:
            values, W = self._derived(wide, mask)
        else:
            values, W = wide.new_zeros(len(wide)), torch.zeros_like(wide)
            if bool(usable.any()):
                values[usable], W[usable] = self._derived(wide[usable], mask.rows(usable))
        return Weights(W if mask.whole else W.masked_fill(~mask.valid, 0), values, usable, mask.number_usable)

    def _derived(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        stated = self.stated(S, mask)
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
        usable = check(S, mask, self.positives)
        wide = taking_part(S, mask)
        if mask.all_usable:
            W = self.weights(wide, mask)
        else:
            W = torch.zeros_like(wide)
            if bool(usable.any()):
                W[usable] = self.weights(wide[usable], mask.rows(usable))
        return Weights(W if mask.whole else W.masked_fill(~mask.valid, 0), None, usable, mask.number_usable)


def check(S: Tensor, mask: Mask, positives: str) -> Tensor:
    """(q,) bool usable rows. Raises InputError: shapes, NaN or infinity among valid entries, too many positives."""
    if S.shape != mask.match.shape:
        raise InputError(f"S and mask must have one shape; got {tuple(S.shape)} and {tuple(mask.match.shape)}")
    if not S.is_floating_point():
        raise InputError(f"S must be floating point; got {S.dtype}")
    if not math.isfinite(S.detach().sum()):  # else no entry is NaN or infinite
        bad = ~torch.isfinite(S) & mask.valid
        if bool(bad.any()):
            row, column = (int(i) for i in bad.nonzero()[0])
            raise InputError(
                f"valid similarities must be finite; got {float(S[row, column])} at row {row}, column {column}"
            )
    if positives == "one" and mask.crowded is not None:
        row = mask.crowded
        raise InputError(
            f"each query must have one positive; row {row} has {int(mask.positives[row].sum())}. Sample pairs instead "
            "of images, or take an objective with positives=many"
        )
    return mask.usable


def taking_part(S: Tensor, mask: Mask) -> Tensor:
    """S, detached, with 0 where it takes no part, so that NaN there reaches nothing; not to be changed in place.

    Half precision becomes float32, where exponentials and counts are exact enough; others stay.
    """
    wide = S.float() if S.dtype in (torch.float16, torch.bfloat16) else S
    return wide.detach() if mask.whole else wide.detach().masked_fill(~mask.valid, 0)


def cross_entropy(logits: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """(q,) −log softmax(logits)[+] over the valid candidates, and (q, c) its gradient, softmax − match.

    On the positive it is minus the sum of the others: 1 − p₊ itself would be rounding where p₊ is nearly 1.
    """
    if not mask.whole:
        logits = logits.masked_fill(~mask.valid, -torch.inf)
    log_p = logits.log_softmax(1) if logits.is_contiguous() else logits.T.log_softmax(0).T  # a transpose needs no copy
    own = log_p.gather(1, mask.first_positive)
    p = log_p.exp_().scatter_(1, mask.first_positive, 0.0)
    return own[:, 0].neg(), p.scatter_(1, mask.first_positive, p.sum(1, keepdim=True).neg_())


def single(weights: Tensor, mask: Mask) -> Counted:
    """Counted of an objective with one block per query: (q, c) weights, thresholded on the negatives."""
    usable = mask.usable
    if mask.crowded is None and mask.whole and mask.all_usable:
        positive = weights.gather(1, mask.first_positive).squeeze(1)
        counted = weights.scatter(1, mask.first_positive, 0.0)
    else:
        positive = weights.masked_fill(~mask.positives, 0).sum(1) * usable
        counted = weights * (mask.negatives & usable[:, None])
    return Counted(counted[:, None, :], torch.ones_like(positive), positive, ~usable)


def positive_of(S: Tensor, mask: Mask) -> Tensor:
    """(q, 1) similarity of the one positive of each row."""
    return S.gather(1, mask.first_positive)


def hardest_negative(S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
    """(q, 1) similarity and column of the hardest negative; of equals the first (E11)."""
    _, column = (S.detach().contiguous() + mask.hiding).max(1, keepdim=True)
    return S.gather(1, column), column
