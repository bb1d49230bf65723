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


def build(material: ReportData) -> Sequence[Section]:
    """The table of tests, where there is more than one system."""
    if material.comparisons.empty:
        return []
    frame = material.comparisons
    of_all, of_each = frame[frame["statistic"] == "rsum"], frame[frame["statistic"] != "rsum"]
    shown, more = (tuple(comparison.build(rows) for rows in (one,) if len(one)) for one in (of_all, of_each))
    return [
        Section("Could it be chance", _TEXT, shown, tuple(replace(table, name="comparison_recalls") for table in more))
    ]
