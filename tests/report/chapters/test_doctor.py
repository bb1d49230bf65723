"""Does the chapter of the doctor list its findings in every run, and nothing where no run was examined?"""

from __future__ import annotations

from lossscope.report.chapters import doctor
from lossscope.tables.base import Table
from tests.report.findings.test_ill_runs import examined_runs


def test_nothing_is_said_of_runs_that_were_not_examined() -> None:
    assert doctor.build(examined_runs("")) == []


def test_runs_without_a_finding_are_said_to_be_well() -> None:
    (section,) = doctor.build(examined_runs("abc"))
    assert (
        section.text == "No problem was found in 3 runs (recall@1 20.0% to 40.0%)."
        and not section.all_items
        and not section.look
    )


def test_every_finding_is_a_row_and_an_alarm_is_to_be_looked_at() -> None:
    rows = ("a", "error", "no-learning"), ("b", "note", "cone")
    (section,) = doctor.build(examined_runs("abc", *rows))
    (table,) = section.items
    assert isinstance(table, Table) and section.look == "A run is ill."
    assert [tuple(cell.text for cell in line[:4]) for line in table.rows] == [
        ("a", "error", "no-learning", "it has no-learning"),
        ("b", "note", "cone", "it has cone"),
    ]
    assert [name for _, name in table.columns] == ["run", "severity", "finding", "what", "explains", "do", "command"]


def test_notes_alone_are_not_to_be_looked_at() -> None:
    (section,) = doctor.build(examined_runs("a", ("a", "note", "cone")))
    assert section.look == "" and section.items
