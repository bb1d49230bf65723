"""An examination as JSON, `lossscope.doctor/1`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..parts.state import Quantity
from ..types import Cure, Evidence, Finding
from .checks import Examination

SCHEMA = "lossscope.doctor/1"


def document_of(examinations: Sequence[Examination]) -> dict[str, Any]:
    """Return one document; with several sources, each finding names its source."""
    several = len(examinations) > 1
    objectives = list(dict.fromkeys(examination.objective for examination in examinations if examination.objective))
    sources = [examination.source for examination in examinations]
    checked = [id for examination in examinations for id in examination.checked]
    return {
        "schema": SCHEMA,
        "source": sources if several else sources[0],
        **_used(examinations),
        "objective": objectives[0] if len(objectives) == 1 else objectives or None,
        "findings": [
            _finding(finding, examination.source if several else None)
            for examination in examinations
            for finding in examination.findings
        ],
        **(
            {"state": _state(examinations[0].state), "verdict": examinations[0].judgement.verdict}
            if not several
            else {
                "state": {examination.source: _state(examination.state) for examination in examinations},
                "verdict": {examination.source: examination.judgement.verdict for examination in examinations},
            }
        ),
        "unexplained": [
            {
                "text": text,
                "bring": list(examination.judgement.bring),
                **({"source": examination.source} if several else {}),
            }
            for examination in examinations
            for text in examination.judgement.unexplained
        ],
        "checked": list(dict.fromkeys(checked)),
        "not_checked": [
            {"id": missed.id, "reason": missed.reason, **({"source": examination.source} if several else {})}
            for examination in examinations
            for missed in examination.not_checked
        ],
    }


def _used(examinations: Sequence[Examination]) -> dict[str, Any]:
    """Return which rows of a file each source was examined on; nothing where none is of such a file."""
    used = {examination.source: examination.used for examination in examinations if examination.used}
    return {"used": next(iter(used.values())) if len(examinations) == 1 else used} if used else {}


def _finding(finding: Finding, source: str | None) -> dict[str, Any]:
    return {
        "id": finding.id,
        "severity": finding.severity,
        "title": finding.title,
        "why": finding.why,
        "evidence": [_evidence(evidence) for evidence in finding.evidence],
        "advice": [{"text": advice.text, "command": advice.command} for advice in finding.advice],
        "reference": finding.reference,
        "explains": list(finding.explains),
        "cure": None if finding.cure is None else _cure(finding.cure),
        **({"examples": list(finding.examples)} if finding.examples else {}),
        **({"source": source} if source is not None else {}),
    }


def _evidence(evidence: Evidence) -> dict[str, Any]:
    return {
        "statistic": evidence.statistic,
        "value": _number(evidence.value),
        "low": _number(evidence.low),
        "high": _number(evidence.high),
        "threshold": _number(evidence.threshold),
        "healthy": [_number(bound) for bound in evidence.healthy],
    }


def _cure(cure: Cure) -> dict[str, Any]:
    numbers = {name: _number(getattr(cure, name)) for name in ("before", "after", "restored")}
    return {"what": cure.what, "statistic": cure.statistic, **numbers}


def _state(state: Mapping[str, Quantity]) -> dict[str, Any]:
    return {
        statistic: {
            "value": _number(quantity.value),
            "chance": _number(quantity.chance),
            "possible": _number(quantity.possible),
            "text": quantity.text,
        }
        for statistic, quantity in state.items()
    }


def _number(value: float | None) -> float | None:
    """Return a number that JSON has, and None for NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(value)
