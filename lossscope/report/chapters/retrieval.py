"""How well does every model retrieve? The paper's own table with the published values beside, or recall and rsum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from lossscope.tables import retrieval, runs
from lossscope.tables.base import Table

from ..page import Item, Section
from ..papers import papers
from .base import ReportData, split_of

ORDER = 10
_SYSTEM = ("data", "encoder", "objective_label")
_TEXT = (
    "Both directions of the {split} split, frozen at the best epoch. Published numbers are of the paper's data and "
    "towers; where these are others they stand for orientation."
)


def build(material: ReportData) -> Sequence[Section]:
    """Tables of recall."""
    items: tuple[Item, ...] = tuple(papers(material, counted=False)) or (plain(material.results.rows),)
    rows = material.results.rows
    text = _TEXT.format(split=split_of(rows[rows["probe"] == "recall"]))
    return [Section("How well they retrieve", text, items)]


def plain(rows: pd.DataFrame) -> Table:
    """Recall and rsum of every system, mean over its seeds; a note on seeds that one has and another lacks.

    Raises InputError for runs that can not stand in one table: of other data under one name, two of one seed.
    """
    recall = runs.of_probe(rows, "recall", "retrieval")
    runs.check(recall, "retrieval")
    table = retrieval.build(rows, _SYSTEM)
    return replace(table, notes=(*table.notes, *_missing(recall)))


def _missing(rows: pd.DataFrame) -> list[str]:
    notes = []
    for _, beside in rows.groupby("data", sort=False, observed=True):
        wanted = set(beside["seed"].dropna())
        for who, own in beside.groupby(list(_SYSTEM), sort=False, observed=True):
            gone = ", ".join(f"{seed:g}" for seed in sorted(wanted - set(own["seed"])))
            if gone:
                notes.append(f"seed {gone} of {', '.join(map(str, who))} missing: n = {own['run'].nunique()}.")
    return notes
