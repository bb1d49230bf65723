"""All checks, in the order in which their files are found, and one examination of one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lossscope.core.facts import Missing, TooLittle
from lossscope.registry import build, names

from ..base import Check
from ..parts.items import Items
from ..parts.patient import Patient
from ..parts.state import Quantity, state_of
from ..types import SEVERITIES, Finding
from .causes import fold
from .proof import prove
from .verdict import Judgement, NotChecked, judge


@dataclass(frozen=True)
class Examination:
    """What was found in one source, what was looked for in vain, and what could not be looked for."""

    source: str
    objective: str | None
    findings: tuple[Finding, ...]  # the most likely cause first, symptoms folded under it
    folded: tuple[Finding, ...]  # the symptoms
    checked: tuple[str, ...]  # ids
    not_checked: tuple[NotChecked, ...]
    notices: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)  # id -> the number that is compared with a threshold
    patient: Patient | None = field(default=None, repr=False)  # what was examined, for pictures
    state: Mapping[str, Quantity] = field(default_factory=dict)  # what is, before any verdict
    judgement: Judgement = field(default_factory=lambda: Judgement("no problem found"))

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why findings were not looked for, by their ids."""
        return {missed.id: missed.reason for missed in self.not_checked}

    def reaches(self, severity: str) -> bool:
        """Return whether a finding is at least that severe; what cannot be explained is a warning."""
        order = [str(one) for one in SEVERITIES]
        if self.judgement.verdict == "cannot explain" and order.index(severity) <= order.index("warning"):
            return True
        return any(order.index(one.severity) >= order.index(severity) for one in self.findings)


def all_checks() -> tuple[Check, ...]:
    """Return a check of every file, with its own thresholds."""
    return tuple(build("findings", name) for name in names("findings"))


def _sampled(patient: Patient) -> list[str]:
    """Return a sentence where a sample stands for all items."""
    items = patient.known(Items)
    if items is None or not items.is_sample:
        return []
    relations, (first, second) = items.split.relations, items.whole
    one = relations.sides.is_one_set
    compared = f"{relations.first:,} of {first:,}" + ("" if one else f" and {relations.second:,} of {second:,}")
    return [f"{compared} items are compared with each other; lengths, NaN and zeros are of all"]


def run_checks(patient: Patient, checks: Sequence[Check] | None = None) -> Examination:
    """Look for every finding in one source.

    Args:
        patient: the source.
        checks: None: all.
    """
    found: list[Finding] = []
    checked: list[str] = []
    not_checked: list[NotChecked] = []
    by_id = {check.id(): check for check in (all_checks() if checks is None else checks)}
    for id, check in by_id.items():
        try:
            finding = check.examine(patient)
        except Missing as error:
            not_checked.append(NotChecked(id, error.reason, error.need, isinstance(error, TooLittle)))
            continue
        checked.append(id)
        if finding is not None:
            found.append(finding)
    top, folded = fold(found, {id: check.place for id, check in by_id.items()}, prove(patient, found, by_id))
    state = state_of(patient)
    return Examination(
        patient.name,
        patient.objective_spec,
        top,
        folded,
        tuple(checked),
        tuple(not_checked),
        (*patient.notices, *_sampled(patient)),
        patient.signals,
        patient,
        state,
        judge(patient, top, checked, not_checked, bool(state)),
    )
