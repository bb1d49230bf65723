"""How well does each model retrieve? Recall, average precision, nDCG and ranks (COCOS paper, Table 1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd

from lossscope.io.frames import in_folds

from . import _settings, _summary
from ._summary import Column
from .base import Table

_PUBLISHED = (*(f"R@{k}" for k in (1, 5, 10)), "mAP@5", "mAP@5_hits", "medr")  # of images and captions
_RANKS_FROM = 10  # smallest k of a column, if there is such a k
_IMAGES = (
    "R@k in per cent: i2t, any caption of the image among the first k; t2i, the image among the first k. rsum is the "
    "sum of the six recalls, in points. medr: median rank, from 1, lower is better, rounded down except for MMT and CE "
    "as their authors do. mAP@5 in [0, 1] with divisor min(5, number of relevant); mAP@5_hits divides by the hits "
    "among the first 5. `lossscope eval --format csv` also gives meanr, the mean rank, from 1, lower is better, and "
    "MRR, the mean reciprocal rank."
)
_SPEARMAN = "spearman: Spearman's correlation of the similarities and the scores of all scored pairs."
_MEASURES = (
    "nDCG@k: binary gains, discount log2(rank + 1), ideal over min(k, R), with R the number of positives. MRR@k: 1 / "
    "rank of the first positive. recall@k: share of the positives among the first k, in per cent. R@k: queries with "
    "any positive among the first k, in per cent. MAP@R and R-precision: over the first R. All others are in [0, 1]. "
    "Ties follow the order of rows, but R@k and ranks count only candidates strictly above. `lossscope eval --format "
    "csv` gives every k and further statistics."
)
_RUNS = (
    "nDCG@k: gains are the grades of the judgements, discount log2(rank + 1), ideal of all judged documents. MRR@k: 1 "
    "/ rank of the first positive. recall@k: share of the positives among the first k, R@k: queries with any, both in "
    "per cent. MAP: over the whole ranking. R-precision: over the first R. Equal scores rank by descending document "
    "id, as in trec_eval."
)


def build(frame: pd.DataFrame, by: Sequence[str] = ("source", "objective")) -> Table:
    """Return a row per source and objective; seeds become mean ± deviation.

    Args:
        frame: summary rows, among them rows of the probe `recall`.
        by: columns that make a row; ("objective",) averages over sources too, for runs that differ only in their seed.

    Raises:
        InputError: columns, or rows of the probe, are missing.
    """
    rows = _summary.select(_summary.whole_splits(frame), "recall", "retrieval")
    names = {
        str(direction): set(of_direction["statistic"])
        for direction, of_direction in rows.groupby("direction", sort=False, observed=True)
    }
    labels = sorted(names.keys() - {"both"}, key=list(names).index)
    columns = [column for direction in labels for column in _columns(direction, names[direction])]
    columns.append(Column("both", ("rsum",), digits=1, better="higher", grouped=False))
    columns.append(Column("both", ("spearman",), digits=3, better="higher", grouped=False))
    notes = [_SPEARMAN] if "spearman" in names.get("both", ()) else []
    notes += [_IMAGES] if "i2t" in names else []
    notes += [_MEASURES] if any("MAP@R" in statistics for statistics in names.values()) else []
    notes += [_RUNS] if any("MAP" in statistics for statistics in names.values()) else []
    where = "Retrieval: " if len(labels) == 1 else "Retrieval in both directions: "
    caption = where + _settings.settings(rows, "folds" if in_folds(rows).any() else "queries", by)
    return _summary.build_table("retrieval", caption, _summary.group_rows(rows, by), columns, notes)


def _columns(direction: str, statistics: Iterable[str]) -> list[Column]:
    """Return the columns of a direction: those in papers on images and captions, then further measures."""
    published = _PUBLISHED if direction in ("i2t", "t2i") else ()
    names = [*published, *(name for name in _measures(statistics) if name not in published)]
    return [_column(direction, name) for name in names]


def _measures(statistics: Iterable[str]) -> list[str]:
    """Return nDCG@k, MRR@k and recall@k of every k from 10, or the largest; R@1, MAP or MAP@R, R-precision and medr."""
    known = set(statistics)
    if not {"MAP@R", "MAP"} & known:
        return []
    ks = sorted(int(name.removeprefix("recall@")) for name in known if name.startswith("recall@"))
    shown = [k for k in ks if k >= _RANKS_FROM] or ks[-1:]
    names = [f"{name}@{k}" for name in ("nDCG", "MRR", "recall") for k in shown]
    return [name for name in (*names, f"R@{ks[0]}", "MAP", "MAP@R", "R-precision", "medr") if name in known]


def _column(direction: str, name: str) -> Column:
    if name == "medr":
        return Column(direction, (name,), digits=1, better="lower")
    return Column(direction, (name,), digits=1 if name.startswith(("R@", "recall@")) else 3, better="higher")
