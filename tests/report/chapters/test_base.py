"""Does every chapter show its part of one study, of one run alone, and of missing numbers?"""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest

from lossscope.errors import InputError
from lossscope.report.chapters import goal, which_samples
from lossscope.report.chapters.base import Diagrams, ReportData, build_sections, fold, named, panel, panel_names
from lossscope.report.interactive import HeatmapChart, SliderChart
from lossscope.report.results import Results
from lossscope.report.sections import Picture, Section
from lossscope.studies.report import diagrams
from lossscope.studies.study_file import ReportConfig
from lossscope.tables.base import Table

TITLES = [
    "How well they retrieve",
    "Could it be chance?",
    "Which samples carry the gradient",
    "Which samples",
    "Fewer samples, better recall?",
    "How many count at every eps",
    "Counts at other temperatures",
    "How the similarities moved",
    "Similarities and gradients of single queries",
    "How hard each loss pushes",
    "What is wrong with the runs?",
    "The runs",
    "How to cite",
]


def test_chapters_are_in_order(sections: list[Section]) -> None:
    assert [section.title for section in sections] == TITLES


def test_every_item_has_a_unique_name_and_a_caption(sections: list[Section]) -> None:
    items = [item for section in sections for item in section.all_items]
    names = [item.name for item in items]
    assert len(names) == len(set(names))
    assert all(item.caption.strip() for item in items) and all(section.text.strip() for section in sections)
    assert all(len(item.alt) > 20 for item in items if isinstance(item, Picture))


def test_every_interactive_chart_has_a_picture_beside_it(sections: list[Section]) -> None:
    for section in sections:
        if any(isinstance(item, SliderChart | HeatmapChart) for item in section.items):
            assert any(isinstance(item, Picture) for item in section.all_items), section.title


def test_a_run_alone_is_compared_with_nothing(one_run: ReportData) -> None:
    sections = build_sections(one_run)
    assert [section.title for section in sections] == [
        title for title in TITLES if title not in ("Could it be chance?", "Fewer samples, better recall?")
    ]
    tables = [item for section in sections for item in section.all_items if isinstance(item, Table)]
    assert not any(cell.best or cell.second for table in tables for row in table.rows for cell in row)


def test_a_study_of_retrieval_alone_still_makes_a_page(report_data: ReportData) -> None:
    rows = report_data.results.rows[report_data.results.rows["probe"] == "recall"]
    kinds = ("curves", "what_if", "per_query", "hardest_negative_counts", "heaviest_negatives")
    empty = {kind: getattr(report_data.results, kind)[:0] for kind in kinds}
    bare = replace(report_data, results=replace(report_data.results, rows=rows, **empty), diagrams=Diagrams())
    titles = [section.title for section in build_sections(bare)]
    assert titles == [TITLES[0], TITLES[1], "How the similarities moved", "What is wrong with the runs?", *TITLES[-2:]]


def test_numbers_that_are_nan_are_dashes_everywhere(report_data: ReportData) -> None:
    rows = report_data.results.rows.assign(mean=math.nan, std=math.nan)
    sections = build_sections(
        replace(report_data, results=replace(report_data.results, rows=rows), comparisons=pd.DataFrame(), tests=None)
    )
    tables = {item.name: item for section in sections for item in section.all_items if isinstance(item, Table)}
    assert "retrieval" in tables and "runs" in tables
    of_rows = {name for name in tables if not name.startswith("which_samples")}
    for name in of_rows - {"count_recall_association", "training_end"}:  # made of epochs, not of rows
        numbers = [cell for row in tables[name].rows for cell in row if cell.text is None and cell.digits]
        assert all(cell.missing and cell.plain() == "–" for cell in numbers), name
        assert "nan" not in tables[name].to_html() + tables[name].to_latex() + tables[name].to_csv()


def test_the_queries_with_the_most_gradient_are_in_a_table_of_each_system(report_data: ReportData) -> None:
    (section,) = which_samples.build(report_data)
    rows = report_data.results.heaviest_negatives
    assert len(section.tables) == len(rows.groupby(["data", "encoder", "objective_label"], observed=True))
    first = rows[rows["run"] == rows["run"].iloc[0]]
    listed = first[first["rank"] <= 3]
    cells = [[cell.plain() for cell in row] for row in section.tables[0].rows]
    assert [row[1] for row in cells] == listed["list"].tolist()
    for row, expected in zip(cells, listed.to_dict("records"), strict=True):
        assert row[2].startswith(expected["query_id"])
        assert row[3] == f"{expected['weight']:.3f}"
        assert expected["rank"] == 0 or row[5].startswith(f"{expected['candidate_id']}")
    assert any(str(text) in row[5] for row, text in zip(cells, listed["candidate_text"], strict=True) if text)
    before = replace(report_data.results, heaviest_negatives=pd.DataFrame())  # of an earlier evaluation
    assert which_samples.build(replace(report_data, results=before)) == []


