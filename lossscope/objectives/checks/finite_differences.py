"""Is W the derivative of the loss? Every entry of W is compared with central differences of the summed values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from lossscope.core.stop_gradient import replay_stopped

from .tolerances import Tolerances, tolerances_of
from .trial_batches import TrialBatch, random_batch
from .verdict import Verdict

NAME = "finite differences"


@dataclass(frozen=True)
class _Slopes:
    """W of a batch and the one-sided slopes of the summed values at each entry of S, (q, c) each."""

    batch: TrialBatch
    value: float  # Σ_q l_q
    W: Tensor
    left: Tensor
    right: Tensor

    @property
    def central(self) -> Tensor:
        return (self.left + self.right) / 2

    @property
    def off(self) -> Tensor:
        """(q, c) how far W is outside the two slopes: at a kink every number between them is a derivative."""
        low, high = torch.minimum(self.left, self.right), torch.maximum(self.left, self.right)
        off = (self.W - high).clamp(min=0) + (low - self.W).clamp(min=0)
        return off.nan_to_num(torch.inf)

    @property
    def scale(self) -> float:
        """The largest entry, or the uncertainty by rounding of the value where all entries are smaller."""
        return max(float(torch.maximum(self.W.abs(), self.central.abs()).max()), 1e-3 * max(1.0, abs(self.value)))


def check_finite_differences(objective: Any, seed: int) -> Iterator[Verdict]:
    """W must be the derivative of the values, with the factors in `stop_gradient` fixed."""
    batches = [random_batch(objective, seed, late=late) for late in (False, True)]
    if batches[0].evaluate(objective).values is None:
        yield Verdict(NAME, "note", "the gradient is stated directly: there are no values to compare W with")
        return
    tolerances = tolerances_of(objective)
    slopes = [_slopes(objective, batch, stopped=True) for batch in batches]
    yield _judge_slopes(slopes, tolerances)
    followed = [_slopes(objective, batch, stopped=False) for batch in batches]
    change = max(float((a.central - b.central).abs().max()) / a.scale for a, b in zip(slopes, followed, strict=True))
    if change > tolerances.slope:
        yield Verdict(
            "constants",
            "note",
            f"W is the derivative with the declared constants (lossscope.core.stop_gradient) fixed; if they were "
            f"differentiated too, slopes would differ by up to {change:.2g} of the largest entry",
        )


def _slopes(objective: Any, batch: TrialBatch, stopped: bool) -> _Slopes:
    """Evaluate the objective on either side of every entry of S."""
    step = tolerances_of(objective).step
    with replay_stopped() if stopped else contextlib.nullcontext(lambda: None) as rewind:
        weights = batch.evaluate(objective)
        value, left, right = _sum(weights.values), torch.zeros_like(batch.S), torch.zeros_like(batch.S)
        for q, c in product(*map(range, batch.S.shape)):
            rewind()
            right[q, c] = (_sum(batch.with_step(q, c, step).evaluate(objective).values) - value) / step
            rewind()
            left[q, c] = (value - _sum(batch.with_step(q, c, -step).evaluate(objective).values)) / step
    valid = batch.mask.valid
    return _Slopes(batch, value, weights.W * valid, left * valid, right * valid)


def _sum(values: Tensor | None) -> float:
    return float("nan") if values is None else float(values.sum())


def _describe_closeness(slopes: list[_Slopes], bound: float) -> str:
    """Describe how near W is to the central differences, apart from entries where the two slopes differ."""
    difference = torch.cat([((slope.W - slope.central).abs() / slope.scale).flatten() for slope in slopes])
    kinks = int((difference > bound).sum())
    text = f"to within {float(difference[difference <= bound].max()):.1g} of the largest"
    return f"{text}; at {kinks} more there is a kink, and W lies between the slopes" if kinks else text


def _judge_slopes(slopes: list[_Slopes], tolerances: Tolerances) -> Verdict:
    bound = tolerances.slope
    entries = sum(int(slope.batch.mask.valid.sum()) for slope in slopes)
    worst = max(slopes, key=lambda slope: float(slope.off.max()) / slope.scale)
    off = worst.off.max() / worst.scale
    if off <= bound:
        evidence = (
            f"W is the slope of the summed values at {entries} similarities, {_describe_closeness(slopes, bound)}"
        )
        return Verdict(NAME, "pass", evidence)
    q, c = divmod(int(worst.off.argmax()), worst.off.shape[1])
    wrong = sum(int((slope.off > bound * slope.scale).sum()) for slope in slopes)
    kind = "its positive" if bool(worst.batch.mask.match[q, c]) else "a negative"
    where = f"query {q} and candidate {c} ({kind}, S = {float(worst.batch.S[q, c]):.3f})"
    actual, expected = float(worst.W[q, c]), float(worst.central[q, c])
    evidence = f"W of {where} is {actual:.6g}, expected {expected:.6g}, the slope of the summed values there; "
    return Verdict(NAME, "fail", f"{evidence}{wrong} of {entries} entries are off. {_advice(worst.batch)}")


def _advice(batch: TrialBatch) -> str:
    if "queries" in batch.mask.info:
        return "The loss depends on more than the similarities of the embeddings, or a detach() is hidden in it"
    return (
        "A detach() that is meant must be declared with lossscope.core.stop_gradient.stop_gradient; any other must be "
        "removed"
    )
