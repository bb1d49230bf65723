"""How well does every model retrieve? The paper's own table beside the published values, or recall and rsum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from lossscope.tables import retrieval, runs
from lossscope.tables.base import Table

from ..page import Item, Section
from ..papers import build_paper_tables
from .base import ReportData, split_of

ORDER = 10
_SYSTEM = ("data", "encoder", "objective_label")
_TEXT = (
    "Both directions of the {split} split, frozen at the best epoch. Published numbers are of the paper's data and "
    "models; where ours differ they serve as orientation."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return tables of recall."""
    rows = data.results.rows
    paper = tuple(build_paper_tables(data.results.paper, rows, data.tests, counts=False))
    items: tuple[Item, ...] = paper or (plain(rows),)
    text = _TEXT.format(split=split_of(rows[rows["probe"] == "recall"]))
    return [Section("How well they retrieve", text, items)]


def plain(rows: pd.DataFrame) -> Table:
    """Return recall and rsum of every system, mean over its seeds, with a note on seeds that only others have.

    Raises InputError for runs that cannot stand in one table: of other data under one name, two of one seed.
    """
    recall = runs.select_probe(rows, "recall", "retrieval")
    runs.require_comparable(recall, "retrieval")
    table = retrieval.build(rows, _SYSTEM)
    return replace(table, notes=(*table.notes, *_missing_seeds(recall)))


def _missing_seeds(rows: pd.DataFrame) -> list[str]:
    notes = []
    for _, of_data in rows.groupby("data", sort=False, observed=True):
        seeds = set(of_data["seed"].dropna())
        for system, own in of_data.groupby(list(_SYSTEM), sort=False, observed=True):
            missing = ", ".join(f"{seed:g}" for seed in sorted(seeds - set(own["seed"])))
            if missing:
                notes.append(f"seed {missing} of {', '.join(map(str, system))} missing: n = {own['run'].nunique()}.")
    return notes
