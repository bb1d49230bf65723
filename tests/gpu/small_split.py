"""Make a split of random vectors, small enough for every engine, and compare two summaries of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import torch

from lossscope.core.embedded import SplitEmbeddings
from lossscope.core.similarity import normalise
from lossscope.registry import build

ENDS = ["low", "high", "level", "method"]


def small_split(
    images: int = 24, captions: int = 3, width: int = 8, dtype: torch.dtype = torch.float64
) -> SplitEmbeddings:
    """Return unit vectors, captions near their images."""
    random = torch.Generator().manual_seed(0)
    first = normalise(torch.randn(images, width, generator=random, dtype=torch.float64))
    owner = np.repeat(np.arange(images), captions)
    noise = torch.randn(len(owner), width, generator=random, dtype=torch.float64)
    second = normalise(first[owner] + 0.5 * noise)
    ids = [[str(row) for row in range(n)] for n in (images, len(owner))]
    return SplitEmbeddings("source", first.to(dtype), second.to(dtype), None, owner, *ids, "f" * 64, split="test")


def assert_near(ours: pd.DataFrame, expected: pd.DataFrame, tolerance: float) -> None:
    """Assert that texts are equal, and numbers within a relative or absolute tolerance.

    Not the ends of intervals which rounding decides: of a number that is 0 but for rounding, and of a quantile, which
    ask whether the query that is the quantile is above it without each candidate.
    """
    assert list(ours.columns) == list(expected.columns)
    if "low" in expected:
        rounded = (expected["mean"].abs() < 1e-12) | expected["statistic"].isin(_quantiles(expected))
        ours, expected = (frame.assign(**frame[ENDS].mask(rounded)) for frame in (ours, expected))
    numbers = expected.select_dtypes("number").columns
    texts = expected.columns.difference(numbers)
    pd.testing.assert_frame_equal(ours[texts], expected[texts])
    np.testing.assert_allclose(ours[numbers], expected[numbers], rtol=tolerance, atol=tolerance)


def _quantiles(summary: pd.DataFrame) -> set[str]:
    """Return the names of a summary's statistics that are quantiles over queries."""
    probes, objective = (build("probes", spec) for spec in summary["probe"].unique()), build("objectives", "triplet")
    statistics = (statistic for probe in probes for statistic in probe.statistics(objective))
    return {statistic.name for statistic in statistics if statistic.reducer in ("q10", "q50", "q90")}
