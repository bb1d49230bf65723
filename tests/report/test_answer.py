"""Is the report of a study, of two runs and of one run a page with the answer first, and complete in itself?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lossscope.plots import style
from lossscope.report.build import gather
from lossscope.report.chapters.base import ReportData, build_sections
from lossscope.report.findings.answer import answer
from lossscope.report.results import Results
from lossscope.report.sections import Section
from lossscope.studies.report import diagrams, read_runs


@pytest.fixture(scope="module")
def page(tiny_report: Path) -> str:
    return tiny_report.read_text(encoding="utf-8")


def test_the_answer_of_a_study_has_every_question(report_data: ReportData, sections: list[Section]) -> None:
    found = answer(report_data, sections)
    texts = [finding.text for finding in found.findings if not finding.warning]
    assert len(texts) == 3 and " retrieves best on scenes: rsum " in texts[0]
    assert texts[1].startswith("Negatives of a query that carry the gradient, on average of ")
    assert texts[2].startswith("Fewer samples, better recall? Too few runs to tell")
    titles = {section.title for section in sections}
    assert {finding.chapter for finding in found.findings} - {""} <= titles
    assert found.figure == "count_recall"


def test_the_answer_of_one_run_claims_no_contest(results: Results, tiny_study: Path) -> None:
    run = tiny_study / "runs" / str(results.runs["run"].iloc[0]) / "run"
    alone = read_runs([run])
    data = gather(alone, diagrams(alone), resamples=99)
    with style.screen():
        found = answer(data, build_sections(data))
    assert "no other loss has numbers there" in found.findings[0].text
    assert not any("best" in finding.text and "retrieves" in finding.text for finding in found.findings)
    assert next(finding.text for finding in found.findings if finding.warning).startswith("One run: ")
    assert found.figure == "weight_mass-1"


def test_the_answer_comes_first_then_chapters_each_with_its_picture_first(page: str) -> None:
    assert page.index('id="answer"') < page.index('id="main-figure-count_recall"') < page.index('class="chapter"')
    chapters = re.split(r'<section class="chapter"', page)[1:]
    assert len(chapters) > 8
    for chapter in chapters:
        picture, table = re.search(r"<figure", chapter), chapter.find('<div class="table">')
        assert table < 0 or picture is None or picture.start() < table


def test_the_navigation_has_one_link_for_each_chapter_and_every_target_is_there(page: str) -> None:
    (navigation,) = re.findall(r"<nav.*?</nav>", page, re.DOTALL)
    links = re.findall(r'href="#([^"]+)"', navigation)
    assert links == re.findall(r'<h2 id="([^"]+)"', page) and len(links) == len(set(links))
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) and set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_a_note_stands_once(page: str) -> None:
    for chapter in re.split(r'<section class="chapter"', page)[1:]:
        notes = re.findall(r'<p class="note"[^>]*>(.*?)</p>', chapter, re.DOTALL)
        assert len(notes) == len(set(notes))
    numbers = re.findall(r'<p class="note" id="note-(\d+)"', page)
    assert numbers == [str(number + 1) for number in range(len(numbers))]


def test_the_page_says_tau_of_temperatures_alone(page: str) -> None:
    text = re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    for before in re.findall(r"(\S+\s+)tau between", text):
        assert before.strip() == "Kendall&#39;s"
    assert "temperature τ" in text and ">tau<" not in page
