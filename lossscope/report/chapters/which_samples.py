"""Which samples? The queries with the most and the least gradient of each loss, and the negatives that carry it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from lossscope.tables.base import Table
from lossscope.tables.cells import DASH, Cell

from ..sections import Section
from .base import ReportData

ORDER = 22
TITLE = "Which samples"
_TEXT = (
    "The queries with the most and the least gradient in the batches that were counted, and their heaviest negatives; "
    "one run of each loss. `lossscope cocos RUN --show 20 --out DIR` lists more, and writes those of all queries."
)
_NEGATIVES = 3  # of each query
_COLUMNS = ("direction", "gradient", "query", "weight", "positive's s", "negative", "weight", "s", "share")


def build(data: ReportData) -> Sequence[Section]:
    """Return a table of each system, of its first seed; nothing of evaluations without such rows."""
    rows = data.results.heaviest_negatives
    if rows.empty:
        return []
    systems = rows.groupby(["data", "encoder", "objective_label"], sort=False, observed=True)
    tables = [
        _table(
            f"which_samples-{number}", group[group["run"] == group.sort_values("seed", kind="stable")["run"].iloc[0]]
        )
        for number, (_, group) in enumerate(systems, 1)
    ]
    return [Section(TITLE, _TEXT, tuple(tables))]


def _table(name: str, rows: pd.DataFrame) -> Table:
    first: Any = rows.iloc[0]
    caption = (
        f"{first['objective_label']} of {first['encoder']} on {first['data']}, seed {first['seed']}. Weights are in "
        f"the unit {first['weight_unit']}; share is that of the weight of all negatives of the query."
    )
    listed = rows[rows["rank"] <= _NEGATIVES]
    return Table(
        name, caption, tuple(("", column) for column in _COLUMNS), tuple(map(_line, listed.to_dict("records")))
    )


def _line(row: Mapping[Hashable, Any]) -> tuple[Cell, ...]:
    negative = "none with weight" if row["rank"] == 0 else _item(row, "candidate")
    if row["known_positive"] == 1:
        negative += " (also a positive of the query)"
    return (
        Cell(text=str(row["direction"])), Cell(text=str(row["list"])), Cell(text=_item(row, "query")),
        Cell(mean=float(row["weight"]), digits=3), Cell(mean=float(row["positive_similarity"]), digits=2),
        Cell(text=negative), _number(row["negative_weight"], 3), _number(row["similarity"], 2),
        _number(row["share"], 2),
    )  # fmt: skip


def _number(value: float, digits: int) -> Cell:
    return Cell(text=DASH) if pd.isna(value) else Cell(mean=float(value), digits=digits)


def _item(row: Mapping[Hashable, Any], side: str) -> str:
    """Return the id of an item, and its text where that is known."""
    text = row[f"{side}_text"]
    return f"{row[f'{side}_id']}: {text}" if isinstance(text, str) and text else str(row[f"{side}_id"])
