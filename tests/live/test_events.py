"""When do findings begin and end? After two examinations in a row; each id has at most one open event."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lossscope.doctor.types import Finding
from lossscope.live.events import OpenFindings

IDS = ("no-learning", "frozen", "non-finite")
AT_ONCE = frozenset({"non-finite"})


def finding(id: str) -> Finding:
    return Finding(id, "error", "title", "why", (), (), "")


def test_a_finding_begins_when_it_is_found_twice_and_ends_when_it_is_twice_not() -> None:
    findings, seen = OpenFindings(), []
    for step, found in enumerate([1, 0, 1, 1, 1, 0, 1, 0, 0, 0]):
        now = {"frozen": finding("frozen")} if found else {}
        seen += [(event.step, event.kind) for event in findings.update(step, now, {"frozen"}, AT_ONCE)]
    assert seen == [(3, "begins"), (8, "ends")]


def test_what_was_not_looked_for_stays_as_it_is() -> None:
    findings = OpenFindings()
    findings.update(0, {"non-finite": finding("non-finite")}, {"non-finite"}, AT_ONCE)
    for step in range(1, 9):
        assert not findings.update(step, {}, {"frozen"}, AT_ONCE)
    assert "non-finite" in findings


def test_findings_that_are_taken_over_end_where_they_are_not_found() -> None:
    before, after = OpenFindings(), OpenFindings()
    before.update(0, {"non-finite": finding("non-finite")}, {"non-finite"}, AT_ONCE)
    after.take_over(before)
    assert not before.ids and after.ids == ("non-finite",)
    events = [after.update(step, {}, {"non-finite"}, AT_ONCE) for step in (1, 2)]
    assert [[event.kind for event in update] for update in events] == [[], ["ends"]]


@given(st.lists(st.tuples(st.sets(st.sampled_from(IDS)), st.sets(st.sampled_from(IDS)))))
def test_events_of_an_id_alternate_and_agree_with_what_is_open(looks: list[tuple[set[str], set[str]]]) -> None:
    findings, is_open, last = OpenFindings(), dict.fromkeys(IDS, False), dict.fromkeys(IDS, 0)
    for step, (found, checked) in enumerate(looks):
        for event in findings.update(step, {id: finding(id) for id in found}, checked | found, AT_ONCE):
            assert event.kind == ("ends" if is_open[event.id] else "begins")
            assert event.kind == "ends" or event.id in found
            is_open[event.id] = event.kind == "begins"
        for id in checked - found:
            last[id] += 1
        for id in found:
            last[id] = 0
        assert set(findings.ids) == {id for id in IDS if is_open[id]}
        assert not any(is_open[id] and last[id] >= 2 for id in IDS)
