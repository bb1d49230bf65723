"""dF/dS of the user's loss by autograd: of S itself, or through axes that are appended to the embeddings."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from lossscope.core.cached import cached_property
from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.errors import InputError

from .embeddings import AXES, append_axes, opposite_pairs, vectors_with_similarities
from .measurements import TRIAL_PAIRS, Trial
from .one_set import is_one_set, mask_of_views, one_set_gradient
from .signature import ONE_SET_FORMS
from .user_call import UserCall


@dataclass(eq=False)
class LossGradient:
    """F and dF/dS of a loss, which is called as its form says."""

    call: UserCall

    def evaluate(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        """Return F, () or (q,), and dF/dS (q, c), in float64."""
        S = S.detach().double()
        if is_one_set(mask):
            return one_set_gradient(self.call, S, mask)
        if self.call.form in ("S", "masked"):
            leaf = S.clone().requires_grad_()  # the loss may write into its argument
            value = self.call((leaf.clone(),) if self.call.form == "S" else (leaf.clone(), mask.positives))
            return value.detach(), self._gradient(value, leaf)
        if "queries" in mask.info:
            queries, candidates = (normalise(mask.info[name].detach().double()) for name in ("queries", "candidates"))
        else:
            queries, candidates = vectors_with_similarities(S, self.call.label)
        leaf, long_candidates = append_axes(queries, candidates)
        value = self.call(self.call.arguments(leaf.clone(), long_candidates))
        return value.detach(), self._gradient(value, leaf)[:, queries.shape[1] :] / AXES

    @cached_property
    def trial(self) -> Trial:
        """The loss on the smallest batch that it runs on, to be measured. Raises InputError where it runs on none."""
        errors = []
        for pairs in TRIAL_PAIRS:
            try:
                if self.call.form == "views":
                    self._choose_layout(*opposite_pairs(pairs, 0))
                value = self._value_of_pairs(*opposite_pairs(pairs, 0))
            except InputError as error:
                errors.append(error)
                continue
            return Trial(self._value_of_pairs, self._two_values_of_pairs, self._gradient_of_pairs, pairs, value.dtype)
        smallest, *larger = TRIAL_PAIRS
        raise InputError(
            f"{errors[0]}. This was on a trial batch of {smallest} pairs; those of {' and '.join(map(str, larger))} "
            "pairs fail too"
        ) from errors[0]

    def _choose_layout(self, first: Tensor, second: Tensor) -> None:
        """Find out whether all views are (b, 2, d) or (2b, d). Raises InputError where the loss takes neither."""
        try:
            self.gradient_of_views(first, second)
        except InputError as error:
            self.call.is_flat = True
            try:
                self.gradient_of_views(first, second)
            except InputError:
                self.call.is_flat = False
                raise error from None

    def _gradient_of_pairs(self, images: Tensor, captions: Tensor) -> Tensor:
        """dF/dS of F as it is, including an average over the batch; also where the caller computes no gradients."""
        if self.call.form in ONE_SET_FORMS:
            return self.gradient_of_views(images, captions)[: len(images), len(images) :]
        mask = replace(pair_mask(torch.arange(len(images))), info={"queries": images, "candidates": captions})
        with torch.inference_mode(False), torch.enable_grad():
            return self.evaluate(images.clone() @ captions.clone().T, mask)[1]

    def gradient_of_views(self, first: Tensor, second: Tensor) -> Tensor:
        """dF/dS (2b, 2b) of two views as one set, with an average over the batch."""
        items = torch.cat([first, second])
        mask = replace(mask_of_views(len(first)), info={"queries": items, "candidates": items})
        with torch.inference_mode(False), torch.enable_grad():
            return self.evaluate(items.clone() @ items.clone().T, mask)[1]

    def _value_of_pairs(self, images: Tensor, captions: Tensor) -> Tensor:
        """F as it is, () or (b,)."""
        with torch.inference_mode(False), torch.no_grad():
            return self.call(self.call.arguments(images.clone(), captions.clone()))

    def _two_values_of_pairs(self, images: Tensor, captions: Tensor) -> tuple[Tensor, Tensor]:
        """F as it is, () or (b,), of two calls in a row of one copy of the loss."""
        with torch.inference_mode(False), torch.no_grad():
            copied = self.call.copy(self.call.arguments(images, captions))
            first, second = (self.call(self.call.arguments(images.clone(), captions.clone()), copied) for _ in range(2))
        return first, second

    def _gradient(self, value: Tensor, leaf: Tensor) -> Tensor:
        label = self.call.label
        if not value.requires_grad:
            raise InputError(f"{label} must be differentiable in its input; its result has no gradient")
        try:
            (gradient,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{label} must be differentiable in its input; autograd says: {reason}") from error
        return torch.zeros_like(leaf) if gradient is None else gradient
