"""The user's own loss as an objective: any function of S, or of embeddings, becomes W = dL/dS by autograd."""

from __future__ import annotations

import copy
import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from lossscope.core.counts import check_inputs
from lossscope.core.similarity import Mask, normalise, pair_mask
from lossscope.core.weights import REDUCTIONS, Reduction, Weights
from lossscope.errors import InputError, SpecError

from ..base import Objective
from .embeddings import AXES, two_ends, vectors_of, with_axes
from .signature import REQUIRED, Takes, call_of, form_of, options_of


@dataclass(frozen=True)
class WrappedLoss(Objective):
    """F, the training loss of a whole batch of pairs as its author wrote it; W = dF/dS, an average over B undone.

    F(S), F(image_emb, text_emb), F(features, features, logit_scale[, logit_bias]) (as open_clip's modules),
    F(embeddings, labels, ref_emb, ref_labels) (as pytorch-metric-learning's), F(sentence_features, labels) (as
    sentence-transformers'). All but the labelled form, and f(S) that returns a loss per row, are taken to hold both
    directions: each direction then has the whole of dF/dS, and training adds half of each.
    W without 1/B: whether F averages over the batch is measured once (or said by `lossscope_reduction` of the loss).
    Raises InputError for batches that are not pairs on the diagonal, and for losses that are not finite or no tensor.
    """

    square: ClassVar[bool] = True
    target: ClassVar[Any] = None
    takes: ClassVar[Takes] = "S"
    inputs: ClassVar[tuple[str, ...]] = ()
    per_call: ClassVar[tuple[str, ...]] = ()

    @property
    def coupled(self) -> bool:
        """True: nothing is known of what is inside."""
        return True

    @property
    def own_parameters(self) -> tuple[str, ...]:
        """Names of what the author's module would learn itself; training leaves them as they are, so it refuses."""
        made = self._callable
        return tuple(n for n, p in made.named_parameters() if p.requires_grad) if isinstance(made, nn.Module) else ()

    @property
    def needs_embeddings(self) -> bool:  # type: ignore[override]
        """Whether it is to be given embeddings in `mask.info`; without them, some with the same S are made."""
        return self.takes != "S"

    @cached_property
    def directions(self) -> float:  # type: ignore[override]
        """1 where each direction is a call of its own, 0.5 where one call holds both."""
        return 1.0 if self._each else 0.5

    @cached_property
    def reduction(self) -> Reduction:  # type: ignore[override]
        """`mean` where F averages over the batch, `sum` otherwise; the author's word before the measured one."""
        told = getattr(self.target, "lossscope_reduction", None)
        if told is not None:
            if told not in REDUCTIONS:
                raise SpecError(f"lossscope_reduction must be one of {', '.join(REDUCTIONS)}; got {told!r}")
            return typing.cast(Reduction, told)
        return "mean" if self._per_query or self.averages else "sum"

    @cached_property
    def averages(self) -> bool:
        """Whether as many far-away pairs again halve dF/dS of the first ones, and three times as many quarter it."""
        few = self._weights_of(*two_ends(6, 0)).abs().sum()
        for times, low, high in ((1, 0.3, 0.65), (3, 0.1, 0.35)):
            W = self._weights_of(*two_ends(6, 6 * times))
            if not low < float(W[:6, :6].abs().sum() / few) < high:
                return False
        return True

    @property
    def learnable(self) -> Mapping[str, float]:
        """logit_scale and logit_bias where the loss takes them and learn=true."""
        if not getattr(self, "learn", False):
            return {}
        return {name.removeprefix("logit_"): getattr(self, name) for name in self.per_call}

    def with_learnt(self, learnt: Mapping[str, float]) -> Objective:
        return replace(self, **{f"logit_{name}": value for name, value in learnt.items()})

    def __call__(self, S: Tensor, mask: Mask) -> Weights:
        """dF/dS of the whole batch, in float64; every query has an equal share of the value."""
        with torch.inference_mode(False), torch.enable_grad():
            usable = check_inputs(S, mask, self.positives)
            if len(S) != S.shape[1] or not mask.all_valid or not bool(mask.match.diagonal().all()):
                raise InputError(
                    f"{self._told} takes whole batches of pairs, pair i on the diagonal; got {tuple(S.shape)}, with "
                    "other positives or candidates left out. Use pairs sampling and --same-image keep"
                )
            if not bool(usable.any()):
                return Weights(torch.zeros_like(S), S.new_zeros(len(S)), usable)
            flip = mask.direction == "t2i" and not self._each
            value, W = self._derived(S.T if flip else S, mask.t() if flip else mask)
        times = len(S) if self.reduction == "mean" and value.ndim == 0 else 1
        values = (value * times / len(S)).expand(len(S)) if value.ndim == 0 else value
        W = (W.T if flip else W) * times
        kind = S.dtype if S.dtype == torch.float64 else torch.float32
        return Weights(W.to(kind).contiguous(), values.to(kind).clone(), usable)

    def loss(self, images: Tensor, captions: Tensor) -> Tensor:
        """F of a batch of pairs of embeddings, (B, d) and (B, d) -> (), with its graph: the author's code as it is."""
        return self._run(self._arguments(images, captions)).sum()

    def _derived(self, S: Tensor, mask: Mask) -> tuple[Tensor, Tensor]:
        """F, () or (q,), and dF/dS (q, c) in float64."""
        S = S.detach().double()
        if self.takes == "S":
            leaf = S.requires_grad_()
            value = self._run((leaf,))
            return value.detach(), self._gradient(value, leaf)
        if "queries" in mask.info:
            queries, candidates = (normalise(mask.info[name].detach().double()) for name in ("queries", "candidates"))
        else:
            queries, candidates = vectors_of(S)
        leaf, others = with_axes(queries, candidates)
        value = self._run(self._arguments(leaf, others))
        return value.detach(), self._gradient(value, leaf)[:, queries.shape[1] :] / AXES

    def _weights_of(self, images: Tensor, captions: Tensor) -> Tensor:
        """dF/dS as it is, average and all."""
        mask = replace(pair_mask(torch.arange(len(images))), info={"queries": images, "candidates": captions})
        return self._derived(images @ captions.T, mask)[1]

    def _gradient(self, value: Tensor, leaf: Tensor) -> Tensor:
        if not value.requires_grad:
            raise InputError(f"{self._told} must be differentiable in its input; its result has no gradient")
        (found,) = torch.autograd.grad(value.sum(), leaf, allow_unused=True)
        return torch.zeros_like(leaf) if found is None else found

    def _arguments(self, queries: Tensor, candidates: Tensor) -> tuple[Any, ...]:
        if self.takes == "S":
            return (queries @ candidates.T,)
        if self.takes == "labels":
            labels = torch.arange(len(queries), device=queries.device)
            return queries, labels, None, candidates, labels.clone()  # the same object would mean the same items
        if self.takes == "sentences":
            return ([{"sentence_embedding": queries}, {"sentence_embedding": candidates}], None)
        scalars = (queries.new_tensor(getattr(self, name)) for name in self.per_call)
        return queries, candidates, *scalars

    def _run(self, arguments: tuple[Any, ...]) -> Tensor:
        """The author's code. Raises InputError unless it gives a tensor, () or one number a query."""
        options = {name: getattr(self, name) for name in self.inputs}
        try:
            found = self._callable(*arguments, **options)
        except Exception as error:
            raise InputError(
                f"{self._told} must run on its input; it raised {type(error).__name__}: {error}"
            ) from error
        if isinstance(found, Mapping) and len(found) == 1:
            found = next(iter(found.values()))
        if not isinstance(found, Tensor) or found.ndim > 1:
            got = tuple(found.shape) if isinstance(found, Tensor) else type(found).__name__
            raise InputError(f"{self._told} must return one number, or one a query; got {got}")
        if not bool(torch.isfinite(found).all()):
            raise InputError(f"{self._told} must return finite numbers; got {float(found.detach().sum())}")
        return found

    @cached_property
    def _callable(self) -> Callable[..., Any]:
        """The function, or the module in float64, made with the options of the spec."""
        made = self.target
        if isinstance(made, type):
            wanted = inspect.signature(made).parameters
            given = {item.name: getattr(self, item.name) for item in fields(self) if item.name in wanted}
            if "model" in wanted:
                given["model"] = nn.Identity()
            made = made(**given)
        elif isinstance(made, nn.Module):
            made = copy.deepcopy(made)
        return made.double() if isinstance(made, nn.Module) else made

    @cached_property
    def _per_query(self) -> bool:
        images, captions = two_ends(3, 0)
        return self._run(self._arguments(images, captions)).ndim == 1

    @cached_property
    def _each(self) -> bool:
        return self.takes == "labels" or (self.takes == "S" and self._per_query)

    @property
    def _told(self) -> str:
        return str(getattr(type(self), "__lossscope_name__", type(self).__name__))


