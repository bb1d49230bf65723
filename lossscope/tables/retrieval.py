"""How well does each model retrieve? Recall, average precision and ranks (COCOS paper, Table 1)."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from . import _settings, _summary
from ._summary import Column
from .base import Table

_NOTES = (
    "R@k in per cent: i2t, any caption of the image among the first k; t2i, the image among the first k. rsum is the "
    "sum of the six recalls, in points. medr: median rank, from 1, lower is better, rounded down but for MMT and CE, "
    "as their authors do. mAP@5 in [0, 1] with divisor min(5, number of relevant); mAP@5_hits divides by the hits "
    "among the first 5. `lossscope eval --format csv` also gives meanr, the mean rank, from 1, lower is better, and "
    "MRR, the mean reciprocal rank.",
)


def build(frame: pd.DataFrame, by: Sequence[str] = ("source", "objective")) -> Table:
    """Return one row per source and objective; seeds become mean ± deviation.

    Args:
        frame: summary rows with those of the probe `recall`.
        by: columns whose values make a row; ("objective",) averages over sources too, for runs that differ in their
            seed only.

    Raises:
        InputError: columns, or rows of the probe, are missing.
    """
    rows = _summary.select(_summary.whole_splits(frame), "recall", "retrieval")
    columns = [column for direction in ("i2t", "t2i") for column in _columns(direction)]
    columns.append(Column("both", ("rsum",), digits=1, better="higher", grouped=False))
    caption = "Retrieval in both directions: " + _settings.settings(rows, "queries", by)
    return _summary.build_table("retrieval", caption, _summary.group_rows(rows, by), columns, _NOTES)


def _columns(direction: str) -> list[Column]:
    recalls = [Column(direction, (f"R@{k}",), digits=1, better="higher") for k in (1, 5, 10)]
    means = [Column(direction, (name,), digits=3, better="higher") for name in ("mAP@5", "mAP@5_hits")]
    return [*recalls, *means, Column(direction, ("medr",), digits=1, better="lower")]
