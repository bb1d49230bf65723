"""Summarise a training in a few lines: what carried the gradient first and last, findings, and what to try."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from .doctor_options import LOOKED_FOR
from .logged_columns import MAIN
from .observed import Row

if TYPE_CHECKING:
    from .live_doctor import LiveDoctor

_MOST = 10  # rows in the mean at each end: a tenth of all rows, at most
_MEANING = {
    "C_neg": "negatives of a query with weight above eps",
    "C_q": "samples of a query with weight above eps",
    "N_eff": "as if so many shared the gradient equally",
    "inverted": "share of queries whose hardest negative is above the positive",
    "in_order": "share of two pairs whose similarities are in the order of their labels",
}
_ENDS = tuple(
    name for name in MAIN if name != "loss_gap"
)  # loss_gap says how the objective fits, not how training went


def summarise(rows: Sequence[Row], watched: int, doctor: LiveDoctor | None) -> str:
    """Return the lines.

    Args:
        rows: kept rows of the training, the oldest first.
        watched: number of its rows, kept or not.
        doctor: of the training, if any.
    """
    counted = f"{watched:,} {'step was' if watched == 1 else 'steps were'} watched"
    return "\n".join([f"lossscope: {counted}", *_gradient(rows), *_findings(doctor)])


def _gradient(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a line for each statistic of each direction: its mean over the first rows and over the last ones."""
    columns = dict.fromkeys(name for row in rows for name in row)
    groups = dict.fromkeys(name.rpartition("/")[0] for name in columns if name.rpartition("/")[2] in _ENDS)
    if not groups:
        yield "  no row of them is kept; LossScope(keep=10_000) keeps the newest"
    explained: set[str] = set()  # names explained in a line above
    for group in groups:
        names = [name for name in _ENDS if f"{group}/{name}" in columns]
        series = {name: [row[f"{group}/{name}"] for row in rows if f"{group}/{name}" in row] for name in names}
        finite = {name: [x for x in values if math.isfinite(x)] for name, values in series.items()}
        n = max(1, min(_MOST, max(map(len, finite.values())) // 10))
        yield f"  {group}, mean of the first -> of the last {n} {'step' if n == 1 else 'steps'}:"
        for name, values in finite.items():
            meaning = f"  ({_MEANING[name]})" if name in _MEANING and name not in explained else ""
            explained.add(name)
            yield f"    {name:8} {_mean(values[:n])} -> {_mean(values[-n:])}{meaning}"


def _findings(doctor: LiveDoctor | None) -> Iterator[str]:
    """Yield what the doctor says, and what to do about it."""
    if doctor is None:
        yield f"  faults: not checked; try LossScope(..., doctor=True), which checks for {len(LOOKED_FOR)}"
        return
    if not doctor.findings:
        yield f"  doctor: no finding, {doctor.examined}"
    for finding in doctor.findings:
        yield f"  doctor: {finding.severity} {finding.id}: {finding.title}"
        yield from (f"    try: {advice.text}" for advice in finding.advice)


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3g}" if values else "nan"
