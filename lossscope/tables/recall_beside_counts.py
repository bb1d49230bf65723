"""Do objectives that count fewer negatives retrieve better?

Recall beside the counts per query, one row each.
"""

from __future__ import annotations

import pandas as pd

from . import _summary
from ._summary import Column, Row
from .base import Table

_NOTES = (
    "count: negatives above eps per query, mean over all queries (C_q_all, or C_neg where the objective has "
    "it); "
    "N_eff: effective number of negatives, from the weights alone, without a threshold. R@1 in per cent, "
    "rsum in points.",
)
_TRAINED = "Recall belongs to the source; it is repeated where one source is counted with several objectives."


def build(frame: pd.DataFrame) -> Table:
    """Summary rows of the probes `recall` and `cocos` -> rsum, R@1, count and N_eff per source and "
    "objective."""
    recall = _summary.select(_summary.whole_splits(frame), "recall", "recall_beside_counts")
    counts = _summary.select(frame, "cocos", "recall_beside_counts")
    rows = [Row(row.key, pd.concat([row.rows, _recall_of(row, recall)])) for row in _summary.grouped(counts)]
    columns = [Column("both", ("rsum",), digits=1, better="higher")]
    columns += [column for side in ("i2t", "t2i") for column in _side(side)]
    caption = "Recall beside the negatives that are counted; counts: " + _summary.settings(counts, "batches")
    repeated = not set(map(_pair, _summary.grouped(counts))) <= set(map(_pair, _summary.grouped(recall)))
    notes = (*_NOTES, *((_TRAINED,) if repeated else ()))
    return _summary.table("recall_beside_counts", caption, rows, columns, notes)


def _side(direction: str) -> list[Column]:
    return [
        Column(direction, ("R@1",), digits=1, better="higher"),
        Column(direction, ("C_q_all", "C_neg"), heading="count"),
        Column(direction, ("N_eff",)),
    ]


def _recall_of(row: Row, recall: pd.DataFrame) -> pd.DataFrame:
    """The recall of the same source and objective; else that of the source, when there is just one."""
    source = recall[recall["source"].map(_summary.shown) == row.key["source"]]
    same = source[source["objective"].map(_summary.shown) == row.key["objective"]]
    if same.empty and source["objective"].map(_summary.shown).unique().size == 1:
        return source
    return same


def _pair(row: Row) -> tuple[str, str]:
    return row.key["source"], row.key["objective"]
