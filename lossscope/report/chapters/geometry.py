"""How similar are positives and hardest negatives, and are the hardest negatives always the same few candidates?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.core.sides import with_article
from lossscope.plots import hubness, tangent
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..sections import Item, Picture, Section
from ._counts import batches_of
from .base import ReportData, fold, named, over_seeds, panel, split_of

ORDER = 70
_TEXT = (
    "Similarities of the best positive and the hardest negative in the batch, the part of the gradient that is "
    "tangential to the sphere, and how unevenly candidates are the hardest negative. Split {split}, frozen "
    "models. {batches}"
)
_STATISTICS = {
    "s_pos": 3,
    "s_neg": 3,
    "margin": 3,
    "inverted": 3,
    "hub_max_count": 1,
    "hub_skewness": 2,
    "never_hardest": 3,
}
"""Statistic -> decimals."""


def build(data: ReportData) -> Sequence[Section]:
    """Return a table of what depends on no loss, and histograms of tangent gradients."""
    items: list[Item] = [table for table in (_table(data),) if table is not None]
    queries = data.results.per_query
    norms = queries[queries["probe"] == "tangent"] if "probe" in queries else pd.DataFrame()
    if "tangent" in norms and norms["tangent"].notna().any():
        norms = norms.assign(panel=panel(norms))
        for number, (name, group) in enumerate(norms.groupby("panel", sort=False), 1):
            frame = pd.DataFrame({"label": group["objective_label"], "value": group["tangent"]}).dropna()
            caption = named(name, norms, "Norm of the tangential gradient of a query, both directions, all seeds.")
            figure = tangent.draw_many(frame)
            items.append(Picture(f"tangent-{number}", caption, tangent.alt(frame), figure, "tangent", frame))
    items += _hubs(data)
    rows = data.results.rows
    rows = rows[rows["probe"] == "similarity"]
    text = _TEXT.format(split=split_of(rows), batches=batches_of(rows))
    return [Section("Similarities and gradients of single queries", text, *fold(items))] if items else []


def _hubs(data: ReportData) -> list[Item]:
    """Return a picture for each model of how unevenly candidates are hardest negatives of the first side's queries."""
    rows = data.results.hardest_negative_counts
    if "count" not in rows:
        return []
    first = data.sides.labels[0]
    query, candidate = data.sides.query(first), data.sides.candidate(first)
    rows, items = rows[rows["direction"] == first].assign(panel=panel), list[Item]()
    for number, (name, group) in enumerate(rows.groupby("panel", sort=False), 1):
        frame = group[group["seed"] == group["seed"].min()].assign(label=group["objective_label"])
        pairs = " or ".join(f"{size:g}" for size in frame["batch_size"].unique())
        text = (
            f"How often {with_article(candidate)} is the hardest negative of {with_article(query)} in batches of "
            f"{pairs} pairs, counted over all batches together; the table counts within a batch, so that its "
            "numbers are others. First seed."
        )
        caption, figure = named(name, rows, text), hubness.draw(frame).figure
        numbers = frame[list(hubness.COLUMNS)]
        items.append(Picture(f"hubness-{number}", caption, hubness.alt(frame), figure, "hubness", numbers))
    return items


def _table(data: ReportData) -> Table | None:
    rows = data.results.rows
    rows = rows[rows["probe"].isin(["similarity", "hubness"])]
    names = [name for name in _STATISTICS if (rows["statistic"] == name).any()]
    if not names:
        return None
    lines = []
    rows = rows.assign(panel=panel(rows))
    keys = ["panel", "objective_label", "direction"]
    for (name, label, direction), group in rows.groupby(keys, sort=False, observed=True):
        labels = [Cell(text=str(text)) for text in (name, label, direction)]
        numbers = [_cell(group[group["statistic"] == statistic], _STATISTICS[statistic]) for statistic in names]
        lines.append((*labels, *numbers))
    columns = tuple(("", name) for name in ("models", "loss", "direction", *names))
    caption = (
        "Similarities of positives and hardest negatives, and hubness. s_pos, s_neg: mean similarity of the "
        "best positive and the hardest negative; margin: their difference; "
        "inverted: share of queries that rank a negative first; within a batch, mean over batches: hub_max_count, "
        "hub_skewness: how often the most frequent candidate is a hardest negative, and the skewness of these counts; "
        f"never_hardest: share of candidates that never are. {over_seeds(rows)}"
    )
    return Table("geometry", caption, columns, tuple(lines))


def _cell(rows: pd.DataFrame, digits: int) -> Cell:
    values = rows["mean"].dropna()
    std = values.std() if len(values) > 1 else None
    return Cell(mean=values.mean() if len(values) else None, std=std, digits=digits)
