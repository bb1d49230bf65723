"""Does every chapter say its part of one study, of one run alone, and of numbers that are not there?"""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from lossscope.report.chapters.base import ReportData, build_sections, folded, panel
from lossscope.report.interactive import HeatmapChart, SliderChart
from lossscope.report.page import Picture, Section
from lossscope.tables.base import Table

TITLES = [
    "How well they retrieve",
    "Could it be chance",
    "Which samples carry the gradient",
    "Fewer samples, better recall?",
    "How many count at every eps",
    "If the temperature were another",
    "How the similarities moved",
    "Similarities and gradients of single queries",
    "How hard each loss pushes",
    "The runs",
]


@pytest.fixture(scope="module")
def sections(told: ReportData) -> list[Section]:
    return build_sections(told)


@pytest.mark.slow
def test_chapters_come_in_their_order(sections: list[Section]) -> None:
    assert [section.title for section in sections] == TITLES


def test_every_item_has_a_name_of_its_own_and_words(sections: list[Section]) -> None:
    items = [item for section in sections for item in section.everything]
    names = [item.name for item in items]
    assert len(names) == len(set(names))
    assert all(item.caption.strip() for item in items) and all(section.text.strip() for section in sections)
    assert all(len(item.alt) > 20 for item in items if isinstance(item, Picture))


def test_what_moves_has_a_picture_of_the_same_beside_it(sections: list[Section]) -> None:
    for section in sections:
        if any(isinstance(item, SliderChart | HeatmapChart) for item in section.items):
            assert any(isinstance(item, Picture) for item in section.everything), section.title


@pytest.mark.slow
def test_a_run_alone_is_compared_with_nothing(one: ReportData) -> None:
    found = build_sections(one)
    assert [section.title for section in found] == [
        title for title in TITLES if title not in ("Could it be chance", "Fewer samples, better recall?")
    ]
    tables = [item for section in found for item in section.everything if isinstance(item, Table)]
    assert not any(cell.best or cell.second for table in tables for row in table.rows for cell in row)


def test_a_study_of_retrieval_alone_still_makes_a_page(told: ReportData) -> None:
    rows = told.results.rows[told.results.rows["probe"] == "recall"]
    nothing = {kind: getattr(told.results, kind)[:0] for kind in ("curves", "what_if", "singles", "chosen")}
    bare = replace(told, results=replace(told.results, rows=rows, **nothing), fields=pd.DataFrame())
    titles = [section.title for section in build_sections(bare)]
    assert titles == [TITLES[0], TITLES[1], "How the similarities moved", "The runs"]


@pytest.mark.slow
def test_numbers_that_are_nan_are_dashes_everywhere(told: ReportData) -> None:
    gone = told.results.rows.assign(mean=math.nan, std=math.nan)
    found = build_sections(
        replace(told, results=replace(told.results, rows=gone), comparisons=pd.DataFrame(), tests=None)
    )
    tables = {item.name: item for section in found for item in section.everything if isinstance(item, Table)}
    assert "retrieval" in tables and "runs" in tables
    for name in set(tables) - {"count_recall_association"}:
        numbers = [cell for row in tables[name].rows for cell in row if cell.text is None and cell.digits]
        assert all(cell.missing and cell.plain() == "–" for cell in numbers), name
        assert "nan" not in tables[name].to_html() + tables[name].to_latex() + tables[name].to_csv()


def test_pictures_beyond_the_first_are_folded() -> None:
    pictures = [Picture(str(place), "c", "a", None) for place in range(3)]
    table = Table("t", "c", (("", "a"),), ())
    assert folded([*pictures, table]) == ((pictures[0], pictures[1], table), (pictures[2],))
    assert folded([table]) == ((table,), ())


def test_a_panel_is_named_by_what_differs() -> None:
    def named(rows: list[tuple[str, str]]) -> list[str]:
        return panel(pd.DataFrame(rows, columns=["encoder", "data"])).tolist()

    assert named([("E", "d"), ("F", "d")]) == ["E", "F"]
    assert named([("E", "d"), ("E", "e")]) == ["d", "e"]
    assert named([("E", "d"), ("F", "e")]) == ["E, d", "F, e"]


def test_the_threshold_is_that_of_most_counts(told: ReportData) -> None:
    assert told.eps == 0.01
    rows = told.results.rows.assign(eps=math.nan)
    assert replace(told, results=replace(told.results, rows=rows)).eps == 0.01  # said nowhere: the usual one
    rows = told.results.rows.assign(eps=0.2)
    assert replace(told, results=replace(told.results, rows=rows)).eps == 0.2
