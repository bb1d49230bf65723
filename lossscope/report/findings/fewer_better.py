"""Do losses that count fewer samples retrieve better? The verdict of the chapter, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

from lossscope.stats.rank_association import association

from ..chapters._counts import counts_and_score
from ..chapters._verdicts import verdict_sentence
from ..chapters.base import ReportData
from ..chapters.count_recall import TITLE
from ..sections import Finding


def build(data: ReportData) -> Iterator[Finding]:
    """Yield the verdict, where there are counts of two losses."""
    of_settings = association(counts_and_score(data))
    if (of_settings["losses"] > 1).any():
        yield Finding(f"{TITLE} {verdict_sentence(of_settings, data.score.name)}", TITLE)
