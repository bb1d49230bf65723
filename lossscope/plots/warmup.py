"""Which epochs of a run trained with another loss first? They are shaded: the step at their end has a reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from . import labels

COLUMN = "warmup"  # the objective of a row of the warm-up, None in every other; optional
_SHADE = "0.9"


@dataclass(frozen=True)
class WarmUp:
    """The first epochs of some runs, which trained with another loss."""

    end: int  # its last epoch
    objective: str  # what it trained with
    runs: tuple[str, ...]  # labels


def warmups(frame: pd.DataFrame, name: str) -> list[WarmUp]:
    """Return the warm-ups of a frame: one for each end and objective, of the labels in column `name`."""
    if COLUMN not in frame:
        return []
    found: dict[tuple[int, str], list[str]] = {}
    for label, rows in frame[frame[COLUMN].notna()].groupby(name, sort=False, observed=True):
        for objective, group in rows.groupby(COLUMN, sort=False, observed=True):
            found.setdefault((math.ceil(float(group["epoch"].max())), str(objective)), []).append(str(label))
    return [WarmUp(end, objective, tuple(runs)) for (end, objective), runs in sorted(found.items())]


def shade(ax: Axes, found: Sequence[WarmUp]) -> None:
    """Shade the epochs of the warm-ups, and draw a thin line where each ends."""
    for warmup in found:
        ax.axvspan(0, warmup.end, color=_SHADE, linewidth=0, zorder=-2, label=describe(warmup))
        ax.axvline(warmup.end, color="0.55", linewidth=0.8, linestyle=(0, (2, 2)), zorder=-1)


def handles(found: Sequence[WarmUp], several: bool) -> list[Artist]:
    """Return the entries of a legend; with `several` runs in the picture each states of which it is."""
    return [Patch(facecolor=_SHADE, edgecolor="0.55", label=describe(warmup, several)) for warmup in found]


def describe(warmup: WarmUp, several: bool = False) -> str:
    """Return `warm-up of Triplet SH: summed triplet loss`."""
    of = f" of {', '.join(map(labels.label_text, warmup.runs))}" if several else ""
    loss = "summed triplet" if warmup.objective == "triplet" else labels.label_text(warmup.objective)
    return f"warm-up{of}: {loss} loss"


def phases(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Return the rows of a line, cut at the end of its warm-up: losses of both sides are different quantities."""
    if COLUMN not in rows or rows[COLUMN].isna().all():
        return [rows]
    return [part for part in (rows[rows[COLUMN].notna()], rows[rows[COLUMN].isna()]) if len(part)]
