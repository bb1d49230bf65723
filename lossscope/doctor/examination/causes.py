"""Causes before symptoms: what another finding explains is listed under it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..types import SEVERITIES, Finding


def fold(found: Sequence[Finding], places: Mapping[str, int]) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings that no other one explains, the most likely cause first, and the others.

    A cause is as severe in the order as the worst of its symptoms.

    Args:
        found: in any order.
        places: id -> place among the causes.
    """
    by_id = {one.id: one for one in found}
    ordered = sorted(found, key=lambda one: places.get(one.id, 50))
    under: dict[str, str] = {}
    for cause in ordered:
        for symptom in cause.can_explain:
            if symptom in by_id and symptom not in under and _root(cause.id, under) != symptom:
                under[symptom] = cause.id
    root = {id: _root(id, under) for id in by_id}
    symptoms = {cause: tuple(one.id for one in ordered if one.id != cause and root[one.id] == cause) for cause in by_id}
    tops = [replace(one, explains=symptoms[one.id]) for one in ordered if one.id not in under]

    def worst(one: Finding) -> int:
        return max(SEVERITIES.index(by_id[id].severity) for id in (one.id, *symptoms[one.id]))

    tops.sort(key=lambda one: (-worst(one), places.get(one.id, 50)))
    return tuple(tops), tuple(one for one in ordered if one.id in under)


def _root(id: str, under: Mapping[str, str]) -> str:
    """Return the cause that stands at the top of a finding; a circle ends where it began."""
    seen = {id}
    while id in under and under[id] not in seen:
        id = under[id]
        seen.add(id)
    return id
