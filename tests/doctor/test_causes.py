"""Do causes come before their symptoms, and does each finding appear once: on top, or under one on top?"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lossscope
from lossscope.doctor.examination.causes import fold
from lossscope.doctor.examination.checks import all_checks
from lossscope.doctor.examination.proof import Proofs
from lossscope.doctor.types import SEVERITIES, Cure, Finding
from tests.planted import complete_collapse, non_finite, one_direction, scale_falling
from tests.planted.base import SIZES, Plant, aligned, pairs, unit

CHECKS = {check.id(): check for check in all_checks()}
POSITIONS = {id: check.order for id, check in CHECKS.items()}


def finding(id: str, *explains: str, severity: str = "warning") -> Finding:
    return Finding(id, severity, id, id, (), (), "a test", explains)  # type: ignore[arg-type]


def of_check(id: str) -> Finding:
    return finding(id, *CHECKS[id].explains, severity=CHECKS[id].severity)


def fold_ids(*found: Finding, positions: dict[str, int] | None = None) -> dict[str, tuple[str, ...]]:
    """Return id -> the ids that it explains, for the findings on top, in their order."""
    top, _ = fold(found, POSITIONS if positions is None else positions)
    return {finding.id: finding.explains for finding in top}


@pytest.mark.parametrize("plant", non_finite.SICK)
def test_nan_has_no_consequences_beside_it(plant: Plant, tmp_path: Path) -> None:
    case = plant(SIZES[0], tmp_path)
    found = lossscope.doctor(*case.sources, cache=False, **case.options)
    assert [finding.id for finding in found.findings if finding.is_alarm] == ["non-finite"]


def test_a_falling_scale_explains_that_nothing_is_learnt(tmp_path: Path) -> None:
    case = scale_falling.at_log_b(SIZES[0], tmp_path)
    (first, *others) = lossscope.doctor(cache=False, **case.options).findings
    assert first.id == "scale-falling" and "no-learning" in first.explains
    assert not any(finding.is_alarm for finding in others)


def test_a_collapse_explains_what_it_causes(tmp_path: Path) -> None:
    symptoms = ("no-learning", "hubness", "dimensional-collapse")
    found = fold_ids(*map(of_check, (*symptoms, "complete-collapse")))
    assert found.keys() == {"complete-collapse"} and set(found["complete-collapse"]) == set(symptoms)
    case = complete_collapse.with_objective(SIZES[0], tmp_path)
    examined = lossscope.doctor(*case.sources, cache=False, **case.options)
    assert examined.ids == ("complete-collapse",) and "no-learning" in examined.findings[0].explains


def test_causes_come_first_and_the_worst_before_them() -> None:
    positions = {"mild": 1, "bad": 2, "worse": 3}
    severities = {"mild": "note", "bad": "warning", "worse": "error"}
    found = [finding(id, severity=severity) for id, severity in severities.items()]
    assert list(fold_ids(*found, positions=positions)) == ["worse", "bad", "mild"]
    equal = [finding(id) for id in ("c", "a", "b")]
    assert list(fold_ids(*equal, positions={"a": 1, "b": 2, "c": 3})) == ["a", "b", "c"]


def test_a_cause_is_as_severe_as_its_worst_symptom() -> None:
    found = finding("cause", "symptom"), finding("symptom", severity="error"), finding("other", severity="error")
    assert fold_ids(*found, positions={"other": 1}) == {"other": (), "cause": ("symptom",)}
    assert list(fold_ids(*found, positions={"cause": 1, "other": 2})) == ["cause", "other"]


CHAIN = finding("a", "b"), finding("b", "c"), finding("c")


def test_what_a_symptom_explains_goes_to_the_top() -> None:
    assert fold_ids(*CHAIN, positions={"a": 3, "b": 2, "c": 1}) == {"a": ("c", "b")}


def test_what_a_symptom_explains_goes_to_the_top_whatever_the_places() -> None:
    assert fold_ids(*CHAIN, positions={"a": 1, "b": 2, "c": 3}) == {"a": ("b", "c")}


def test_a_circle_ends() -> None:
    assert fold_ids(finding("a", "b"), finding("b", "a"), positions={"a": 1, "b": 2}) == {"a": ("b",)}
    three = finding("a", "b"), finding("b", "c"), finding("c", "a")
    assert sum(1 + len(explained) for explained in fold_ids(*three, positions={}).values()) == 3
    assert fold_ids(finding("a", "a")) == {"a": ()}


IDS = st.sampled_from("abcdefgh")
FOUND = st.lists(
    st.builds(
        lambda id, explains, severity: finding(id, *explains, severity=severity),
        IDS, st.lists(IDS, unique=True, max_size=5), st.sampled_from(SEVERITIES),
    ),
    unique_by=lambda finding: finding.id,
)  # fmt: skip


@given(FOUND, st.dictionaries(IDS, st.integers(0, 9)))
def test_every_finding_is_once_on_top_or_under_one_top(found: list[Finding], positions: dict[str, int]) -> None:
    top, under = fold(found, positions)
    ids = [finding.id for finding in found]
    assert sorted([*(finding.id for finding in top), *(id for finding in top for id in finding.explains)]) == sorted(
        ids
    )
    assert {finding.id for finding in under} == {id for finding in top for id in finding.explains} and len(top) >= (
        len(found) > 0
    )
    by_id = {finding.id: finding for finding in found}
    worst = [max(SEVERITIES.index(by_id[id].severity) for id in (finding.id, *finding.explains)) for finding in top]
    assert all(severity >= next_severity for severity, next_severity in pairwise(worst))
    for folded_finding in under:
        assert any(folded_finding.id in cause.can_explain for cause in found), (
            "a cause must explain each finding under it"
        )


@given(FOUND, st.permutations("abcdefgh"))
def test_the_order_in_which_files_are_found_does_not_matter(found: list[Finding], order: list[str]) -> None:
    positions = {id: position for position, id in enumerate(order)}
    assert fold_ids(*found, positions=positions) == fold_ids(*reversed(found), positions=positions)


@given(st.lists(st.sampled_from(sorted(CHECKS)), unique=True))
def test_folding_holds_for_what_the_files_explain(ids: list[str]) -> None:
    found = fold_ids(*map(of_check, ids))
    assert sorted([*found, *(id for explained in found.values() for id in explained)]) == sorted(ids)


def undone(finding_: Finding, restored: float) -> Finding:
    """Return a finding with a cure that restored a share."""
    return replace(finding_, cure=Cure("undone", "recall@1 i2t", 0.0, restored, 1.0))


def test_what_goes_with_a_cure_is_its_symptom_and_what_stays_is_not() -> None:
    cause, symptom, other = finding("cause", "other"), finding("symptom"), finding("other")
    proofs = Proofs(
        (undone(cause, 0.9), symptom, other), {"cause": frozenset({"symptom"})}, {"cause": frozenset({"other"})}
    )
    top, _ = fold((cause, symptom, other), {"cause": 2, "other": 1}, proofs)
    assert {finding.id: finding.explains for finding in top} == {"cause": ("symptom",), "other": ()}


def test_of_two_causes_that_were_undone_the_one_that_restores_more_comes_first() -> None:
    little, much = undone(finding("little"), 0.3), undone(finding("much"), 0.8)
    proofs = Proofs((little, much), {"little": frozenset(), "much": frozenset()}, {})
    top, _ = fold((little, much), {"little": 1, "much": 2}, proofs)
    assert [finding.id for finding in top] == ["much", "little"]


def test_two_that_cure_each_other_are_once_on_top() -> None:
    first, second = undone(finding("first"), 0.8), undone(finding("second"), 0.8)
    proofs = Proofs((first, second), {"first": frozenset({"second"}), "second": frozenset({"first"})}, {})
    top, under = fold((first, second), {"first": 1, "second": 2}, proofs)
    assert [finding.id for finding in top] == ["first"] and [finding.id for finding in under] == ["second"]


def test_three_candidates_that_win_every_ranking_are_the_cause_and_one_direction_the_symptom(tmp_path: Path) -> None:
    rng = SIZES[0].rng
    first, second = aligned(SIZES[0], noise=1.0)
    centre = unit(rng.normal(size=(1, SIZES[0].d)))
    second[[5, 80, 300]] = unit(0.2 * second[[5, 80, 300]] + centre)
    (cause, *others) = lossscope.doctor(pairs(tmp_path, unit(first + 0.9 * centre), second), cache=False).findings
    assert (
        cause.id == "hubness" and "one-direction" in cause.explains and not any(finding.is_alarm for finding in others)
    )
    assert cause.cure is not None and cause.cure.before < 0.05 and cause.cure.restored > 0.8


def test_a_loss_of_one_direction_is_not_cured_by_taking_hubs_away(tmp_path: Path) -> None:
    case = one_direction.SICK[0](SIZES[0], tmp_path)
    assert lossscope.doctor(*case.sources, cache=False, **case.options).ids[:1] == ("one-direction",)
