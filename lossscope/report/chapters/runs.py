"""Where does every number come from, and what is missing?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lossscope.io.scores import score_rows
from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..sections import Item, Section
from .base import ReportData

ORDER = 100
TITLE = "The runs"
_TEXT = (
    "Every run behind the tables, with the fingerprint of the data it was trained on, and the choices of the "
    "trainings. The choices of each run are in its config.toml."
)
_SHOWN = ("data", "encoder", "objective", "seed")  # which are in the table of runs


def build(data: ReportData) -> Sequence[Section]:
    """Return a table of runs, one of choices, and one of runs that have no numbers."""
    items: list[Item] = [_runs(data), _choices(data)]
    if len(data.results.gaps):
        items.append(_gaps(data.results.gaps))
    return [Section(TITLE, _TEXT, tuple(items))]


def _runs(data: ReportData) -> Table:
    rows, score = data.results.rows, data.score
    of_run = score_rows(rows).set_index("run")["mean"]
    fingerprints = rows.drop_duplicates("run").set_index("run")["data_fingerprint"]
    lines = tuple(
        (
            *(Cell(text=str(run[name])) for name in ("run", "data", "encoder", "spec")), Cell(text=str(run["seed"])),
            Cell(mean=float(of_run[run["run"]]), digits=score.digits), Cell(text=str(fingerprints[run["run"]])[:12]),
        )
        for run in data.results.runs.to_dict("records") if run["run"] in of_run.index
    )  # fmt: skip
    columns = tuple(("", name) for name in ("run", "data", "encoder", "objective", "seed", score.name, "fingerprint"))
    return Table("runs", f"{len(lines)} {'runs' if len(lines) != 1 else 'run'}.", columns, lines)


def _choices(data: ReportData) -> Table:
    """Return every choice of the recipes; where runs differ, which runs have which value."""
    recipes = data.results.recipes
    names = dict.fromkeys(name for recipe in recipes.values() for name in recipe if name not in _SHOWN)
    lines = []
    for name in names:
        by_value: dict[str, list[str]] = {}
        for run, recipe in recipes.items():
            value = recipe.get(name)
            by_value.setdefault("" if value is None else str(value), []).append(run)
        rarest = min(by_value, key=lambda value: len(by_value[value]))
        for value, runs in by_value.items():
            most = len(by_value) > 1 and value != rarest and len(runs) > len(recipes) // 2
            where = "all" if len(by_value) == 1 else "the others" if most else ", ".join(runs)
            lines.append((Cell(text=name.replace("_", "-")), Cell(text=value or "–"), Cell(text=where)))
    columns = (("", "choice"), ("", "value"), ("", "runs"))
    return Table(
        "choices", "Choices of the trainings. `lossscope train --help` says what they are.", columns, tuple(lines)
    )


def _gaps(gaps: pd.DataFrame) -> Table:
    lines = tuple(
        tuple(Cell(text=str(run[name])) for name in ("run", "status", "reason")) for run in gaps.to_dict("records")
    )
    columns = (("", "run"), ("", "status"), ("", "why"))
    number = f"{len(lines)} {'runs' if len(lines) > 1 else 'run'}"
    return Table("gaps", f"{number} of the study without numbers.", columns, lines)
