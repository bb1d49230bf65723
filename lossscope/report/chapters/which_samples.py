"""Which samples? The queries with the most and the least gradient of each loss, and the negatives that carry it."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from lossscope.errors import InputError
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
_ADDRESS = re.compile(r"data:image/webp;base64,[A-Za-z0-9+/=]+")
_NEGATIVES = 3  # of each query
_COLUMNS = ("direction", "gradient", "query", "weight", "positive's s", "negative", "weight", "s", "share")


def build(data: ReportData) -> Sequence[Section]:
    """Return a table of each system, of its first seed; nothing of evaluations without such rows."""
    rows = data.results.heaviest_negatives
    if rows.empty:
        return []
    tables = []
    systems = rows.groupby(["data", "encoder", "objective_label"], sort=False, observed=True)
    for number, (_, group) in enumerate(systems, 1):
        run = str(group.sort_values("seed", kind="stable")["run"].iloc[0])
        pictures = _pictures(data.results.pictures, run)
        tables.append(_table(f"which_samples-{number}", group[group["run"] == run], pictures))
    return [Section(TITLE, _TEXT, tuple(tables))]


def _pictures(frame: pd.DataFrame, run: str) -> dict[str, str]:
    """Return id -> data address of the pictures of a run. Raises InputError for an address that is not in the page."""
    if frame.empty:
        return {}
    of_run = frame[frame["run"] == run]
    for address in of_run["picture"]:
        if not _ADDRESS.fullmatch(address):
            raise InputError(
                f"pictures of {run} must be data:image/webp;base64; got {address[:40]!r}. Evaluate it anew"
            )
    return dict(zip(of_run["id"], of_run["picture"], strict=True))


def _table(name: str, rows: pd.DataFrame, pictures: Mapping[str, str]) -> Table:
    first: Any = rows.iloc[0]
    of = f"{first['objective_label']} of {first['encoder']} on {first['data']}, seed {first['seed']}"
    return build_table(name, of, rows, pictures)


def build_table(name: str, of: str, rows: pd.DataFrame, pictures: Mapping[str, str]) -> Table:
    """Return a table of queries and their heaviest negatives.

    Args:
        name: of the table.
        of: what was counted.
        rows: of `HeaviestNegatives.most_and_least`, in one unit.
        pictures: id -> data address; may be empty.
    """
    unit = rows["weight_unit"].iloc[0]
    caption = f"{of}: weights are in the unit {unit}; share is that of the weight of all negatives of the query."
    listed = rows[rows["rank"] <= _NEGATIVES].to_dict("records")
    lines = tuple(_line(row, pictures) for row in listed)
    return Table(name, caption, tuple(("", column) for column in _COLUMNS), lines)


def _line(row: Mapping[Hashable, Any], pictures: Mapping[str, str]) -> tuple[Cell, ...]:
    negative = "none with weight" if row["rank"] == 0 else _item(row, "candidate")
    if row["known_positive"] == 1:
        negative += " (also a positive of the query)"
    return (
        Cell(text=str(row["direction"])), Cell(text=str(row["list"])),
        Cell(text=_item(row, "query"), picture=pictures.get(row["query_id"], "")),
        Cell(mean=float(row["weight"]), digits=3), Cell(mean=float(row["positive_similarity"]), digits=2),
        Cell(text=negative, picture=pictures.get(row["candidate_id"], "")),
        _number(row["negative_weight"], 3), _number(row["similarity"], 2), _number(row["share"], 2),
    )  # fmt: skip


def _number(value: float, digits: int) -> Cell:
    return Cell(text=DASH) if pd.isna(value) else Cell(mean=float(value), digits=digits)


def _item(row: Mapping[Hashable, Any], side: str) -> str:
    """Return the id of an item, and its text where that is known."""
    text = row[f"{side}_text"]
    return f"{row[f'{side}_id']}: {text}" if isinstance(text, str) and text else str(row[f"{side}_id"])
