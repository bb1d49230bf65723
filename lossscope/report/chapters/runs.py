"""Where does every number come from, and what is missing?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..page import Section
from .base import ReportData

ORDER = 100
_TEXT = (
    "Every run behind the tables, with the fingerprint of the data it was trained on. The choices of each are in its "
    "config.toml."
)


def build(material: ReportData) -> Sequence[Section]:
    """A table of runs, and one of cells that have no numbers."""
    items = [_runs(material)]
    if len(material.results.gaps):
        items.append(_gaps(material.results.gaps))
    return [Section("The runs", _TEXT, tuple(items))]


def _runs(material: ReportData) -> Table:
    rows = material.results.rows
    rsum = rows[rows["statistic"] == "rsum"].set_index("run")["mean"]
    prints = rows.drop_duplicates("run").set_index("run")["data_fingerprint"]
    lines = tuple(
        (
            *(Cell(text=str(one[name])) for name in ("run", "data", "encoder", "spec")), Cell(text=str(one["seed"])),
            Cell(mean=float(rsum[one["run"]])), Cell(text=str(prints[one["run"]])[:12]),
        )
        for one in material.results.cells.to_dict("records") if one["run"] in rsum.index
    )  # fmt: skip
    columns = tuple(("", name) for name in ("run", "data", "encoder", "objective", "seed", "rsum", "fingerprint"))
    return Table("runs", f"{len(lines)} {'runs' if len(lines) != 1 else 'run'}.", columns, lines)


def _gaps(gaps: pd.DataFrame) -> Table:
    lines = tuple(
        tuple(Cell(text=str(one[name])) for name in ("run", "status", "reason")) for one in gaps.to_dict("records")
    )
    columns = (("", "cell"), ("", "status"), ("", "why"))
    return Table(
        "gaps", f"{len(lines)} {'cells' if len(lines) > 1 else 'cell'} of the study without numbers.", columns, lines
    )
