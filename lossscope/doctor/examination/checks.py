"""All checks, in the order in which their files are found, and one examination of one source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lossscope.core.facts import Missing
from lossscope.registry import build, names

from ..base import Check
from ..parts.items import Items
from ..parts.patient import Patient
from ..types import SEVERITIES, Finding
from .causes import fold


@dataclass(frozen=True)
class Examination:
    """What was found in one source, what was looked for in vain, and what could not be looked for."""

    source: str
    objective: str | None
    findings: tuple[Finding, ...]  # the most likely cause first, symptoms folded under it
    folded: tuple[Finding, ...]  # the symptoms
    checked: tuple[str, ...]  # ids
    not_checked: tuple[tuple[str, str], ...]  # ids, with the reason
    notices: tuple[str, ...] = ()
    signals: Mapping[str, float] = field(default_factory=dict)  # id -> the number that is compared with a threshold
    patient: Patient | None = field(default=None, repr=False)  # what was examined, for pictures

    def reaches(self, severity: str) -> bool:
        """Return whether a finding is at least that severe."""
        order = [str(one) for one in SEVERITIES]
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
    not_checked: list[tuple[str, str]] = []
    for check in all_checks() if checks is None else checks:
        try:
            finding = check.examine(patient)
        except Missing as error:
            not_checked.append((check.id(), error.reason))
            continue
        checked.append(check.id())
        if finding is not None:
            found.append(finding)
    top, folded = fold(found, {check.id(): check.place for check in (checks or all_checks())})
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
    )