def test_the_pictures_of_a_run_stand_beside_its_items_and_come_from_nowhere_else(report_data: ReportData) -> None:
    rows = report_data.results.heaviest_negatives
    query = rows.iloc[0]
    pictures = pd.DataFrame(
        {"run": [query["run"]], "id": [query["query_id"]], "picture": ["data:image/webp;base64,AA=="]}
    )
    shown = replace(report_data, results=replace(report_data.results, pictures=pictures))
    (section,) = which_samples.build(shown)
    assert section.tables[0].rows[0][2].picture == "data:image/webp;base64,AA=="
    assert '<img class="item" src="data:image/webp;base64,AA==" alt="">' in section.tables[0].to_html().replace(
        "/>", ">"
    )
    assert sum(bool(cell.picture) for table in section.tables[1:] for row in table.rows for cell in row) == 0
    elsewhere = replace(shown.results, pictures=pictures.assign(picture="https://example.org/a.webp"))
    with pytest.raises(InputError, match=r"pictures of .* must be data:image/webp;base64; got 'https"):
        which_samples.build(replace(shown, results=elsewhere))


def test_the_figures_of_goal_are_a_chapter_where_a_study_wants_them(results: Results) -> None:
    drawn = diagrams(results, [ReportConfig(figures=("goal",))])
    (section,) = goal.build(ReportData(results, diagrams=drawn))
    assert [item.name for item in section.items] == ["triplet_weights", "pair_weights", "xuan2023_1"]
    assert all(isinstance(item, Picture) and len(item.alt) > 20 for item in section.items[:2])
    assert goal.build(ReportData(results)) == []


def test_pictures_beyond_the_first_are_folded() -> None:
    pictures = [Picture(str(number), "c", "a", None) for number in range(3)]
    table = Table("t", "c", (("", "a"),), ())
    assert fold([*pictures, table]) == ((pictures[0], pictures[1], table), (pictures[2],))
    assert fold([table]) == ((table,), ())
    assert fold([*pictures, table], shown=0) == ((table,), tuple(pictures))


def test_a_panel_is_named_by_what_differs() -> None:
    def names(rows: list[tuple[str, str]]) -> list[str]:
        return panel(pd.DataFrame(rows, columns=["encoder", "data"])).tolist()

    assert names([("E", "d"), ("F", "d")]) == ["E", "F"]
    assert names([("E", "d"), ("E", "e")]) == ["d", "e"]
    assert names([("E", "d"), ("F", "e")]) == ["E, d", "F, e"]


def test_a_part_of_the_runs_has_the_panel_names_of_all() -> None:
    runs = pd.DataFrame({"encoder": ["E", "E"], "data": ["d", "e"]})
    assert panel_names(runs) == {("d", "E"): "d", ("e", "E"): "e"}


def test_a_caption_names_its_panel_where_there_are_several() -> None:
    assert named("E", pd.DataFrame({"panel": ["E", "F"]}), "Text.") == "E. Text."
    assert named("E", pd.DataFrame({"panel": ["E", "E"]}), "Text.") == "Text."


def test_the_threshold_is_that_of_most_counts(report_data: ReportData) -> None:
    assert report_data.eps == 0.01
    rows = report_data.results.rows.assign(eps=math.nan)
    assert replace(report_data, results=replace(report_data.results, rows=rows)).eps == 0.01  # in no row: the default
    rows = report_data.results.rows.assign(eps=0.2)
    assert replace(report_data, results=replace(report_data.results, rows=rows)).eps == 0.2


def test_papers_are_those_of_what_the_page_has(sections: list[Section]) -> None:
    (section,) = (candidate for candidate in sections if candidate.title == "How to cite")
    (table,) = section.tables
    lines = {str(row[1].text).partition(",")[0]: str(row[0].text) for row in table.rows}
    assert "cocos C_neg" in lines["Bleeker"] and "ntxent" in lines["Bleeker"]
    assert len(lines) == len(table.rows) and all(str(row[1].text).endswith(".") for row in table.rows)
