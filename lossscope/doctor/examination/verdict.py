"""Judge a source: findings, no problem found, cannot explain, or too little to judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..logs.base import TrainingLog
from ..parts.alignment import Alignment
from ..parts.curve import Curve
from ..parts.patient import Patient, TrainedWith
from ..parts.spectrum import NARROW, Spectrum
from ..parts.start import Start
from ..parts.texts import Texts
from ..types import Finding

Verdict = Literal["findings", "no problem found", "cannot explain", "too little to judge"]
_TIMES_CHANCE = 5.0  # of recall@1, up to which a model has learnt almost nothing
_AUC = 0.7  # below which positives are hardly above negatives; trained models of the wall have 0.8 and more
_BELOW_START = 0.9  # of a validation recall to its first one
_UNMOVED = 0.98  # of the loss at the end to that at the start
_FALLS = -0.01  # of the loss in its last third, above which it no longer falls
_HALF_WAY = 0.5  # from guessing to perfect pairs; healthy trainings of the wall below it still fall
_FOUND = 0.5  # recall@1


class NotChecked(NamedTuple):
    """A finding whose check could not run."""

    id: str
    reason: str
    need: str = ""  # what the check needs, in a few words; empty where nothing helps
    is_too_little: bool = False  # whether the source has it, but too little


@dataclass(frozen=True)
class Judgement:
    """A verdict, faults without an explanation, and what could explain them."""

    verdict: Verdict
    unexplained: tuple[str, ...] = ()
    bring: tuple[str, ...] = ()


def judge(
    patient: Patient,
    findings: Sequence[Finding],
    checked: Sequence[str],
    not_checked: Sequence[NotChecked],
    is_state_known: bool,
) -> Judgement:
    """Return the judgement of a source.

    Args:
        patient: that was examined.
        findings: the listed findings.
        checked: ids of the checks that ran.
        not_checked: those of the checks that could not run.
        is_state_known: whether a recall, a loss or rows are known.
    """
    if any(finding.is_alarm for finding in findings):
        return Judgement("findings")
    if not is_state_known or sum(missed.is_too_little for missed in not_checked) > len(checked):
        return Judgement("too little to judge")
    is_rising = any(finding.id == "not-finished" for finding in findings)
    unexplained = () if is_rising else tuple(_unexplained(patient))
    if unexplained:
        return Judgement("cannot explain", unexplained, tuple(_bring(patient)))
    return Judgement("no problem found")


def _unexplained(patient: Patient) -> Iterator[str]:
    """Yield what is wrong with the state itself."""
    if patient.has(Alignment):
        best = patient.part(Alignment).best
        is_low = best.recall <= _TIMES_CHANCE * best.chance and best.recall < 0.5
        if best.at_chance or best.auc < _AUC or is_low:
            yield f"recall@1 {best.label} is {best.recall:.1%}, and guessing gives {best.chance:.2%}"
        elif best.is_far_below_auc:
            yield (
                f"recall@1 {best.label} is {best.recall:.1%}, and an AUC of {best.auc:.3f} usually comes with "
                f"{best.implied_recall:.0%}: the model separates an item from most others, but not from those near it"
            )
        if best.recall < _FOUND and patient.has(Spectrum):
            narrowest = min(side.mean_cosine for side in patient.part(Spectrum).sides)
            if narrowest >= NARROW:
                yield f"different items have a mean cosine of {narrowest:.2f} and more, as in a model that collapses"
    if patient.has(Start):
        starts = patient.part(Start).recalls
        for direction in patient.part(Alignment).directions:
            if direction.recall < _BELOW_START * starts[direction.label]:
                before = starts[direction.label]
                yield f"recall@1 {direction.label} is {direction.recall:.1%}, and was {before:.1%} before this training"
    if patient.has(Curve):
        is_found = patient.has(Alignment) and patient.part(Alignment).best.recall >= _FOUND
        yield from _of_curve(patient.part(Curve), patient.has(Alignment), is_found)


def _of_curve(curve: Curve, has_pairs: bool, is_found: bool) -> Iterator[str]:
    """Yield what is wrong with a curve.

    Args:
        curve: of the training.
        has_pairs: whether recall says more of the model than the loss.
        is_found: whether recall is high.
    """
    recall = curve.evaluations("val_recall")
    if len(recall) > 1 and recall[-1] < _BELOW_START * recall[0]:
        name = curve.log.columns.get("val_recall", "validation recall")
        yield f"{name} has fallen from {recall[0]:.4g} to {recall[-1]:.4g}"
    if not (has_pairs or curve.recall_rises) and curve.is_flat and curve.level >= _UNMOVED * curve.start > 0:
        yield f"the loss has not moved: {curve.start:.4g} at the start, {curve.level:.4g} at the end"
    elif not is_found and curve.drift > _FALLS and curve.progress is not None and curve.progress < _HALF_WAY:
        yield (
            f"the loss has not fallen since the first third of the log: it is {curve.level:.4g}, "
            f"{max(curve.progress, 0):.0%} of the way from guessing to perfect pairs"
        )


def _bring(patient: Patient) -> Iterator[str]:
    """Yield what the source lacks that could explain its state."""
    if not patient.has(TrainingLog):
        yield "the log of its training (--log)"
    if not patient.has(TrainedWith):
        yield "what it was trained with (--objective, --batch-size)"
    if not patient.has(Alignment):
        yield "the embeddings of both sides (a dump)"
    elif not patient.has(Start):
        yield "a dump of the same items by the model before this training (--before)"
    if not patient.has(Texts):
        yield "the rows that it was trained on (a file of texts)"
    yield "the step of your trainer (lossscope check --trainer)"
