"""The tables of a study's paper, as far as its runs fill them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lossscope import tables
from lossscope.errors import NoRows
from lossscope.tables import runs
from lossscope.tables.base import Table

COUNTED = ("bleeker2022_2", "bleeker2022_3", "bleeker2022_4")  # tables of counts; all others are of recall


def papers_with_tables() -> list[str]:
    """Return the papers with tables: PAPER of every file lossscope/tables/PAPER_N.py."""
    return sorted({name.rpartition("_")[0] for name in _names("")})


def build_paper_tables(
    paper: str | None, rows: pd.DataFrame, tests: pd.DataFrame | None, counts: bool, all_printed: bool = False
) -> Iterator[Table]:
    """Yield the tables of a study's paper for which it has rows.

    Args:
        paper: of the study; None: no tables.
        rows: summary rows of all runs.
        tests: which differences are significant, or None.
        counts: tables of counts, or of recall.
        all_printed: also show printed rows without a run of ours.

    Raises:
        InputError: rows that cannot stand in one table.
    """
    if paper is None:
        return
    for name in _names(paper):
        if (name in COUNTED) == counts:
            module = importlib.import_module(f"{tables.__name__}.{name}")
            if hasattr(module, "MADE_BY"):  # of no run
                continue
            try:
                built = module.build(rows, tests, all_printed)
                yield from (table for table in built if _has_published(table))
            except NoRows:
                continue


def is_other_data(rows: pd.DataFrame) -> bool:
    """Return whether the runs are of other data than the published numbers beside them.

    `Flickr30k, 1K test` is flickr30k, and `COCO` mscoco.

    Args:
        rows: columns data, a label, and dataset, the name of the published data or None.
    """
    pairs = rows[["data", "dataset"]].drop_duplicates().dropna()
    named = zip(map(str, pairs["data"]), map(str, pairs["dataset"]), strict=True)
    return pairs.empty or any(runs.is_other_data(label, name) for label, name in named)


def _names(paper: str) -> list[str]:
    folder = Path(str(tables.__file__)).parent
    names = sorted(path.stem for path in folder.glob("*.py"))
    return [name for name in names if re.fullmatch(rf"{paper or '[a-z0-9]+'}_\d", name)]


def _has_published(table: Table) -> bool:
    """Return whether a table has any published number, no columns for them, or says why they may not stand there."""
    columns = [index for index, (_, column) in enumerate(table.columns) if column == "published"]
    shown = any(not row[index].missing for row in table.rows for index in columns)
    return not columns or shown or any(note.startswith(runs.APART) for note in table.notes)
