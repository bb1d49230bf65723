"""Could the differences be chance? Paired tests over images and over seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lossscope.tables import comparison

from ..page import Section
from .base import ReportData

ORDER = 15
_TEXT = (
    "Each system against the best of its block. Over images: would other test images give another order? Over seeds: "
    "would another training? Both are corrected by Holm's method; with three seeds the second can show little."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return the table of tests, where there is more than one system."""
    if data.comparisons.empty:
        return []
    rows = data.comparisons
    rsum, recalls = rows[rows["statistic"] == "rsum"], rows[rows["statistic"] != "rsum"]
    shown = (comparison.build(rsum),) if len(rsum) else ()
    more = (replace(comparison.build(recalls), name="comparison_recalls"),) if len(recalls) else ()
    return [Section("Could it be chance", _TEXT, shown, more)]
