"""Is recall on the training data far above that on held-out data, and growing?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from .base import Advice, Check, Evidence, Finding, Missing, Severity, TooLittle
from .parts.alignment import Alignment
from .parts.curve import Curve, Floats
from .parts.generalisation import Generalisation
from .parts.patient import Patient


def _advice(patient: Patient, score: str = "validation recall") -> tuple[Advice, ...]:
    best = f"Stop at the best {score}"
    return (
        Advice(f"{best}: `best.pt` of the run is that epoch." if patient.run is not None else f"{best}."),
        Advice("Use augmentation, more data, a smaller learning rate or weight decay."),
    )


@dataclass(frozen=True)
class Overfitting(Check):
    """Is training recall far above validation recall while the latter falls?

    A validation loss that rises while recall rises is no overfitting in retrieval.
    Source: open_clip issue 811; Zhang et al. 2017.
    """

    gap: float = 0.3  # of recall@1 between training and held-out data, among equally many candidates
    growth: float = 0.1  # of the gap since the earlier epoch
    fall: float = 0.05  # of validation recall from its best, as a share
    loss: float = 0.1  # rise of the validation loss from its best, as a share, where no recall is logged
    trained: float = 0.2  # recall@1 on the training data, where it is known, below which nothing is fitted
    severity: ClassVar[Severity] = "warning"
    order: ClassVar[int] = 48
    explains: ClassVar[tuple[str, ...]] = ("not-finished",)

    def examine(self, patient: Patient) -> Finding | None:
        is_known = not patient.is_held_out and patient.has(Alignment)
        if is_known and patient.part(Alignment).best.recall < self.trained:
            return None  # a model that does not fit the training data does not overfit
        looked = patient.has(Generalisation)
        if looked:
            found = self._of_recall(patient.part(Generalisation), patient)
            if found is not None:
                return found
        if patient.has(Curve):
            return self._of_log(patient, patient.part(Curve), looked)
        if not looked:
            raise Missing("it has neither training and held-out data nor a log of both", "a training log (--log)")
        return None

    def _of_recall(self, recalls: Generalisation, patient: Patient) -> Finding | None:
        patient.signals[self.id()] = recalls.gap
        if recalls.earlier_gap is None or recalls.earlier_held_out is None:
            return None  # a single model does not show whether held-out recall still rises
        grown = recalls.gap - recalls.earlier_gap >= self.growth
        falls = recalls.held_out < recalls.earlier_held_out * (1 - self.fall)
        if recalls.gap < self.gap or recalls.held_out > 0.5 * recalls.train or not (grown or falls):
            return None
        if recalls.held_out > recalls.earlier_held_out:
            return None
        return self.finding(
            f"recall is {recalls.train:.0%} on the training data and {recalls.held_out:.0%} on held-out data",
            f"Among {recalls.pairs} candidates, {recalls.train:.0%} of the training queries find their positive and "
            f"{recalls.held_out:.0%} of the held-out ones.",
            (
                Evidence("recall@1 train − held-out", recalls.gap, self.gap, (-0.1, 0.3)),
                Evidence("recall@1 held-out", recalls.held_out, None, (None, None)),
            ),
            _advice(patient),
        )

    def _of_log(self, patient: Patient, curve: Curve, looked: bool) -> Finding | None:
        recall, train = curve.evaluations("val_recall"), curve.evaluations("val_train_recall")
        losses = curve.evaluations("val_loss")
        if len(recall) >= 4:
            return self._of_recalls(patient, recall, train, curve)
        if len(losses) < 4:
            if looked:
                return None
            kind = TooLittle if len(losses) else Missing
            raise kind("its log has fewer than 4 evaluations", "4 evaluations")
        best, last = float(losses.min()), float(np.median(losses[-max(len(losses) // 5, 1) :]))
        rise = last / best - 1 if best > 0 else 0.0
        if rise < self.loss or curve.drift > -0.02 or int(losses.argmin()) > 0.8 * len(losses):
            return None
        return self.finding(
            f"the validation loss has risen by {rise:.0%} from its best while the training loss falls",
            f"The best validation loss was {best:.4g}; at the end it is {last:.4g}. The log has no recall, "
            "which may still rise.",
            (Evidence("rise of the validation loss from its best", rise, self.loss, (0, 0.1)),),
            _advice(patient, "validation loss"),
        )

    def _of_recalls(self, patient: Patient, recall: Floats, train: Floats, curve: Curve) -> Finding | None:
        best, last = float(recall.max()), float(np.median(recall[-max(len(recall) // 5, 1) :]))
        fall = 1 - last / best if best > 0 else 0.0
        training = float(train[-1]) if len(train) else None
        is_late = int(recall.argmax()) >= 0.8 * (len(recall) - 1)
        if is_late or fall < 2 * self.fall or (training is None and curve.drift > -0.02):
            return None
        if training is not None and training < 1.5 * last:
            return None
        name = curve.name_of_recall
        return self.finding(
            f"{name} has fallen by {fall:.0%} from its best while the training loss falls",
            f"The best {name} was {best:.4g}; it is {last:.4g} at the end.",
            (Evidence(f"fall of {name} from its best", fall, 2 * self.fall, (0, 2 * self.fall)),),
            _advice(patient, name),
        )