@lru_cache(maxsize=64)
def wrap_loss(target: Any, name: str) -> type[WrappedLoss]:
    """A class whose fields are the plain options of a function, a class or an object with __call__.

    Raises SpecError when its parameters are none of the known forms; an attribute
    `lossscope_takes` (S, embeddings, features, labels, sentences) says which where names do not.
    """
    call = call_of(target)
    takes = form_of(target, call, name)
    per_call: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    options = options_of(inspect.signature(target).parameters) if isinstance(target, type) else {}
    if takes == "features":
        biased = "logit_bias" in call and call["logit_bias"].default is inspect.Parameter.empty
        per_call = ("logit_scale", "logit_bias") if biased else ("logit_scale",)
        begin = {"logit_scale": 10.0, "logit_bias": -10.0} if biased else {"logit_scale": 1 / 0.07}
        options |= {key: (type(value), value) for key, value in (begin | {"learn": False}).items()}
    if inspect.isroutine(target):
        found = {key: value for key, value in options_of(call).items() if value[1] is not REQUIRED}
        inputs, options = tuple(found), options | found
    made = make_dataclass(
        name.rpartition(":")[2],
        sorted(
            (
                (k, kind) if value is REQUIRED else (k, kind, field(default=value))
                for k, (kind, value) in options.items()
            ),
            key=len,
        ),
        bases=(WrappedLoss,),
        frozen=True,
        namespace={
            "target": staticmethod(target) if inspect.isroutine(target) else target,
            "takes": takes,
            "inputs": inputs,
            "per_call": per_call,
            "__doc__": inspect.getdoc(target) or WrappedLoss.__doc__,
        },
    )
    setattr(made, "__lossscope_name__", name)  # noqa: B010 - the mark by which a spec is written again
    return made
