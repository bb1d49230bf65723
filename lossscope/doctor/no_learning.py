"""Is the loss still that of guessing?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._recipe_advice import decay_advice, rate_advice
from .base import Advice, Check, Evidence, Finding, Missing, Severity
from .logs.base import TrainingLog
from .parts.alignment import Alignment
from .parts.batches import Batches
from .parts.curve import Curve
from .parts.guesses import Guess
from .parts.patient import Patient

_ADVICE = (
    Advice("Overfit one batch first: if the loss of 32 fixed pairs does not fall, the code is wrong, not the data."),
    Advice(
        "Look at a few pairs by eye: a side may be shifted by a row. Check the labels and shapes of the loss: logits "
        "(B, B), labels arange(B), softmax over the last axis."
    ),
    Advice("Try learning rates a factor of 10 apart, 1e-5 to 1e-3, with a warm-up; begin from a trained encoder."),
)


@dataclass(frozen=True)
class NoLearning(Check):
    """Is the loss, after its warm-up, that of equal similarities, log B of a softmax, and recall at chance?

    Source: the loss of equal similarities; open_clip issue 17, CLIP issue 362.
    """

    share: float = 0.98  # of the loss of guessing, at least
    beyond: float = 1.02  # of it, at most, in a log of another trainer, whose layout is taken to be the usual one
    started: float = 0.95  # level of the loss over its start, at least, where the layout of the batches is not known
    near_two: float = 0.02  # of the loss to log 2, the soft margin's plateau ln(1 + e⁰), likewise
    noise: float = 0.01  # of the loss at log 2 between neighbouring steps, as a share
    near: float = 0.005  # of the loss to log 2, log 4, ..., as a share, where the layout is not known
    auc: float = 0.7  # of the vectors, below which the check believes the log
    severity: ClassVar[Severity] = "error"
    order: ClassVar[int] = 30
    explains: ClassVar[tuple[str, ...]] = (
        "temperature-too-high", "dimensional-collapse", "not-finished", "hubness", "one-direction", "no-gradient",
        "temperature-too-low", "hard-negatives-too-hard", "modality-gap", "cone",
    )  # fmt: skip

    def examine(self, patient: Patient) -> Finding | None:
        if patient.has(Alignment):
            alignment = patient.part(Alignment)
            try:
                found = self._of_vectors(patient, alignment)
            except Missing:
                if not patient.has(Curve):
                    raise
                return self._of_curve(patient, patient.part(Curve))
            if found is not None or alignment.best.auc >= self.auc or not patient.has(Curve):
                return found
            return self._of_curve(patient, patient.part(Curve))
        if not patient.has(TrainingLog):
            raise Missing("it has neither pairs nor a log", "a training log (--log)")
        return self._of_curve(patient, patient.part(Curve))

    def _of_vectors(self, patient: Patient, alignment: Alignment) -> Finding | None:
        patient.signals[self.id()] = alignment.best.auc
        patient.require_trained()
        if not alignment.at_chance:
            return None
        best = alignment.best
        evidence = [
            Evidence(f"AUC {best.label}, 0.5 by chance", best.auc, best.auc_by_chance, (0.7, 1)),
            Evidence(f"recall@1 {best.label} among {alignment.pairs} (by chance {best.chance:.2g})", best.recall, None,
                     (None, None)),
        ]  # fmt: skip
        why = "Positives rank at chance level."
        if patient.has(Batches) and (batches := patient.part(Batches)).is_softmax:
            ratio = batches.loss / batches.guess
            evidence.insert(
                0, Evidence(f"loss / log B at batches of {batches.batch_size}", ratio, self.share, (0, 0.8))
            )
            why = f"The loss is {ratio:.2f} times log B, and positives rank at chance level."
        return self.finding("nothing has been learnt", why, tuple(evidence), _advice(patient))

    def _of_curve(self, patient: Patient, curve: Curve) -> Finding | None:
        guess = min((x for x in curve.guesses if self._is_reached(curve, x)), key=curve.rank_of_guess, default=None)
        if guess is None or not curve.is_flat or curve.recall_rises:
            return None
        if not guess.is_exact and curve.has_learnt_from() is not None:
            return None
        beside = "" if guess.is_certain else _meaning(guess)
        return self.finding(
            f"the loss stays at {curve.level:.3g}, {guess.name}: nothing is learnt",
            f"The median loss of the last quarter is {curve.level:.4g}; guessing gives {guess.value:.4g} "
            f"({guess.name}){beside}. The loss has moved by {abs(curve.drift):.2%} since the first third.",
            (
                Evidence(f"loss / {guess.name}", curve.level / guess.value, self.share, (0, 0.8)),
                Evidence("change of the loss since the first third", curve.drift, -0.01, (None, -0.05)),
            ),
            _advice(patient),
        )

    def _is_reached(self, curve: Curve, guess: Guess) -> bool:
        """Return whether the loss is at the level of guessing, as closely as that is known."""
        ratio = curve.level / guess.value
        if guess.is_exact:
            return ratio >= self.share
        if guess.is_certain:
            return self.share <= ratio <= self.beyond
        return self._is_flat_from_the_start(curve, guess)

    def _is_flat_from_the_start(self, curve: Curve, guess: Guess) -> bool:
        """Return whether the loss is, and always was, that of guessing in a possible layout.

        At log 2, the plateau ln(1 + e⁰) of a soft margin, a loss without noise is enough, whatever it was before.
        """
        is_two = guess.name == "log 2"
        if abs(curve.level / guess.value - 1) > (self.near_two if is_two else self.near):
            return False
        always = self.started <= curve.level / curve.start <= 1 / self.started
        return always or (is_two and curve.noise < self.noise * curve.level)


def _advice(patient: Patient) -> tuple[Advice, ...]:
    return (*decay_advice(patient), *rate_advice(patient), *_ADVICE)


def _meaning(guess: Guess) -> str:
    """Return what a loss of guessing means where the layout of the batches is unknown."""
    if guess.name == "log 2":
        return ", between two classes; a soft margin gives it, too, as ln(1 + e⁰), when all items have one embedding"
    if not guess.name.startswith("log ") or "(" in guess.name:
        return ", if that is how your loss is computed"
    return f" if a query has {guess.name.removeprefix('log ')} candidates"
