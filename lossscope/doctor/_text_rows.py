"""Turn findings of `lossscope data lint` into findings of the doctor, alone or beside those of embeddings."""

from __future__ import annotations

from collections.abc import Callable

from .base import Check, Evidence, Finding, Missing
from .parts.patient import Patient
from .parts.texts import Texts


def finding_of_rows(check: Check, patient: Patient, share: float, words: str) -> Finding | None:
    """Return a finding of `data lint` as a finding of the doctor.

    Args:
        check: of the same id.
        patient: with rows of text.
        share: of the rows; a larger share is a finding.
        words: what such a row has, `no positive`.

    Raises:
        Missing: it has no rows of text.
    """
    texts = patient.part(Texts)
    found = texts.fault(check.id())
    patient.signals.setdefault(check.id(), found.share if found else 0.0)
    if found is None or found.share <= share:
        return None
    return check.finding(
        f"{found.share:.1%} of the rows have {words}",
        f"{found.count:,} of {texts.report.rows:,} rows of {texts.target} have {words}.",
        (Evidence(f"share of rows with {words}", found.share, share, (0, share)),),
        found.advice,
        examples=found.examples,
    )


def worst_of(*looks: Callable[[], Finding | None]) -> Finding | None:
    """Run each check of one fault, and return the finding furthest beyond its threshold.

    Args:
        looks: return a finding or None, or raise Missing where the source lacks their part; the first evidence of each
            finding has a threshold.

    Raises:
        Missing: every part is missing; the reason is that of the first.
    """
    found, missing = [], []
    for look in looks:
        try:
            found.append(look())
        except Missing as error:
            missing.append(error)
    if not found:
        raise missing[0]
    return max((finding for finding in found if finding is not None), key=_excess, default=None)


def _excess(finding: Finding) -> float:
    """Return how many times its threshold the number of a finding is."""
    proof = finding.evidence[0]
    assert proof.threshold
    return proof.value / proof.threshold
