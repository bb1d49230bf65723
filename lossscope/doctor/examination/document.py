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
    """Return one document; of several sources each finding names its own."""
    several = len(examinations) > 1
    objectives = list(dict.fromkeys(one.objective for one in examinations if one.objective))
    sources = [one.source for one in examinations]
    checked = [id for one in examinations for id in one.checked]
    return {
        "schema": SCHEMA,
        "source": sources if several else sources[0],
        "objective": objectives[0] if len(objectives) == 1 else objectives or None,
        "findings": [
            _finding(finding, one.source if several else None) for one in examinations for finding in one.findings
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
            {"text": text, "bring": list(one.judgement.bring), **({"source": one.source} if several else {})}
            for one in examinations
            for text in one.judgement.unexplained
        ],
        "checked": list(dict.fromkeys(checked)),
        "not_checked": [
            {"id": missed.id, "reason": missed.reason, **({"source": one.source} if several else {})}
            for one in examinations
            for missed in one.not_checked
        ],
    }


def _finding(one: Finding, source: str | None) -> dict[str, Any]:
    return {
        "id": one.id,
        "severity": one.severity,
        "title": one.title,
        "why": one.why,
        "evidence": [_evidence(evidence) for evidence in one.evidence],
        "advice": [{"text": advice.text, "command": advice.command} for advice in one.advice],
        "reference": one.reference,
        "explains": list(one.explains),
        "cure": None if one.cure is None else _cure(one.cure),
        **({"examples": list(one.examples)} if one.examples else {}),
        **({"source": source} if source is not None else {}),
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    return {
        "statistic": one.statistic,
        "value": _number(one.value),
        "low": _number(one.low),
        "high": _number(one.high),
        "threshold": _number(one.threshold),
        "healthy": [_number(bound) for bound in one.healthy],
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
    """Return a number that JSON has; null in place of NaN and infinity."""
    return None if value is None or not math.isfinite(value) else float(value)
