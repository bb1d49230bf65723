"""Which runs are ill, and of what?"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from ..chapters.base import ReportData
from ..chapters.doctor import TITLE, recall_range
from ..sections import Finding

_NAMED = 3  # runs that are named for each finding


def ill_runs(data: ReportData) -> Sequence[Finding]:
    """Return a sentence for each error and warning of the doctor; one where all runs are well; none unless examined."""
    results = data.results
    if not results.examined:
        return []
    alarms = results.findings[results.findings["severity"].isin(["error", "warning"])]
    runs = f"{len(results.examined)} run{'s' if len(results.examined) > 1 else ''}"
    if alarms.empty:
        return [Finding(f"The doctor finds no problem in {runs} ({recall_range(results.examined.values())}).", TITLE)]
    errors_first = alarms.sort_values("severity", kind="stable")
    groups = errors_first.groupby(["severity", "id"], sort=False, observed=True)
    return [
        Finding(f"{str(key[0]).capitalize()}: {_sentence(str(key[1]), rows, runs)}", TITLE, warning=True)
        for key, rows in groups
    ]


def _sentence(id: str, rows: pd.DataFrame, runs: str) -> str:
    names = list(rows["run"].unique())
    named = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"{id} in {len(names)} of {runs} ({named}): {rows['title'].iloc[0]}."
