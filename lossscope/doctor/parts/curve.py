"""The loss of a training, step by step, beside what guessing would cost."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch

from lossscope.core.facts import Missing
from lossscope.core.pair import Pair
from lossscope.core.similarity import pair_mask
from lossscope.core.weights import reduce_weights
from lossscope.errors import InputError
from lossscope.objectives.base import Objective

from ..logs.base import TrainingLog
from .batches import guess_is_margin
from .patient import Patient, build_objective

LEAST = 20  # steps with a loss, below which a curve says nothing
_POWERS = range(1, 18)  # batch sizes 2 to 131,072, where the batch size is not known
_ROWS = 2048  # of a batch whose loss of guessing is computed; that of larger ones follows from it
_LINEAR, _LOGARITHM = 1e-3, 5e-3  # share by which growth of the loss may differ from that of its form
_NOISE = 2e-6  # of a loss in float32, as a share of it
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Guess:
    """A loss that guessing gives, and what it is called."""

    value: float
    name: str
    is_certain: bool  # whether it follows from the objective and the batch size, which are known
    is_exact: bool = False  # whether it is of an own run, whose reduction is known, too


@dataclass(frozen=True)
class Curve:
    """A training's log, of the last objective that it trained with."""

    log: TrainingLog
    objective: Objective | None
    batch_size: int | None
    guesses: tuple[Guess, ...]
    needs: ClassVar[tuple[type, ...]] = (TrainingLog,)

    @classmethod
    def of(cls, patient: Patient, log: TrainingLog) -> Curve:
        """Take the log. Raises Missing where it is short."""
        spec = patient.objective_spec or log.objective
        objective = build_objective(spec) if spec else None
        size = patient.stated_batch_size or log.batch_size
        curve = cls(log, objective, size, tuple(guesses_of(objective, size, patient.recipe)))
        if len(curve.loss) < LEAST:
            raise Missing(f"its log has {len(curve.loss)} steps with a loss; {LEAST} are needed")
        return curve

    @cached_property
    def steps(self) -> pd.DataFrame:
        """The rows of the objective that it trained with last."""
        steps = self.log.steps
        if "objective" not in steps or not len(steps):
            return steps
        other = np.flatnonzero((steps["objective"] != steps["objective"].iloc[-1]).to_numpy())
        return steps.iloc[other[-1] + 1 :] if len(other) else steps

    @cached_property
    def loss(self) -> Floats:
        """(n,) finite losses, in the order of their steps."""
        loss = self.column("loss")
        finite: Floats = loss[np.isfinite(loss)]
        return finite

    def column(self, name: str) -> Floats:
        """Return a column of the steps; empty where the log has none."""
        if name not in self.steps:
            return np.zeros(0)
        return self.steps[name].to_numpy(dtype=np.float64)

    def evaluations(self, name: str) -> Floats:
        """Return the finite numbers of a column of the evaluations; empty where the log has none."""
        if name not in self.log.evaluations:
            return np.zeros(0)
        values = self.log.evaluations[name].to_numpy(dtype=np.float64)
        finite: Floats = values[np.isfinite(values)]
        return finite

    @cached_property
    def level(self) -> float:
        """Median loss of the last quarter."""
        return float(np.median(self.loss[-max(len(self.loss) // 4, 5) :]))

    @cached_property
    def start(self) -> float:
        """Median loss of the first twentieth."""
        return float(np.median(self.loss[: max(len(self.loss) // 20, 1)]))

    @cached_property
    def initial(self) -> float:
        """Loss of the first steps, also of a training that learns most in its first twentieth."""
        return max(float(np.median(self.loss[:3])), self.start)

    @cached_property
    def drift(self) -> float:
        """Change of the median loss from the second third to the last one, as a share of the level."""
        third = len(self.loss) // 3
        before, after = (float(np.median(part)) for part in (self.loss[third : 2 * third], self.loss[-third:]))
        return (after - before) / max(abs(self.level), 1e-12)

    @cached_property
    def noise(self) -> float:
        """Robust standard deviation of the loss between neighbouring steps."""
        steps = np.diff(self.loss)
        return float(1.4826 * np.median(np.abs(steps - np.median(steps))) / math.sqrt(2))

    @property
    def is_flat(self) -> bool:
        """Whether the loss has not moved since the first third."""
        return abs(self.drift) < 0.01

    @property
    def recall_rises(self) -> bool:
        """Whether a recall of the log has at least doubled, so that something is learnt whatever the loss."""
        for values in (self.evaluations("val_recall"), self.column("train_recall")):
            finite = values[np.isfinite(values)]
            if len(finite) > 1 and finite[-1] > 2 * max(float(finite[0]), 1e-9):
                return True
        return False

    def nearest_guess(self, tolerance: float) -> Guess | None:
        """Return the loss of guessing that the level is within a tolerance of, or above it; None without any.

        Above it means something of own runs alone: others may add losses, or have candidates beyond their batch.

        Args:
            tolerance: as a share of the guess.
        """
        near = [
            one
            for one in self.guesses
            if abs(self.level / one.value - 1) <= tolerance or (one.is_exact and self.level > one.value)
        ]
        return min(near, key=lambda one: (not one.is_certain, abs(self.level / one.value - 1)), default=None)


def guesses_of(objective: Objective | None, size: int | None, recipe: object = None) -> Iterator[Guess]:
    """Yield the losses that guessing can give: of mean or sum, of one direction or both.

    Args:
        objective: None where it is not known.
        size: pairs of a batch; None where it is not known.
        recipe: of an own run, whose loss is reduced in a known way.
    """
    if objective is None or size is None:
        yield from _guesses_without(objective, size)
        return
    own = _own_guess(objective, size, recipe)
    if own is not None:
        yield Guess(own, f"the loss of equal similarities at batches of {size}", True, True)
        return
    per_query = _guess_per_query(objective, size)
    if per_query is None:
        return
    name = f"log {size}" if abs(per_query - math.log(size)) < 1e-3 else "the loss of equal similarities"
    yield Guess(per_query, name, True)
    yield Guess(2 * per_query, f"2 × {name}", True)
    if guess_is_margin(objective):
        yield from _margins(objective)


def _guesses_without(objective: Objective | None, size: int | None) -> Iterator[Guess]:
    if size is not None:
        yield Guess(math.log(size), f"log {size}", True)
        yield Guess(2 * math.log(size), f"2 × log {size}", True)
    if guess_is_margin(objective):
        yield from _margins(objective)
    elif size is None and not hasattr(objective, "margin"):
        for power in _POWERS:
            yield Guess(power * math.log(2), f"log {2**power:,}", False)
    if objective is None and size is not None:
        yield Guess(math.log(2), "log 2", False)


def _margins(objective: Objective | None) -> Iterator[Guess]:
    margin: float = getattr(objective, "margin")  # noqa: B009
    yield Guess(margin, "the margin", True)
    yield Guess(2 * margin, "2 × the margin", True)


def _guess_per_query(objective: Objective, size: int) -> float | None:
    """Return the mean loss of a query where all similarities are equal; None where that is not known.

    That of a large batch follows from smaller ones, each twice the one before, where it grows by twice as much from
    one to the next (a sum over negatives) or by as much (a logarithm), or is the same. Else it is not known.
    """
    if size <= _ROWS:
        return _equal_loss(objective, size)
    losses = [_equal_loss(objective, rows) for rows in (_ROWS // 4, _ROWS // 2, _ROWS)]
    if None in losses:
        return None
    quarter, half, whole = (float(loss or 0.0) for loss in losses)
    before, growth = half - quarter, whole - half
    if math.isclose(growth, 2 * before, rel_tol=_LINEAR, abs_tol=_NOISE * whole):
        return whole + growth * (size - _ROWS) / (_ROWS - _ROWS // 2)
    if math.isclose(growth, before, rel_tol=_LOGARITHM):
        bend = growth - before  # c log(a + b n) is not yet straight in log n; half as bent at each doubling
        return whole + (growth + bend) * math.log2(size / _ROWS) - bend * (1 - _ROWS / size)
    return None


def _equal_loss(objective: Objective, size: int) -> float | None:
    """Return the mean loss of the queries of a batch where all similarities are equal; None where it is not defined."""
    try:
        values = objective(torch.zeros(size, size), pair_mask(torch.arange(size))).values
    except InputError:
        return None
    return None if values is None or not float(values.mean()) > 0 else float(values.mean())


def _own_guess(objective: Objective, size: int, recipe: object) -> float | None:
    """Return the loss that an own run logs where all similarities are equal; None where that is not defined."""
    if not isinstance(recipe, dict) or not recipe:
        return None
    reduction, rows = recipe.get("reduction") or objective.traits.reduction, min(size, _ROWS)
    S, mask = torch.zeros(rows, rows), pair_mask(torch.arange(rows))
    try:
        both = Pair(objective(S, mask), objective(S, mask.t()))
    except InputError:
        return None
    value = reduce_weights(both, objective.traits.directions, reduction, rows).value
    if value is None or not float(value) > 0:
        return None
    if rows == size:
        return float(value)
    small, large = _guess_per_query(objective, rows), _guess_per_query(objective, size)
    if small is None or large is None:
        return None
    factor = {"sum": size / rows, "cells": (rows - 1) / (size - 1)}.get(reduction, 1.0)  # of R, see reduce_weights
    return float(value) * factor * large / small
