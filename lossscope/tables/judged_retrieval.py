"""How well does each model retrieve with the data's own positives, and with positives that people judged besides?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.io.frames import require_columns

from . import _settings, _summary
from ._summary import Column
from .base import Table

_POSITIVES = {"recall": "the data's own", "recall+judgements": "own and judged"}  # probe -> kind of its positives
_NOTE = (
    "Own and judged: positives of the data, and those that people judged to match; the candidates are the same. "
    "R@k in per cent: queries with any positive among the first k. MAP@R and R-precision, in [0, 1]: over the first R, "
    "with R the number of positives. Judgements raise R, so these two may fall. rsum is the sum of the six recalls, in "
    "points."
)


def build(frame: pd.DataFrame, by: Sequence[str] = ("source", "objective")) -> Table:
    """Return two rows per source and objective, one for each kind of positives; no number is marked as the best.

    Args:
        frame: summary rows, among them rows of the probes `recall` and `recall+judgements`.
        by: columns that make a row.

    Raises:
        InputError: columns, or rows of the probes, are missing.
    """
    require_columns(frame, _summary.COLUMNS, "summary rows")
    whole = _summary.whole_splits(frame)
    judged = whole[whole["probe"] == "recall+judgements"]
    if judged.empty:
        raise _summary.no_rows("judged_retrieval", "recall+judgements", frame)
    recalls = _summary.select(whole, "recall", "judged_retrieval")
    rows = _summary.with_weight_unit(pd.concat([recalls, judged]).drop_duplicates())
    rows = rows.assign(positives=rows["probe"].map(_POSITIVES))
    labels = [label for label in rows["direction"].unique() if label != "both"]
    columns = [column for label in labels for column in _columns(label, rows)]
    columns.append(Column("both", ("rsum",), digits=1, grouped=False))
    keys = (*by, "positives")
    caption = "Retrieval with judgements: " + _settings.settings(rows, "queries", keys)
    lines = _summary.group_rows(rows, keys)
    return _summary.build_table("judged_retrieval", caption, lines, columns, [_NOTE])


def _columns(direction: str, rows: pd.DataFrame) -> list[Column]:
    """Return R@k of each k, MAP@R and R-precision of a direction."""
    names = list(rows.loc[rows["direction"] == direction, "statistic"].unique())
    recalls = [Column(direction, (name,), digits=1) for name in names if str(name).startswith("R@")]
    return [*recalls, *(Column(direction, (name,), digits=3) for name in ("MAP@R", "R-precision") if name in names)]
