"""Findings of every question, and the figure that stands beside them."""

from __future__ import annotations

from collections.abc import Sequence

from ..bars import BarChart
from ..chapters.base import ReportData
from ..sections import Answer, Finding, Picture, Section
from . import best_loss, doubts, fewer_better, gradient_share
from .base import floor_note
from .headline import headline
from .ill_runs import ill_runs

_QUESTIONS = (best_loss, gradient_share, fewer_better, doubts)
_FIGURES = ("count_recall", "retrieval_bars", "weight_mass-1", "training-1")  # the first of a report stands beside


def answer(data: ReportData, sections: Sequence[Section]) -> Answer:
    """Return the findings, the main figure, and what p at its floor means where a finding has one.

    Runs that fail on purpose stand apart.

    Args:
        data: of the chapters.
        sections: what the chapters have; the main figure is one of theirs.
    """
    runs = data.results.runs
    planted = runs["data"].isin(data.results.planted)
    meant = data.of_runs(set(runs.loc[~planted, "run"]))
    findings = [finding for question in _QUESTIONS for finding in question.build(meant)]
    figure, notes = _figure(meant, sections), _notes(meant, findings)
    fails = _planted(data.of_runs(set(runs.loc[planted, "run"]))) if planted.any() else ()
    return Answer(tuple(findings), figure, notes, tuple(ill_runs(meant)), headline(meant), fails)


def _planted(data: ReportData) -> tuple[Finding, ...]:
    """Return what the runs show that fail on purpose: how well they retrieve, and what the doctor says."""
    return (*best_loss.build(data), *ill_runs(data))


def _figure(data: ReportData, sections: Sequence[Section]) -> str:
    names = [item.name for section in sections for item in section.all_items if isinstance(item, Picture | BarChart)]
    several = data.results.runs["objective_label"].nunique() > 1
    wanted = _FIGURES if several else _FIGURES[2:]
    return next((name for name in wanted if name in names), "")


def _notes(data: ReportData, findings: Sequence[Finding]) -> tuple[str, ...]:
    if not any("p ≤ " in finding.text for finding in findings) or data.comparisons.empty:
        return ()
    return floor_note(data.comparisons[data.comparisons["statistic"] == data.score.name])
