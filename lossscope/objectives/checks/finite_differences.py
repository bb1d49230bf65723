"""Is W the derivative of the loss: central differences of the summed values against every entry of W."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from lossscope.core.stop_gradient import replay_stopped

from .trial_batches import Trial, trial
from .verdict import Verdict

NAME = "finite differences"
STEP, BOUND = 1e-6, 1e-5


@dataclass(frozen=True)
class _Slopes:
    """value: Σ_q l_q. W, and the slopes of the value on either side of S, all (q, c)."""

    batch: Trial
    value: float
    W: Tensor
    left: Tensor
    right: Tensor

    @property
    def central(self) -> Tensor:
        return (self.left + self.right) / 2

    @property
    def off(self) -> Tensor:
        """(q, c) how far W lies outside the two slopes: at a kink anything between them is a derivative."""
        low, high = torch.minimum(self.left, self.right), torch.maximum(self.left, self.right)
        off = (self.W - high).clamp(min=0) + (low - self.W).clamp(min=0)
        return off.nan_to_num(torch.inf)

    @property
    def scale(self) -> float:
        """The largest entry, or what rounding of the value makes uncertain where all are smaller."""
        return max(float(torch.maximum(self.W.abs(), self.central.abs()).max()), 1e-3 * max(1.0, abs(self.value)))


def finite_differences(objective: Any, seed: int) -> Iterator[Verdict]:
    """W must be the derivative of the values, what is declared with `held` kept."""
    batches = [trial(objective, seed, late=late) for late in (False, True)]
    if batches[0].weigh(objective).values is None:
        yield Verdict(NAME, "note", "the gradient is stated directly: there are no values to compare W with")
        return
    found = [_slopes(objective, batch, kept=True) for batch in batches]
    yield _judged(found)
    free = [_slopes(objective, batch, kept=False) for batch in batches]
    moved = max(float((a.central - b.central).abs().max()) / a.scale for a, b in zip(found, free, strict=True))
    if moved > BOUND:
        yield Verdict(
            "constants",
            "note",
            f"W is the derivative with the declared constants (lossscope.core.stop_gradient) kept; if they were "
            f"followed too, slopes would differ by up to {moved:.2g} of the largest entry",
        )


def _slopes(objective: Any, batch: Trial, kept: bool) -> _Slopes:
    """One evaluation either side of every entry."""
    with replay_stopped() if kept else contextlib.nullcontext(lambda: None) as again:
        here = batch.weigh(objective)
        value, left, right = _sum(here.values), torch.zeros_like(batch.S), torch.zeros_like(batch.S)
        for q, c in product(*map(range, batch.S.shape)):
            again()
            right[q, c] = (_sum(batch.stepped(q, c, STEP).weigh(objective).values) - value) / STEP
            again()
            left[q, c] = (value - _sum(batch.stepped(q, c, -STEP).weigh(objective).values)) / STEP
    taking_part = batch.mask.valid
    return _Slopes(batch, value, here.W * taking_part, left * taking_part, right * taking_part)


def _sum(values: Tensor | None) -> float:
    return float("nan") if values is None else float(values.sum())


def _closeness(found: list[_Slopes]) -> str:
    """How near W is to the central differences, entries apart where the slopes of both sides differ."""
    apart = torch.cat([((slopes.W - slopes.central).abs() / slopes.scale).flatten() for slopes in found])
    kinks = int((apart > BOUND).sum())
    told = f"to within {float(apart[apart <= BOUND].max()):.1g} of the largest"
    return f"{told}; at {kinks} more there is a kink, and W lies between the slopes" if kinks else told


def _judged(found: list[_Slopes]) -> Verdict:
    entries = sum(int(slopes.batch.mask.valid.sum()) for slopes in found)
    worst = max(found, key=lambda slopes: float(slopes.off.max()) / slopes.scale)
    off = worst.off.max() / worst.scale
    if off <= BOUND:
        told = f"W is the slope of the summed values at {entries} similarities, {_closeness(found)}"
        return Verdict(NAME, "pass", told)
    q, c = divmod(int(worst.off.argmax()), worst.off.shape[1])
    wrong = sum(int((slopes.off > BOUND * slopes.scale).sum()) for slopes in found)
    kind = "its positive" if bool(worst.batch.mask.match[q, c]) else "a negative"
    where = f"query {q} and candidate {c} ({kind}, S = {float(worst.batch.S[q, c]):.3f})"
    is_, expected = float(worst.W[q, c]), float(worst.central[q, c])
    told = f"W of {where} is {is_:.6g}, expected {expected:.6g}, the slope of the summed values there; "
    return Verdict(NAME, "fail", f"{told}{wrong} of {entries} entries are off. {_advice(worst.batch)}")


def _advice(batch: Trial) -> str:
    if "queries" in batch.mask.info:
        return "The loss sees more of the embeddings than their similarities, or a detach() is hidden in it"
    return (
        "A detach() that is meant must be declared with lossscope.core.stop_gradient.stop_gradient; any other must be "
        "removed"
    )
