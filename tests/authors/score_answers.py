"""Are scores and recalls of an opened file the known answers? For SCAN, BFAN, SGRAF and VSE-infinity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from lossscope.core.embedded import SplitEmbeddings
from tests.authors.answers import TOLERANCE, Answers, difference, recalls, similarities


def require_scores(answers: Answers, name: str, embedded: SplitEmbeddings) -> None:
    """Compare scores of the captions that are kept, and all recalls, whole and over five folds."""
    S = similarities(embedded)[:, answers.content["columns"]]
    assert difference(S, answers.array(name)) <= TOLERANCE
    require_recalls(answers.content["cases"][name], [embedded])


def require_recalls(known: Mapping[str, Any], sources: Sequence[SplitEmbeddings]) -> None:
    """Compare R@1, R@5, R@10, median and mean rank of one source or of an ensemble."""
    for folds, metrics in ((1, "metrics"), (5, "fold_metrics")):
        ours = recalls(sources, folds)
        for direction, values in known[metrics].items():
            assert ours[direction] == pytest.approx(values), (metrics, direction)
