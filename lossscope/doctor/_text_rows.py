"""Findings of `lossscope data lint` as those of the doctor."""

from __future__ import annotations

from .base import Check, Evidence, Finding
from .parts.patient import Patient
from .parts.texts import Texts


def finding_of_rows(check: Check, patient: Patient, share: float, words: str) -> Finding | None:
    """Return a finding of `data lint` as one of the doctor.

    Args:
        check: of the same id.
        patient: with rows of text.
        share: of the rows, above which it is one.
        words: what such a row has, `no positive`.

    Raises:
        Missing: it has no rows of text.
    """
    texts = patient.part(Texts)
    found = texts.fault(check.id())
    patient.signals[check.id()] = found.share if found else 0.0
    if found is None or found.share <= share:
        return None
    return check.finding(
        f"{found.share:.1%} of the rows have {words}",
        f"{found.count:,} of {texts.report.rows:,} rows have {words}.",
        (Evidence(f"share of rows with {words}", found.share, share, (0, share)),),
        found.advice,
        examples=found.examples,
    )
