"""Causes before symptoms: what another finding explains is listed under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..types import SEVERITIES, Finding
from .proof import Proofs


def fold(
    found: Sequence[Finding], order: Mapping[str, int], proofs: Proofs | None = None
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings that no other finding explains, the most likely cause first, and the others.

    Where a cure was tried, it decides: what is gone with a finding is its symptom, and what stays has another cause.
    Elsewhere a check says what it can explain. A cause ranks as high as the worst of its symptoms. Causes of one
    severity follow `order`; among these positions, findings that were undone are sorted by what the cure restored.

    Args:
        found: in any order.
        order: id -> its position among the causes, see `Check.order`.
        proofs: which ids went and which stayed with each cure; None: no cure was tried.
    """
    proofs = proofs or Proofs(tuple(found))
    by_id = {finding.id: finding for finding in proofs.findings}

    ordered = _sort(proofs, order)
    rank = {finding.id: position for position, finding in enumerate(ordered)}
    under: dict[str, str] = {}
    claims = [(cause.id, sorted(proofs.gone.get(cause.id, ()))) for cause in ordered]  # proven claims first
    claims += [(cause.id, _can_explain(cause, proofs)) for cause in ordered]
    for cause_id, claimed in claims:
        for symptom in claimed:
            if symptom in by_id and symptom not in under and _root(cause_id, under) != symptom:
                under[symptom] = cause_id
    root = {id: _root(id, under) for id in by_id}
    symptoms = {
        cause: tuple(finding.id for finding in ordered if finding.id != cause and root[finding.id] == cause)
        for cause in by_id
    }
    tops = [replace(finding, explains=symptoms[finding.id]) for finding in ordered if finding.id not in under]

    def worst(finding: Finding) -> int:
        return max(SEVERITIES.index(by_id[id].severity) for id in (finding.id, *symptoms[finding.id]))

    tops.sort(key=lambda finding: (-worst(finding), rank[finding.id]))
    return tuple(tops), tuple(finding for finding in ordered if finding.id in under)


def _can_explain(cause: Finding, proofs: Proofs) -> list[str]:
    """Return the ids that a check claims to explain, without those that stayed when the cause was undone."""
    stayed = proofs.stayed.get(cause.id, frozenset())
    return [id for id in cause.can_explain if id not in stayed]


def _sort(proofs: Proofs, order: Mapping[str, int]) -> list[Finding]:
    """Return findings by their order; those that were undone swap positions, the largest restoration first."""
    ordered = sorted(proofs.findings, key=lambda finding: (order.get(finding.id, 50), finding.id))
    undone = sorted(
        (f for f in ordered if f.id in proofs.gone), key=lambda f: -round(f.cure.restored, 1) if f.cure else 0
    )
    following = iter(undone)
    return [next(following) if finding.id in proofs.gone else finding for finding in ordered]


def _root(id: str, under: Mapping[str, str]) -> str:
    """Return the topmost cause of a finding; a circle ends where it began."""
    seen = {id}
    while id in under and under[id] not in seen:
        id = under[id]
        seen.add(id)
    return id
