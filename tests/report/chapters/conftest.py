"""What chapters draw from: a finished study of two losses and two seeds, and the same with other numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lossscope.plots import style
from lossscope.report.chapters.base import ReportData
from lossscope.report.results import Results, read_results
from lossscope.studies.report import material

FRAMES = ("rows", "queries", "curves", "what_if", "singles", "chosen", "epochs", "cells")
Changed = Callable[[Callable[[pd.DataFrame], pd.DataFrame]], ReportData]


@pytest.fixture(scope="session")
def results(tiny_study: Path) -> Results:
    """What the study says; frames are not to be written to."""
    return read_results([tiny_study])


@pytest.fixture(scope="session")
def told(results: Results) -> ReportData:
    """With comparisons and fields."""
    return material(results, resamples=99)


@pytest.fixture(scope="session")
def one(results: Results) -> ReportData:
    """One run alone."""
    name = results.cells["run"].iloc[0]
    kept: dict[str, Any] = {kind: _of(getattr(results, kind), name) for kind in FRAMES}
    return material(replace(results, **kept), resamples=99)


def _of(frame: pd.DataFrame, run: str) -> pd.DataFrame:
    found: pd.DataFrame = frame[frame["run"] == run]
    return found


@pytest.fixture
def changed(told: ReportData) -> Changed:
    """The material with other rows."""

    def made(change: Callable[[pd.DataFrame], pd.DataFrame]) -> ReportData:
        return replace(told, results=replace(told.results, rows=change(told.results.rows.copy())))

    return made


@pytest.fixture(autouse=True)
def _on_screen() -> Iterator[None]:
    with style.screen():
        yield
