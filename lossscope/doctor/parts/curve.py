"""The loss of a training, step by step, beside the loss of guessing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from lossscope.core.facts import Missing, TooLittle
from lossscope.engine.loss_levels import Layout, loss_levels
from lossscope.objectives.base import Objective

from ..logs.base import TrainingLog
from .guesses import Guess, guesses_of
from .patient import Patient, build_objective

_AT = 0.03  # distance of the first losses from guessing, as a share
_PAIRS = 2048  # of a batch, up to which the loss of perfect pairs is computed
_LEFT = 0.9  # of the loss of guessing; a training below it has left guessing
LEAST = 20  # steps with a loss, below which a curve says nothing
Floats = npt.NDArray[np.float64]


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
        """Take the log. Raises Missing without a loss, TooLittle for a short log."""
        spec = patient.objective_spec or log.objective
        objective = build_objective(spec) if spec else None
        known = patient.stated_batch_size or log.candidates
        size = known or log.batch_size
        guesses = guesses_of(objective, size, patient.recipe, counts_candidates=known is not None)
        curve = cls(log, objective, size, tuple(guesses))
        if not log.has_loss:
            raise Missing("its log has evaluations only, and no training loss")
        if len(curve.loss) < LEAST:
            raise TooLittle(f"its log has {len(curve.loss)} steps with a loss; {LEAST} are needed")
        return curve

    @cached_property
    def steps(self) -> pd.DataFrame:
        """The rows of the last objective of the training."""
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

    @cached_property
    def steps_of_loss(self) -> Floats:
        """(n,) the steps of the finite losses."""
        return self.column("step")[np.isfinite(self.column("loss"))]

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

    @property
    def name_of_recall(self) -> str:
        """The name of val_recall: in a foreign log its column, whatever score that is."""
        return self.log.columns.get("val_recall", "validation recall")

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
        return noise_of(self.loss)

    @property
    def tail_noise(self) -> float:
        """The noise of the last quarter."""
        return noise_of(self.loss[-max(len(self.loss) // 4, 5) :])

    @property
    def has_settled(self) -> bool:
        """Whether the loss has not moved within the last quarter, though it may have before."""
        eighth = max(len(self.loss) // 8, 3)
        before, after = (float(np.median(part)) for part in (self.loss[-2 * eighth : -eighth], self.loss[-eighth:]))
        return abs(after - before) < 0.01 * abs(before)

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
        """Return the loss of guessing that the level is near, or above; None where there is none.

        A level above it counts only for runs of lossscope: others may add losses, or have further candidates.

        Args:
            tolerance: as a share of the guess.
        """
        near = [
            guess
            for guess in self.guesses
            if abs(self.level / guess.value - 1) <= tolerance or (guess.is_exact and self.level > guess.value)
        ]
        return min(near, key=self.rank_of_guess, default=None)

    def rank_of_guess(self, guess: Guess) -> tuple[bool, float]:
        """Return the key of a guess: certain guesses by distance, then possible guesses in their order."""
        distance = abs(self.level / guess.value - 1)
        return not guess.is_certain, distance if guess.is_certain else self.guesses.index(guess)

    @property
    def level_of_guessing(self) -> Guess | None:
        """The certain loss of guessing; of several, that at the end or the start, else the usual."""
        certain = [guess for guess in self.guesses if guess.is_certain]
        at = [guess for loss in (self.level, self.initial) for guess in certain if abs(loss / guess.value - 1) <= _AT]
        return next(iter([*at, *certain]), None)

    @cached_property
    def progress(self) -> float | None:
        """Share of the way from guessing to perfect pairs that the loss has gone; None where either is unknown.

        With many positives, the loss of perfect pairs depends on their number. A foreign log that begins above
        guessing has another layout or reduction than stated.
        """
        guess, size, objective = self.level_of_guessing, self.batch_size, self.objective
        if objective is None or guess is None or size is None or size > _PAIRS:
            return None
        is_many, is_above = objective.traits.positives == "many", self.initial > (1 + _AT) * guess.value
        if not guess.is_exact and (is_many or is_above):
            return None
        levels = loss_levels(objective, Layout(size))
        if levels is None or levels.guess <= max(levels.perfection, 0.0):
            return None
        return (1 - self.level / guess.value) / (1 - levels.perfection / levels.guess)

    def has_learnt_from(self) -> Guess | None:
        """Return a loss of guessing at which the training began and which it left for good; None without any."""
        begun = [
            guess
            for guess in self.guesses
            if guess.is_certain and abs(self.initial / guess.value - 1) <= _AT and self.level < _LEFT * guess.value
        ]
        return begun[0] if begun and self.objective is not None else None


def finite_median(values: Floats) -> float | None:
    """Return the median of the finite values; None without any."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if len(finite) else None


def noise_of(loss: Floats) -> float:
    """Return the robust standard deviation of the loss between neighbouring steps."""
    steps = np.diff(loss)
    return float(1.4826 * np.median(np.abs(steps - np.median(steps))) / math.sqrt(2))
