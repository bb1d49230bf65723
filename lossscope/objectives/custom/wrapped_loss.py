"""The user's own loss as an objective: W = dL/dS of any function of S, or of embeddings, by autograd."""

from __future__ import annotations

import contextlib
import copy
import sys
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lossscope.core.counts import check_inputs
from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.core.types import DIRECTIONS, CountedDirection, Reduction, WeightUnit
from lossscope.core.weights import Weights
from lossscope.errors import InputError, SpecError, UnsupportedLoss

from ..base import Objective
from .embeddings import AXES, append_axes, opposite_pairs, vectors_with_similarities
from .measurements import describe_misfit, measure_average, measure_directions
from .signature import CALL_HINTS, CallForm, constructor_parameters

_SMALL = 1_000_000  # numbers of a module that is copied at each call


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

    square: ClassVar[bool] = True
    own_unit: ClassVar[WeightUnit] = "relative"
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
        loss = self._callable
        return tuple(n for n, p in loss.named_parameters() if p.requires_grad) if isinstance(loss, nn.Module) else ()

    @property
    def needs_embeddings(self) -> bool:  # type: ignore[override]
        """Whether it uses embeddings in `mask.info`; without them, vectors with the same S are computed."""
        return self.call_form != "S"

    @cached_property
    def directions(self) -> float:  # type: ignore[override]
        """1 where each direction is a call of its own, 0.5 where one call includes both."""
        return 1.0 if self._one_direction else 0.5

    @cached_property
    def reduction(self) -> Reduction:  # type: ignore[override]
        """`lossscope_reduction` of the loss; else `mean` if F averages over the batch, as measured, or `sum` if not."""
        declared = getattr(self.target, "lossscope_reduction", None)
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
        return measure_average(self._gradient_of_pairs)

    @cached_property
    def counted_directions(self) -> tuple[CountedDirection, ...]:  # type: ignore[override]
        """Both where each is a call of its own; else the one whose rows F looks along, or `both`, as measured."""
        return DIRECTIONS if self._one_direction else measure_directions(self._gradient_of_pairs)

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
        self._require_function_of_s()
        with torch.inference_mode(False), torch.enable_grad():
            usable = check_inputs(S, mask, self.positives)
            if len(S) != S.shape[1] or not mask.all_valid or not bool(mask.match.diagonal().all()):
                raise InputError(
                    f"{self._label} takes whole batches of pairs, pair i on the diagonal; got {tuple(S.shape)}, with "
                    "other positives or candidates left out. Use pairs sampling and --same-image keep"
                )
            if not bool(usable.any()):
                return Weights(torch.zeros_like(S), S.new_zeros(len(S)), usable)
            flip = mask.direction == "t2i" and not self._one_direction
            value, W = self._evaluate(S.T if flip else S, mask.t() if flip else mask)
        times = len(S) if self.reduction == "mean" and value.ndim == 0 else 1
        values = (value * times / len(S)).expand(len(S)) if value.ndim == 0 else value
        W = (W.T if flip else W) * times
        dtype = S.dtype if S.dtype == torch.float64 else torch.float32
        return Weights(W.to(dtype).contiguous(), values.to(dtype).clone(), usable)

    def loss(self, images: Tensor, captions: Tensor) -> Tensor:
        """Return F, (), of B pairs of embeddings, (B, d) and (B, d), with its graph: the user's code as it is."""
        return self._run(self._arguments(images, captions)).sum()

    def _evaluate(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        """Return F, () or (q,), and dF/dS (q, c), in float64."""
        S = S.detach().double()
        if self.call_form == "S":
            leaf = S.clone().requires_grad_()
            value = self._run((leaf.clone(),))  # a loss may write into its argument
            return value.detach(), self._gradient(value, leaf)
        if "queries" in mask.info:
            queries, candidates = (normalise(mask.info[name].detach().double()) for name in ("queries", "candidates"))
        else:
            queries, candidates = vectors_with_similarities(S)
        leaf, long_candidates = append_axes(queries, candidates)
        value = self._run(self._arguments(leaf.clone(), long_candidates))
        return value.detach(), self._gradient(value, leaf)[:, queries.shape[1] :] / AXES

    def _gradient_of_pairs(self, images: Tensor, captions: Tensor) -> Tensor:
        """dF/dS of F as it is, including an average over the batch; also where the caller computes no gradients."""
        mask = replace(pair_mask(torch.arange(len(images))), info={"queries": images, "candidates": captions})
        with torch.inference_mode(False), torch.enable_grad():
            return self._evaluate(images.clone() @ captions.clone().T, mask)[1]

    def _value_of_pairs(self, images: Tensor, captions: Tensor) -> Tensor:
        """F as it is, () or (b,)."""
        with torch.inference_mode(False), torch.no_grad():
            return self._run(self._arguments(images.clone(), captions.clone()))

    def _require_function_of_s(self) -> None:
        """Raise UnsupportedLoss for a loss that dF/dS of images against captions does not describe; measured once."""
        if self._misfit:
            raise UnsupportedLoss(f"{self._label} must be a function of the similarities of pairs: {self._misfit}")

    @cached_property
    def _misfit(self) -> str | None:
        """Why the loss is none that W describes; None where it is one."""
        return describe_misfit(self._value_of_pairs, self._gradient_of_pairs, self.call_form != "S")

    def _gradient(self, value: Tensor, leaf: Tensor) -> Tensor:
        if not value.requires_grad:
            raise InputError(f"{self._label} must be differentiable in its input; its result has no gradient")
        try:
            (gradient,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"{self._label} must be differentiable in its input; autograd says: {reason}") from error
        return torch.zeros_like(leaf) if gradient is None else gradient

    def _arguments(self, queries: Tensor, candidates: Tensor) -> tuple[Any, ...]:
        if self.call_form == "S":
            return (queries @ candidates.T,)
        if self.call_form == "labels":
            labels = torch.arange(len(queries), device=queries.device)
            return queries, labels, None, candidates, labels.clone()  # the same object would mean the same items
        if self.call_form == "sentences":
            return ([{"sentence_embedding": queries}, {"sentence_embedding": candidates}], None)
        scalars = (queries.new_tensor(getattr(self, name)) for name in self.scalars)
        return queries, candidates, *scalars

    def _run(self, arguments: tuple[Any, ...]) -> Tensor:
        """Run the user's code. Raises InputError unless it returns a finite tensor, one number or one a query."""
        options = {name: getattr(self, name) for name in self.call_options}
        try:
            with contextlib.redirect_stdout(sys.stderr):  # stdout has the results
                value = self._current(arguments)(*arguments, **options)
        except Exception as error:
            raise InputError(
                f"{self._label} must run on its input; it raised {type(error).__name__}: {error}"
                f"{CALL_HINTS.get(self.call_form, '')}"
            ) from error
        if isinstance(value, Mapping) and len(value) == 1:
            value = next(iter(value.values()))
        first = arguments[0]
        pairs = len(first[0]["sentence_embedding"] if isinstance(first, list) else first)
        if isinstance(value, Tensor) and value.numel() == 1:
            value = value.reshape(())
        if not isinstance(value, Tensor) or value.shape not in ((), (pairs,)):
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InputError(f"{self._label} must return one number, or one a query, ({pairs},); got {got}")
        if not bool(torch.isfinite(value).all()):
            raise InputError(f"{self._label} must return finite numbers; got {float(value.detach().sum())}")
        return value

    def _current(self, arguments: tuple[Any, ...]) -> Callable[..., Any]:
        """Return what is called: a copy of the user's module as it is now, in float64 on the device of the input.

        A module of many parameters is copied once, and then given the present ones.
        """
        loss = self._callable
        if not isinstance(loss, nn.Module):
            return loss
        if isinstance(self.target, nn.Module) and self._is_small:
            loss = copy.deepcopy(self.target).double()
        elif isinstance(self.target, nn.Module):
            loss.load_state_dict(self.target.state_dict())
        first = arguments[0]
        return loss.to((first[0]["sentence_embedding"] if isinstance(first, list) else first).device)

    @cached_property
    def _is_small(self) -> bool:
        return bool(sum(x.numel() for x in self.target.state_dict().values()) <= _SMALL)

    @cached_property
    def _callable(self) -> Callable[..., Any]:
        """The function, or the module in float64, built with the options of the spec."""
        loss = self.target
        if isinstance(loss, type):
            parameters = constructor_parameters(loss)
            options = {item.name: getattr(self, item.name) for item in fields(self) if item.name in parameters}
            if "model" in parameters:
                options["model"] = nn.Identity()
            loss = loss(**options)
        elif isinstance(loss, nn.Module):
            loss = copy.deepcopy(loss)
        return loss.double() if isinstance(loss, nn.Module) else loss

    @cached_property
    def _per_query(self) -> bool:
        """Whether it returns one number a query."""
        return self._value_of_pairs(*opposite_pairs(3, 0)).ndim == 1

    @cached_property
    def _one_direction(self) -> bool:
        """Whether each direction is a call of its own."""
        return self.call_form == "labels" or (self.call_form == "S" and self._per_query)

    @property
    def _label(self) -> str:
        return str(getattr(type(self), "__lossscope_name__", type(self).__name__))
