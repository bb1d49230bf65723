"""Run all checks, in the order of their files, on one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.facts import Missing, TooLittle
from lossscope.registry import build, names

from ..base import Check, within_float64
from ..parts.items import Items
from ..parts.patient import Patient
from ..parts.state import Quantity, state_of
from ..types import SEVERITIES, Finding
from .causes import fold
from .proof import prove
from .verdict import Judgement, NotChecked, judge


@dataclass(frozen=True)
class Examination:
    """The findings of one source, the checks that ran, and the checks that could not run."""

    source: str
    used: str  # how many rows of which file, `all 350 rows of rows.jsonl`; empty where it is not of a file of rows
    objective: str | None
    findings: tuple[Finding, ...]  # the most likely cause first, symptoms folded under it
    folded: tuple[Finding, ...]  # the symptoms
    checked: tuple[str, ...]  # ids
    not_checked: tuple[NotChecked, ...]
    notices: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(
        default_factory=dict
    )  # id -> the number that the check compares with a threshold
    patient: Patient | None = field(default=None, repr=False)  # the examined source, for pictures
    state: Mapping[str, Quantity] = field(default_factory=dict)  # what is known before any verdict
    judgement: Judgement = field(default_factory=lambda: Judgement("no problem found"))

    @property
    def heading(self) -> str:
        """The source, and which rows of its data were examined."""
        return f"{self.source}, {self.used}" if self.used else self.source

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why checks did not run, by the ids of their findings."""
        return {missed.id: missed.reason for missed in self.not_checked}

    def reaches(self, severity: str) -> bool:
        """Return whether a finding is at least that severe; a state that no check explains counts as a warning."""
        order = [str(name) for name in SEVERITIES]
        if self.judgement.verdict == "cannot explain" and order.index(severity) <= order.index("warning"):
            return True
        return any(order.index(finding.severity) >= order.index(severity) for finding in self.findings)


def all_checks() -> tuple[Check, ...]:
    """Return a check of every file, with its own thresholds."""
    return tuple(build("findings", name) for name in names("findings"))


def _sampled(patient: Patient) -> list[str]:
    """Return a notice where the checks read a sample of the items."""
    items = patient.known(Items)
    if items is None or not items.is_sample:
        return []
    relations, (first, second) = items.split.relations, items.whole
    is_one_set = relations.sides.is_one_set
    compared = f"{relations.first:,} of {first:,}" + ("" if is_one_set else f" and {relations.second:,} of {second:,}")
    return [f"{compared} items are compared with each other; lengths, NaN and zeros are counted in all items"]


def run_checks(patient: Patient, checks: Sequence[Check] | None = None) -> Examination:
    """Run checks on one source.

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
            with within_float64():
                finding = check.examine(patient)
        except Missing as error:
            not_checked.append(NotChecked(id, error.reason, error.need, isinstance(error, TooLittle)))
            continue
        checked.append(id)
        if finding is not None:
            found.append(finding)
    top, folded = fold(found, {id: check.order for id, check in by_id.items()}, prove(patient, found, by_id))
    state, split = state_of(patient), patient.known(SplitEmbeddings)
    return Examination(
        patient.name,
        "" if split is None else split.used,
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
