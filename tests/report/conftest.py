"""Make reports of a finished study of two losses and two seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from lossscope.plots import style
from lossscope.report.build import gather
from lossscope.report.chapters.base import ReportData, build_sections
from lossscope.report.results import Results
from lossscope.report.sections import Section
from lossscope.studies.report import diagrams, read_runs


@pytest.fixture(scope="session")
def results(tiny_study: Path) -> Results:
    """Return the results of the study. Do not write to its frames."""
    return read_runs([tiny_study])


@pytest.fixture(scope="session")
def report_data(results: Results) -> ReportData:
    """Return the study with comparisons and weight fields."""
    return gather(results, diagrams(results), resamples=99)


@pytest.fixture(scope="session")
def sections(report_data: ReportData) -> list[Section]:
    """Return every chapter of the study."""
    with style.screen():
        return build_sections(report_data)
