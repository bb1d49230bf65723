"""Watch losses of pytorch-metric-learning with miners: S, mask and W of the distance matrix of the loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from lossscope.core.sides import ITEM, Sides
from lossscope.core.similarity import Mask, cosine, normalise
from lossscope.engine.batch_masks import mined_mask
from lossscope.engine.direction_rows import DirectionRows
from lossscope.errors import InputError, SpecError, UnsupportedLoss
from lossscope.objectives.base import Objective
from lossscope.objectives.counting.units import saturated_weight
from lossscope.objectives.custom.as_objective import as_objective
from lossscope.objectives.custom.wrapped_loss import WrappedLoss

from .equal_losses import StateKey, state_key
from .given_weights import WEIGHTS, GivenWeights
from .observed import Observed, Result
from .recording import Call, gradients_in_graph, gradients_of, record_calls, unchanged_random_state

ANCHOR_REFERENCE = Sides("anchor", "reference")  # of a call with ref_emb


@dataclass(frozen=True)
class MetricCall:
    """The arguments of a loss of pytorch-metric-learning: embeddings, and which pairs count."""

    embeddings: Tensor
    labels: Tensor | None = None
    indices_tuple: Sequence[Tensor] | None = None
    ref_emb: Tensor | None = None
    ref_labels: Tensor | None = None

    @property
    def is_one_set(self) -> bool:
        """Whether items are compared among themselves."""
        return self.ref_emb is None or self.ref_emb is self.embeddings

    @property
    def references(self) -> Tensor:
        """(m, d) embeddings of the candidates."""
        return self.embeddings if self.ref_emb is None else self.ref_emb

    def mask(self, device: torch.device) -> Mask:
        """Return the mask of labels, in which all but the item itself count, or of the pairs of the miner."""
        n, m = len(self.embeddings), len(self.references)
        if self.indices_tuple is not None:
            return mined_mask(self.indices_tuple, n, m, device)
        if self.labels is None:
            raise InputError("a watched loss must get labels or an indices_tuple; got neither")
        others = self.labels if self.ref_labels is None else self.ref_labels
        match = self.labels.to(device)[:, None] == others.to(device)[None, :]
        valid = ~torch.eye(n, m, dtype=torch.bool, device=device) if self.is_one_set else torch.ones_like(match)
        return Mask(match & valid, valid)


_PARAMETERS = tuple(parameter.name for parameter in fields(MetricCall))  # in the order of a call


@dataclass
class MetricLoss:
    """W = dL/dS in the graph of the step, for a loss of pytorch-metric-learning whose distance gives S.

    W belongs to the sum over queries, as in every objective. It is multiplied by the number of triplets if the loss is
    their mean, or by the number of rows if it is any other mean. A miner's `indices_tuple` says which entries are
    valid, and which of them match.
    """

    loss: Any  # computes distances
    is_objective: bool = True  # whether W belongs to the loss itself; else an objective is given
    sides: Sides | None = None
    _averages: bool = field(default=True, init=False)
    _objective: GivenWeights = field(default=GivenWeights(), init=False)
    _has_scale: bool = field(default=False, init=False)  # whether the saturated weight of the loss is the unit
    _measured: Objective | None = field(default=None, init=False)  # the loss as an objective, to measure again
    _numbers: dict[str, float] = field(default_factory=dict, init=False)  # of the loss at the time of the measurement
    _is_checked: bool = field(default=False, init=False)  # whether all of the gradient passes through S

    def __post_init__(self) -> None:
        if self.is_objective:
            self._averages, saturated = _measure(self.loss)
            self._objective, self._has_scale = GivenWeights(saturated or 1.0), saturated is not None
            self._numbers = _numbers_of(self.loss)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to copy and pickle, without an objective whose class is in no file."""
        return {**vars(self), "_measured": None}

    def call(self, loss: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Result:
        """Return the result of `loss`, which may wrap this loss, and what this loss saw."""
        self._measure_again()
        observed: list[Observed] = []
        calls: list[Call] = []
        triplets: list[int] = []

        def on_reduction(args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any) -> None:
            triplets.append(_number_of_triplets(self.loss.reducer, args[0] if args else kwargs.get("loss_dict")))

        def on_distance(args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any) -> None:
            calls.append(Call(args, result))

        def on_loss(args: tuple[Any, ...], kwargs: Mapping[str, Any], value: Any) -> None:
            arguments = dict(zip(_PARAMETERS, args, strict=False)) | dict(kwargs)
            observed.append(self._observed(MetricCall(**arguments), value, list(calls), sum(triplets)))
            calls.clear()
            triplets.clear()

        with ExitStack() as stack:
            for name, on_call in (("distance", on_distance), ("forward", on_loss), ("reducer", on_reduction)):
                if callable(getattr(self.loss, name, None)):
                    stack.enter_context(record_calls(self.loss, name, on_call))
            return loss(*args, **kwargs), observed

    def _measure_again(self) -> None:
        """Measure the saturated weight again if a number of the loss has changed, such as an annealed temperature."""
        if not self._has_scale or (numbers := _numbers_of(self.loss)) == self._numbers:
            return
        self._numbers = numbers
        with unchanged_random_state():
            self._measured = self._measured or as_objective(self.loss)
            self._objective = GivenWeights(saturated_weight(self._measured))

    def _observed(self, given: MetricCall, value: Tensor, calls: list[Call], triplets: int) -> Observed:
        shape = (len(given.embeddings), len(given.references))
        calls = [call for call in calls if call.result.shape == shape]
        S, W = self._similarities(given, value, calls, triplets)
        mask, numbers = given.mask(S.device), {}
        sides = self._sides_of(given)
        label = sides.label("i2t")
        if given.indices_tuple is not None:
            numbers = {f"{label}/mined_pos": mask.positives.sum(), f"{label}/mined_neg": mask.negatives.sum()}
        if self.is_objective:
            mask = replace(mask, info={WEIGHTS: W})
            numbers |= {f"{label}/W_skipped": W.abs()[mask.skipped].sum() / W.abs().sum()}
        rows = DirectionRows(S, mask, given.embeddings.detach(), given.references.detach())
        return Observed(
            rows, sides, ("i2t",), None, self._objective, value.detach(), numbers=numbers, has_unit_vectors=False
        ).limited()

    def _similarities(
        self, given: MetricCall, value: Tensor, calls: list[Call], triplets: int
    ) -> tuple[Tensor, Tensor]:
        """Return S (n, m) and W = dL/dS; a loss that is a mean counts as the sum over rows or triplets."""
        with torch.inference_mode(False):
            gradients = (
                gradients_of(value, calls) if self.is_objective else [torch.zeros_like(call.result) for call in calls]
            )
            if self.is_objective and not self._is_checked:
                self._require_all_through_distances(given, value, calls, gradients)
            if not calls:  # without pairs nothing was computed
                S = cosine(*(normalise(x.detach().float()) for x in (given.embeddings, given.references)))
                return S, torch.zeros_like(S)
            S, slope = _similarity_of(self.loss.distance, calls[-1].result.detach())
            total = torch.stack(gradients).sum(0).float()
            return S, total * slope * (triplets or (len(S) if self._averages else 1))

    def _require_all_through_distances(
        self, given: MetricCall, value: Tensor, calls: Sequence[Call], gradients: Sequence[Tensor]
    ) -> None:
        """Raise UnsupportedLoss if embeddings get gradient past the distances; checked until there is a gradient."""
        if not (value.requires_grad and given.embeddings.requires_grad):
            return
        [whole] = gradients_in_graph([value], [given.embeddings])
        through = [(call.result, G) for call, G in zip(calls, gradients, strict=True) if call.result.requires_grad]
        [seen] = gradients_in_graph([result for result, _ in through], [given.embeddings], [G for _, G in through])
        self._is_checked = bool(whole.any())
        rounding = 3e-2 if whole.dtype in (torch.float16, torch.bfloat16) else 1e-3
        if float((whole - seen).abs().max()) > rounding * float(whole.abs().max()):
            raise UnsupportedLoss(
                f"{type(self.loss).__name__} must depend on embeddings by its distances alone: a part of its gradient "
                "is of something else, such as a regulariser or similarities that it computes apart, which W would "
                "leave out. Name an objective to look with: LossScope('ntxent:tau=0.05').wrap(loss)"
            )

    def _sides_of(self, given: MetricCall) -> Sides:
        if given.is_one_set:
            return self.sides if self.sides is not None and self.sides.is_one_set else ITEM
        return ANCHOR_REFERENCE if self.sides is None or self.sides.is_one_set else self.sides


def _number_of_triplets(reducer: Any, loss_dict: Any) -> int:
    """Return the number of triplets in the mean of a loss; 0 where the loss is no mean of triplets."""
    parts = list(loss_dict.values()) if isinstance(loss_dict, Mapping) else []
    if len(parts) != 1 or not isinstance(parts[0], Mapping) or parts[0].get("reduction_type") != "triplet":
        return 0
    losses, kind = parts[0].get("losses"), type(reducer).__name__
    if not isinstance(losses, Tensor) or kind not in ("AvgNonZeroReducer", "MeanReducer"):
        return 0
    return int((losses > 0).sum()) if kind == "AvgNonZeroReducer" else losses.numel()


def innermost(loss: Any) -> Any:
    """Return the loss that computes distances, inside CrossBatchMemory or SelfSupervisedLoss; None without one."""
    while not callable(getattr(loss, "distance", None)):
        loss = getattr(loss, "loss", None)
        if loss is None:
            return None
    return loss


def _numbers_of(loss: Any) -> dict[str, float]:
    """Return the attributes of a loss that are numbers, such as its temperature."""
    return {name: value for name, value in vars(loss).items() if isinstance(value, int | float)}


def _measure(loss: Any) -> tuple[bool, float | None]:
    """Return whether a loss averages over a batch, and its saturated weight; None where it cannot be measured."""
    key = state_key(loss)
    return _measure_now(loss) if key is None else _measure_once(key)


@lru_cache(maxsize=256)
def _measure_once(key: StateKey) -> tuple[bool, float | None]:
    return _measure_now(key.copy())


def _measure_now(loss: Any) -> tuple[bool, float | None]:
    averages = type(getattr(loss, "reducer", None)).__name__ != "SumReducer"
    with unchanged_random_state():
        try:
            objective = as_objective(loss)
            assert isinstance(objective, WrappedLoss)
            averages = objective.measured_traits.reduction == "mean"
            return averages, saturated_weight(objective)
        except (InputError, SpecError, UnsupportedLoss):
            return averages, None


def _similarity_of(distance: Any, d: Tensor) -> tuple[Tensor, Tensor]:
    """Return S of a computed distance matrix, and the factor from dL/d(matrix) to dL/dS.

    S is the cosine if the matrix is a cosine, or d^k of unit vectors with d = √(2 − 2s); otherwise minus the matrix.
    """
    d = d.float()
    if distance.is_inverted:
        return d, torch.ones_like(d)
    of_unit_vectors = type(distance).__name__ == "LpDistance" and distance.p == 2 and distance.normalize_embeddings
    if not of_unit_vectors:
        return -d, -torch.ones_like(d)
    power = float(distance.power)
    length = d if power == 1 else d.clamp(min=0).pow(1 / power)
    slope = -power * length.clamp(min=torch.finfo(d.dtype).tiny).pow(power - 2)
    return 1 - length.square() / 2, slope.where(length > 0, 0.0)
