"""The user's own loss as an objective: W = dL/dS of any function of S, or of embeddings, by autograd."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lossscope.core.cached import cached_property
from lossscope.core.counts import check_inputs
from lossscope.core.foreign_arrays import to_tensor
from lossscope.core.similarity import Mask
from lossscope.core.types import DIRECTIONS, CountedDirection, Reduction
from lossscope.core.weights import Weights
from lossscope.errors import InputError, SpecError, UnsupportedLoss

from ..base import Objective, Traits
from .gradients import LossGradient
from .measurements import (
    VIEWS,
    depends_on_one_side,
    describe_misfit,
    describe_mistake,
    keeps_memory,
    measure_average,
    measure_directions,
    pulls_pairs,
)
from .one_set import is_one_set
from .signature import ONE_SET_FORMS, CallForm, call_parameters, declaration
from .user_call import UserCall


@dataclass(frozen=True)
class WrappedLoss(Objective):
    """W = dF/dS, F the training loss of a whole batch of pairs as its author wrote it, without an average over B.

    F is one of F(S), F(image_emb, text_emb), F(features, features, logit_scale[, logit_bias]) (modules of open_clip),
    F(embeddings, labels, ref_emb, ref_labels) (pytorch-metric-learning), F(sentence_features, labels)
    (sentence-transformers). A loss with labels, and F(S) that returns a loss per row, is called for each direction.
    Every other is called once: each direction then has the whole of dF/dS, and training adds half of each. What is
    counted of it is one direction, if dF/dS is that of single rows (i2t) or columns (t2i), else `both` at once.
    Counted: |W| / saturated weight, as no paper says what to count (unit `relative`, see the probe cocos).
    W is without 1/B: whether F averages over the batch is measured once, unless the loss has `lossscope_reduction`.
    Raises InputError for batches that are not pairs on the diagonal, for losses that are not finite or no tensor, and
    for those that are no function of S, such as SimCLR over 2N views (UnsupportedLoss).
    """

    target: ClassVar[Any] = None  # the function, class or object of the user
    call_form: ClassVar[CallForm] = "S"
    call_options: ClassVar[tuple[str, ...]] = ()  # fields that are keyword arguments of every call
    scalars: ClassVar[tuple[str, ...]] = ()  # fields that are passed as tensors after the features

    @property
    def coupled(self) -> bool:
        """True, as any row may influence any other."""
        return True

    @property
    def own_parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the user's module; training would not update them, so it raises InputError."""
        loss = self._gradient.call.origin
        return tuple(n for n, p in loss.named_parameters() if p.requires_grad) if isinstance(loss, nn.Module) else ()

    @property
    def keeps_memory(self) -> bool:
        """Whether a call changes later ones, as measured. Batches are evaluated on copies, so a memory never fills."""
        return keeps_memory(self._gradient.trial)

    @cached_property
    def smallest_batch(self) -> int:
        """Pairs of the smallest trial batch that it runs on; 0 where it runs on none."""
        try:
            return self._gradient.trial.pairs
        except InputError:
            return 0

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """`measured_traits`; where they cannot be measured, those known without, as every call raises InputError."""
        try:
            return self.measured_traits
        except SpecError:
            raise
        except InputError:
            return self._stated_traits

    @cached_property
    def measured_traits(self) -> Traits:
        """Traits whose directions and reduction are measured. Raises InputError where it runs on no trial batch.

        Directions are 1 where each is a call of its own, 0.5 where one call includes both. The reduction is
        `lossscope_reduction` of the loss; else `mean` if F averages over the batch, or `sum` if not.
        """
        return replace(
            self._stated_traits, directions=1.0 if self._one_direction else 0.5, reduction=self._measure_reduction()
        )

    @property
    def _stated_traits(self) -> Traits:
        """What is known without a call. Embeddings that it takes are of `mask.info`, or computed with the same S."""
        return Traits(
            positives="many" if self.call_form in ("classes", "masked") else "one",
            square=True,
            needs_embeddings=self.call_form not in ("S", "masked"),
            own_unit="relative",
        )

    def _measure_reduction(self) -> Reduction:
        declared = declaration(self.target, "lossscope_reduction")
        if declared is not None:
            if declared not in ("sum", "mean"):
                raise SpecError(f"lossscope_reduction must be sum or mean; got {declared!r}")
            return typing.cast(Reduction, declared)
        return "mean" if self._per_query or self.averages else "sum"

    @cached_property
    def averages(self) -> bool:
        """Whether F averages over the pairs of a batch, as measured."""
        return self._power_of_batch == 1

    @property
    def depends_on_batch_size(self) -> bool:
        """Whether F averages over all B x B entries of S, so that W shrinks as batches grow; no unit mends that."""
        return self._power_of_batch == 2

    @cached_property
    def _power_of_batch(self) -> int:
        trial, of_views = self._gradient.trial, self._gradient.gradient_of_views
        if self.needs_one_set:
            trial = replace(trial, gradient=lambda first, second: of_views(first, second)[: len(first), len(first) :])
        return measure_average(trial)

    @cached_property
    def counted_directions(self) -> tuple[CountedDirection, ...]:
        """Both where each is a call of its own; else the one whose rows F looks along, or `both`, as measured."""
        one_call = self._one_direction or self.needs_one_set
        return DIRECTIONS if one_call else measure_directions(self._gradient.trial)

    @property
    def learnable(self) -> Mapping[str, float]:
        """logit_scale and logit_bias, where the loss has these parameters and learn=true."""
        if not getattr(self, "learn", False):
            return {}
        return {name.removeprefix("logit_"): getattr(self, name) for name in self.scalars}

    def with_learnt(self, learnt: Mapping[str, float]) -> Objective:
        """Return a copy with learnt values of logit_scale and logit_bias."""
        return replace(self, **{f"logit_{name}": value for name, value in learnt.items()})

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """dF/dS of the whole batch, computed in float64; every query has an equal share of the value."""
        S = to_tensor(S, "S")
        self._require_function_of_s(is_one_set(mask))
        with torch.inference_mode(False), torch.enable_grad():
            usable = check_inputs(S, mask, self.traits.positives)
            if is_one_set(mask):
                return self._of_one_set(S, mask, usable)
            if self.call_form in ONE_SET_FORMS:
                raise UnsupportedLoss(f"{self._label} takes all items of a batch as one set. {VIEWS}")
            if len(S) != S.shape[1] or not mask.all_valid or not bool(mask.match.diagonal().all()):
                raise InputError(
                    f"{self._label} takes whole batches of pairs, pair i on the diagonal; got {tuple(S.shape)}, with "
                    "other positives or candidates left out. Use pairs sampling and --same-image keep"
                )
            if not bool(usable.any()):
                return Weights(torch.zeros_like(S), S.new_zeros(len(S)), usable)
            flip = mask.direction == "t2i" and not self._one_direction
            value, W = self._gradient.evaluate(S.T if flip else S, mask.t() if flip else mask)
        times = len(S) if self.measured_traits.reduction == "mean" and value.ndim == 0 else 1
        values = (value * times / len(S)).expand(len(S)) if value.ndim == 0 else value
        W = (W.T if flip else W) * times
        dtype = S.dtype if S.dtype == torch.float64 else torch.float32
        return Weights(W.to(dtype).contiguous(), values.to(dtype).clone(), usable)

    def _of_one_set(self, S: Tensor, mask: Mask, usable: Tensor) -> Weights:
        """dF/dS of all items of a batch against each other."""
        if not (self.needs_one_set or self.call_form == "masked"):
            raise InputError(f"{self._label} compares two sides; the items here are one set. Take --sampling pairs")
        if not bool(usable.any()):
            return Weights(torch.zeros_like(S), S.new_zeros(len(S)), usable)
        value, W = self._gradient.evaluate(S, mask)
        times = len(S) if self.measured_traits.reduction == "mean" and value.ndim == 0 else 1
        values = (value * times / len(S)).expand(len(S)) if value.ndim == 0 else value
        dtype = S.dtype if S.dtype == torch.float64 else torch.float32
        return Weights((W * times).to(dtype), values.to(dtype).clone(), usable)

    @cached_property
    def needs_one_set(self) -> bool:
        """Whether it compares all items of a batch with each other, as measured: its positives are not on a diagonal.

        Raises InputError where it runs on no trial batch.
        """
        if self.call_form in ONE_SET_FORMS:
            return True
        if self._misfit is None:
            return False
        trial = self._gradient.trial
        if self.call_form == "embeddings":
            return self._misfit_of_one_set is None and depends_on_one_side(trial)
        return self.call_form == "S" and not self._per_query and not pulls_pairs(trial) and self._pulls_views

    @property
    def _pulls_views(self) -> bool:
        """Whether dF/dS of S (2b, 2b) is negative at the other view of an item."""
        trial = self._gradient.trial
        try:
            W = self._gradient.gradient_of_views(*trial.batch())
        except InputError:
            return False
        return bool((W[: trial.pairs, trial.pairs :].diagonal() < 0).any())

    def loss(self, images: Tensor, captions: Tensor) -> Tensor:
        """Return F, (), of B pairs of embeddings, (B, d) and (B, d), with its graph: the user's code as it is."""
        call = self._gradient.call
        return call(call.arguments(images, captions)).sum()

    @property
    def takes_one_set(self) -> bool:
        """Whether its call with labels may leave out the candidates: each item is then one of all others."""
        parameter = call_parameters(self.target).get("ref_emb")
        return parameter is not None and parameter.default is None

    def loss_with_labels(
        self, queries: Tensor, labels: Tensor, candidates: Tensor | None, candidate_labels: Tensor | None
    ) -> Tensor:
        """Return F of a call with labels, () or (b,), with its graph.

        Args:
            queries: (b, d).
            labels: (b,); an equal one is that of a positive.
            candidates: (c, d); None: the queries are one set, see `takes_one_set`.
            candidate_labels: (c,), None without candidates.

        Raises:
            InputError: a loss that raises an error, or is not finite.
        """
        return self._gradient.call((queries, labels, None, candidates, candidate_labels))

    def _require_function_of_s(self, one_set: bool) -> None:
        """Raise UnsupportedLoss for a loss that dF/dS of a batch does not describe; measured once."""
        misfit = self._misfit_of_one_set if one_set else self._misfit
        if misfit:
            of = "all items" if one_set else "pairs"
            raise UnsupportedLoss(f"{self._label} must be a function of the similarities of {of}: {misfit}")

    @cached_property
    def _misfit(self) -> str | None:
        """Why the loss is none that W describes; None where it is one."""
        return describe_misfit(self._gradient.trial, self.call_form not in ("S", "masked"))

    @cached_property
    def _misfit_of_one_set(self) -> str | None:
        """Why the loss is none that W of all items describes; None where it is one."""
        return describe_misfit(self._gradient.trial, self.call_form not in ("S", "masked"), one_set=True)

    @cached_property
    def computed_in(self) -> torch.dtype:
        """The type in which it computes; a loss that casts has another than that of S."""
        return self._gradient.trial.dtype

    @cached_property
    def mistake(self) -> str | None:
        """Which known mistake makes it no loss of S; None where there is none. It is refused for other reasons, too."""
        try:
            return None if self.call_form in ("S", "masked") else describe_mistake(self._gradient.trial)
        except InputError:
            return None

    @cached_property
    def _gradient(self) -> LossGradient:
        options = {item.name: getattr(self, item.name) for item in fields(self)}
        kept = options if isinstance(self.target, type) else {name: options[name] for name in self.call_options}
        scalars = tuple(options[name] for name in self.scalars)
        return LossGradient(UserCall(self.target, self.call_form, self._label, kept, scalars))

    @cached_property
    def _per_query(self) -> bool:
        """Whether it returns one number a query."""
        trial = self._gradient.trial
        return trial.value(*trial.batch()).ndim == 1

    @cached_property
    def _one_direction(self) -> bool:
        """Whether each direction is a call of its own."""
        return self.call_form == "labels" or (self.call_form in ("S", "masked") and self._per_query)

    @property
    def _label(self) -> str:
        return str(getattr(type(self), "__lossscope_name__", type(self).__name__))
