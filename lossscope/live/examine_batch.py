"""Examine a batch and the steps so far for the given findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from lossscope.core.facts import Missing
from lossscope.doctor.base import within_float64
from lossscope.doctor.examination.causes import fold
from lossscope.doctor.logs.base import TrainingLog
from lossscope.doctor.parts.alignment import LEAST as LEAST_PAIRS
from lossscope.doctor.parts.alignment import Alignment
from lossscope.doctor.parts.curve import LEAST
from lossscope.doctor.parts.patient import Patient
from lossscope.doctor.parts.positive_counts import PositiveCounts
from lossscope.doctor.parts.spectrum import Spectrum
from lossscope.registry import build, spec_of

from .batch_kind import CONFIRMED, BatchKind, NewestStep
from .batch_patient import is_known, patient_of, uses_lengths
from .doctor_options import OF_COLLAPSE, OF_LEARNING, OF_LOG, OF_NEWEST, OF_PAIRS, OF_RISE, OF_SCALE
from .learning import learning_state, rises
from .schedule import Schedule
from .watched_step import WatchedStep

if TYPE_CHECKING:
    from lossscope.doctor.base import Check
    from lossscope.doctor.types import Finding

_OF_LENGTHS = "not-normalised"
_SPIKED = 50  # steps with a loss; with fewer a single high loss is no spike
_FOUND = 0.7  # healthy AUC; below it open findings of learning do not end
_APART = 0.9  # mean cosine of different items from which complete-collapse and dead-tower are possible


@dataclass
class Result:
    """The result of an examination."""

    found: dict[str, Finding] = field(default_factory=dict)  # by id; findings that no other finding explains
    judged: set[str] = field(default_factory=set)  # ids of the checks that ran
    unchanged: set[str] = field(default_factory=set)  # ids that neither begin nor end here, such as symptoms
    cannot: dict[str, str] = field(default_factory=dict)  # id -> why its check could not run
    at_once: frozenset[str] = frozenset()  # ids that begin although no earlier examination found them


def examine_batch(
    kind: BatchKind, step: WatchedStep, ids: frozenset[str], schedule: Schedule, is_broken: bool
) -> Result:
    """Return the findings of the newest batch and the steps so far.

    Args:
        kind: of the batch.
        step: its step.
        ids: to check.
        schedule: of the kind.
        is_broken: whether the step has numbers that are not finite.
    """
    result, newest = Result(), kind.newest_step
    log = _log(kind, newest, with_broken=is_broken)
    patient = patient_of(step.batch, step.objective, log)
    if is_broken:
        mask = kind.numbers.newest_mask or step.batch.first.mask  # embeddings break one step after the loss
        patient.given[PositiveCounts] = PositiveCounts.of_positives(mask.positives)
    patient.takes_products = _OF_LENGTHS in ids and uses_lengths(patient, step.batch.first)
    if _OF_LENGTHS in ids and not patient.takes_products:
        ids -= {_OF_LENGTHS}
        result.cannot[_OF_LENGTHS] = "the similarities are not products of the rows, so lengths do not count"
    if any(id in kind.open for id in OF_SCALE):
        ids -= OF_LOG | OF_LEARNING
    collapse = ids & OF_COLLAPSE if kind.was_apart else frozenset()  # checked whatever loss and recall do
    if guesses := (ids & OF_LEARNING) - collapse:
        state = learning_state(kind.history.newest(schedule.window), newest.size)
        absent = {"guesses": frozenset(), "falls": guesses - OF_PAIRS}.get(state, guesses)
        ids -= absent
        result.judged |= absent if state != "warms up" else set()
    ids = _without_short_curves(kind, newest, ids, schedule, log, result)
    found = _examine(_patients(ids, patient, kind, newest), result)
    if patient.has(Alignment) and patient.part(Alignment).best.auc < _FOUND:
        result.unchanged |= OF_LEARNING & set(kind.open.ids)
    _note_apart(kind, patient)
    if collapse:
        found = _confirmed(kind, collapse, found, result)
    return _fold(found, result)


def examine_log(kind: BatchKind, schedule: Schedule) -> Result:
    """Return the findings of the steps of an ended training; they begin at once, as no later look can confirm them."""
    result, newest = Result(at_once=OF_LOG), kind.newest_step
    if any(id in kind.open for id in OF_SCALE):
        return result
    log, patient = _log(kind, newest), Patient("the newest steps")
    patient.given[TrainingLog] = log
    ids = _without_short_curves(kind, newest, OF_LOG, schedule, log, result)
    return _fold(_examine(_patients(ids, patient, kind, newest), result), result)


def _log(kind: BatchKind, newest: NewestStep, with_broken: bool = False, with_middle: bool = True) -> TrainingLog:
    objective = newest.objective
    spec = None if objective is None or not is_known(objective) else spec_of(objective)
    return kind.history.log(spec, newest.size, with_broken, with_middle)


def _without_short_curves(
    kind: BatchKind, newest: NewestStep, ids: frozenset[str], schedule: Schedule, log: TrainingLog, result: Result
) -> frozenset[str]:
    """Return the ids without those of a short log, or of a loss that has not risen; the latter count as judged.

    A watched loss that may not be the trained loss can rise in a healthy training, so recall must fall, too.
    """
    losses = int(log.steps["loss"].notna().sum())
    if losses < LEAST:
        return ids - OF_LOG
    if losses < _SPIKED:
        ids -= OF_NEWEST
    if newest.size < LEAST_PAIRS and ids & OF_NEWEST:
        ids -= OF_NEWEST
        result.cannot |= dict.fromkeys(OF_NEWEST, f"batches of {newest.size} queries spike where a single query fails")
    if not ids & OF_RISE or any(id in kind.open for id in OF_RISE):
        return ids
    has_risen = rises(log.steps["loss"].to_numpy(), schedule.median)
    if has_risen and not (newest.is_trained or kind.history.says_loss):
        has_risen = rises(-kind.history.columns()["train_recall"], schedule.median)
    if has_risen:
        return ids
    result.judged |= OF_RISE
    return ids - OF_RISE


def _patients(ids: frozenset[str], patient: Patient, kind: BatchKind, newest: NewestStep) -> dict[str, Patient]:
    """Return the patient of each id; findings of the log use the steps without the batch."""
    ends, steps = Patient("the newest steps"), Patient("the steps")
    if ids & OF_NEWEST:
        ends.given[TrainingLog] = _log(kind, newest, with_middle=False)
    if ids & OF_LOG:
        steps.given[TrainingLog] = patient.part(TrainingLog)
    of_log = dict.fromkeys(OF_LOG, steps) | dict.fromkeys(OF_NEWEST, ends)
    return {id: of_log.get(id, patient) for id in sorted(ids)}


def _examine(patients: Mapping[str, Patient], result: Result) -> list[Finding]:
    """Return the findings of ids; note which checks ran and which could not."""
    found = []
    for id, patient in patients.items():
        try:
            with within_float64():
                finding = _check(id).examine(patient)
        except Missing as missing:
            result.cannot[id] = str(missing)
            continue
        result.judged.add(id)
        if finding is not None:
            found.append(finding)
    return found


def _confirmed(kind: BatchKind, collapse: frozenset[str], found: list[Finding], result: Result) -> list[Finding]:
    """Return the findings without a collapse that too few looks in a row have found; it ends as slowly as it begins.

    Args:
        kind: of the batch.
        collapse: ids of the checks that ran.
        found: findings of this look.
        result: of this look.
    """
    ids = collapse & {finding.id for finding in found}
    kind.count_look(bool(ids))
    if ids and kind.suspected >= CONFIRMED:
        result.at_once = collapse
    elif ids or kind.recovered < CONFIRMED:
        result.unchanged |= collapse if ids else collapse & set(kind.open.ids)
        return [finding for finding in found if finding.id not in ids or finding.id in kind.open]
    return found


def _fold(found: list[Finding], result: Result) -> Result:
    """Add the findings that no other finding explains; explained findings stay as they are."""
    tops, symptoms = fold(found, {finding.id: _check(finding.id).order for finding in found})
    result.found |= {finding.id: finding for finding in tops}
    result.unchanged |= {finding.id for finding in symptoms}
    return result


def _note_apart(kind: BatchKind, patient: Patient) -> None:
    """Note whether the model tells its items apart, so that a later collapse is noticed."""
    if kind.was_apart or not (patient.has(Alignment) and patient.has(Spectrum)):
        return
    is_spread = max(side.mean_cosine for side in patient.part(Spectrum).sides) < _APART
    kind.was_apart = is_spread and not patient.part(Alignment).at_chance
    if kind.steps == 1 and is_spread:
        kind.start = "apart" if kind.was_apart else "spread"


@cache
def _check(id: str) -> Check:
    check: Check = build("findings", id)
    return check
