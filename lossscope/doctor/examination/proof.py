"""Prove by cure: undo each finding on the frozen vectors; what is still found then has another cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing

from ..base import Check, within_float64
from ..parts.alignment import Alignment, DirectionAlignment
from ..parts.items import Items
from ..parts.patient import Patient
from ..parts.remedies import Remedy
from ..types import Cure, Finding
from .open_source import of_split

_RECALL = "recall@1"
_SMALL = 0.02  # of recall@1: a cure that restores less restores nothing


@dataclass(frozen=True)
class Proofs:
    """Findings with their cures, and which other findings went or stayed with each cure."""

    findings: tuple[Finding, ...]
    gone: Mapping[str, frozenset[str]] = field(
        default_factory=dict
    )  # id of the cause -> ids that are not found after its cure
    stayed: Mapping[str, frozenset[str]] = field(default_factory=dict)  # id of the cause -> ids that are still found


def prove(patient: Patient, found: Sequence[Finding], checks: Mapping[str, Check]) -> Proofs:
    """Undo each finding that can be undone, and look for the other findings again.

    Args:
        patient: the examined source.
        found: its findings.
        checks: id -> check.
    """
    proven: list[Finding] = []
    gone, stayed = dict[str, frozenset[str]](), dict[str, frozenset[str]]()
    shown: Sequence[str] | None = None  # computed once a cure restores something
    for finding in found:
        tried = [_try(patient, remedy) for remedy in _remedies(checks[finding.id], patient)]
        tried = [trial for trial in tried if trial.cure is not None]
        best = max(tried, key=lambda trial: trial.gain, default=None)
        useful = {trial.what for trial in tried if trial.gain > _SMALL}
        advice = tuple(advice for advice in finding.advice if not advice.remedy or advice.remedy in useful)
        proven.append(replace(finding, cure=None if best is None else best.cure, advice=advice))
        if best is not None and best.cured is not None and best.what in useful:
            shown = shown if shown is not None else _shown_by_sample(patient, found, checks)
            again = {id: _is_found(checks[id], best.cured) for id in shown if id != finding.id}
            gone[finding.id] = frozenset(id for id, is_found in again.items() if is_found is False)
            stayed[finding.id] = frozenset(id for id, is_found in again.items() if is_found)
    cures = [finding.cure for finding in proven if finding.cure is not None]
    most = max((cure.after for cure in cures if cure.statistic.startswith(_RECALL)), default=0.0)
    return Proofs(tuple(_with_possible(finding, most) for finding in proven), gone, stayed)


def _remedies(check: Check, patient: Patient) -> Sequence[Remedy]:
    """Return ways to undo a finding; none where the source has no vectors, such as a log."""
    try:
        with within_float64():
            return check.remedies(patient)
    except Missing:
        return ()


@dataclass(frozen=True)
class _Trial:
    """A remedy and its result."""

    what: str
    cure: Cure | None
    cured: Patient | None

    @property
    def gain(self) -> float:
        """Share that the remedy restores; for recall@1 the gain itself."""
        if self.cure is None:
            return 0.0
        return self.cure.after - self.cure.before if self.cure.statistic.startswith(_RECALL) else self.cure.restored


def _try(patient: Patient, remedy: Remedy) -> _Trial:
    cured = None if remedy.split is None else patient_after(patient, remedy.split)
    cure = remedy.cure
    if cure is None and cured is not None:
        cure = _recall_restored(patient, cured, remedy.what)
    return _Trial(remedy.what, cure, cured)


def patient_after(patient: Patient, split: SplitEmbeddings) -> Patient:
    """Return a patient with other vectors or pairs and the same training."""
    cured = Patient(
        patient.name, patient.options, patient.objective_spec, patient.stated_batch_size, patient.sides,
        patient.recipe, is_held_out=patient.is_held_out, epoch=patient.epoch, steps=patient.steps,
    )  # fmt: skip
    return of_split(replace(split, warnings=(), notices=()), patient.options, cured)


def _shown_by_sample(patient: Patient, found: Sequence[Finding], checks: Mapping[str, Check]) -> Sequence[str]:
    """Return the ids found in the sample for cures, whose rows are finite and of unit length."""
    if not patient.has(Items):
        return ()
    sample = patient_after(patient, patient.part(Items).split)
    return [finding.id for finding in found if _is_found(checks[finding.id], sample)]


def _is_found(check: Check, patient: Patient) -> bool | None:
    """Return whether a check has a finding; None where it cannot run."""
    try:
        with within_float64():
            return check.examine(patient) is not None
    except Missing:
        return None


def _recall_restored(patient: Patient, cured: Patient, what: str) -> Cure | None:
    """Return recall@1 before and after, in the direction that gains most; None where either is unknown."""
    if not patient.has(Alignment) or not cured.has(Alignment):
        return None
    pairs = zip(patient.part(Alignment).directions, cured.part(Alignment).directions, strict=True)
    before, after = max(pairs, key=lambda pair: pair[1].recall - pair[0].recall)
    return Cure(what, f"recall@1 {before.label}", before.recall, after.recall, _possible(before, after.recall))


def _possible(direction: DirectionAlignment, after: float) -> float:
    return max(direction.implied_recall, direction.recall, after)


def _with_possible(finding: Finding, best: float) -> Finding:
    """Return a finding whose cure knows the best value that any cure of the same statistic reached."""
    cure = finding.cure
    if cure is None or not cure.statistic.startswith(_RECALL):
        return finding
    return replace(finding, cure=replace(cure, possible=max(cure.possible, best)))
