"""What does the doctor find in the runs?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lossscope.tables.base import Table
from lossscope.tables.cells import Cell

from ..sections import Section
from .base import ReportData

ORDER = 85
TITLE = "What is wrong with the runs?"
_TEXT = (
    "What `lossscope doctor` finds in the last checkpoint, the log and the data of every run, each "
    "with what it explains and what to do. Notes are normal in good models. `lossscope doctor RUN --out DIR` draws the "
    "proof."
)


def build(data: ReportData) -> Sequence[Section]:
    """Return a table of findings; nothing where no run was examined."""
    if not data.results.examined:
        return []
    names = ("run", "severity", "id", "title", "explains", "advice", "command")
    rows = tuple(tuple(Cell(text=str(row[name])) for name in names) for row in data.results.findings.to_dict("records"))
    columns = tuple(("", name) for name in ("run", "severity", "finding", "what", "explains", "do", "command"))
    alarms = data.results.findings["severity"].isin(["error", "warning"])
    look = "A run is ill." if alarms.any() else ""
    if not rows:
        number = len(data.results.examined)
        runs = f"{number} run{'s' if number > 1 else ''}"
        return [Section(TITLE, f"No problem was found in {runs} ({recall_range(data.results.examined.values())}).", ())]
    return [Section(TITLE, _TEXT, (Table("doctor", f"{len(rows)} findings.", columns, rows),), look=look)]


def recall_range(recalls: Iterable[float | None]) -> str:
    """Return the lowest and the highest recall@1 of runs, beside which they are called well."""
    known = sorted(recall for recall in recalls if recall is not None)
    if not known:
        return "their recall is not known"
    return f"recall@1 {known[0]:.1%}" + (f" to {known[-1]:.1%}" if len(known) > 1 else "")
