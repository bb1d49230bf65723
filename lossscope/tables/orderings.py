"""Which printed number stands beside each run of a study, in any table of its paper?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from lossscope.errors import NoRows

from . import runs
from ._footnotes import Footnotes
from ._lines import Line, build_lines, select_rows
from ._printed import PrintedTable
from .published import base as published

COLUMNS = ("data", "encoder", "objective_label", "direction", "statistic", "printed", "table", "note")
_STATISTICS: Mapping[str, str] = {"mAP@5": "mAP@5_hits"}  # printed name -> name of the same quantity here
_NOT_HERE = ("average_recall",)  # follows from the recalls
_COUNTS = "train"  # split of the tables of counts


def printed_numbers(frame: pd.DataFrame, paper: str | None) -> pd.DataFrame:
    """Return the printed numbers beside the systems of a study, with COLUMNS.

    A system is matched as in the tables of `study table`: by the published names of its data and encoder, by its
    objective, and by how the paper ranks. `note` has the known errors of the printed numbers, and parameters in which
    the objective differs.

    Args:
        frame: rows of runs, with the columns of `runs.COLUMNS`.
        paper: of the study; None: no numbers.
    """
    found = [] if paper is None else [row for name in _papers(paper) for row in _of_paper(frame, name)]
    return pd.DataFrame(found, columns=list(COLUMNS))


def _papers(paper: str) -> list[str]:
    """Return the papers of published/ that a study means: `xuan2023` is xuan2023_goal."""
    return [name for name in published.PAPERS if name.partition("_")[0] == paper]


def _of_paper(frame: pd.DataFrame, paper: str) -> Iterator[dict[str, Any]]:
    for number in sorted(published.load(paper)["table"].unique()):
        printed = PrintedTable.read(paper, int(number))
        probe = "cocos" if (printed.rows["split"] == _COUNTS).all() else "recall"
        try:
            of_probe = runs.select_probe(frame, probe, f"{paper}_{number}")
            keys = printed.objectives() if probe == "cocos" else []
            rows = select_rows(of_probe, printed, f"{paper}_{number}", keys)
        except NoRows:
            continue
        for line in build_lines(rows, printed, frame):
            if not (probe == "recall" and line.of_folds):  # the multiverse ranks whole splits
                yield from _of_line(line, printed, f"{paper}_{number}")


def _of_line(line: Line, printed: PrintedTable, table: str) -> Iterator[dict[str, Any]]:
    other = ", ".join(printed.differences(line.printed, line.spec, {})) if len(line.printed) else ""
    for row in line.printed.to_dict("records"):
        if row["metric"] in _NOT_HERE or pd.isna(row["mean"]):
            continue
        doubts = Footnotes()
        _ = printed.cell(line.printed, row["direction"], row["metric"], doubts)
        texts = [text.partition("] ")[2] for text in doubts.texts()]
        note = "; ".join([*texts, *([f"{line.objective_label}: {other}"] if other else [])])
        yield {
            "data": line.data, "encoder": line.encoder, "objective_label": line.objective_label,
            "direction": row["direction"], "statistic": _STATISTICS.get(row["metric"], row["metric"]),
            "printed": float(row["mean"]), "table": table, "note": note,
        }  # fmt: skip
