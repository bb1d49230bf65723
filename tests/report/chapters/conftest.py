"""Data of chapters beside the study: one run alone, and the study with other numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from lossscope.plots import style
from lossscope.report.build import gather
from lossscope.report.chapters.base import ReportData
from lossscope.report.results import FRAMES, Results
from lossscope.studies.report import diagrams

Change = Callable[[pd.DataFrame], pd.DataFrame]
WithRows = Callable[[Change], ReportData]


@pytest.fixture(scope="session")
def one_run(results: Results) -> ReportData:
    """Return the data of one run alone."""
    name = results.runs["run"].iloc[0]
    frames: dict[str, Any] = {kind: _of_run(getattr(results, kind), name) for kind in (*FRAMES, "epochs", "runs")}
    alone = replace(results, **frames, recipes={name: results.recipes[name]})
    return gather(alone, diagrams(alone), resamples=99)


def _of_run(frame: pd.DataFrame, run: str) -> pd.DataFrame:
    rows: pd.DataFrame = frame[frame["run"] == run]
    return rows


@pytest.fixture
def with_rows(report_data: ReportData) -> WithRows:
    """Return the study with other summary rows."""

    def replace_rows(change: Change) -> ReportData:
        results = report_data.results
        return replace(report_data, results=replace(results, rows=change(results.rows.copy())))

    return replace_rows


@pytest.fixture(autouse=True)
def _screen_style() -> Iterator[None]:
    with style.screen():
        yield
