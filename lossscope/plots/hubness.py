"""Is it always the same few candidates that are the hardest negative? (how often each is, in falling order)"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("label", "count")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)))
_WHAT = "hubness"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Share of all hardest negatives that the most chosen candidates make up (a Lorenz curve from the top).

    Read across: share of the candidates, those that are hardest negatives most often first; up: share of the queries
    whose hardest negative is among them. On the thin diagonal all would be chosen alike; the earlier a line is at the
    top, the fewer do all the work, and where it gets there is the share that is ever chosen. hub_skewness in
    the legend is the skewness of the counts, mean (N - mean)³ / σ³: 0 for an even spread. Columns: label, count, one row per
    candidate, those with 0 among them.
    """
    _checked(frame)
    own, ax = ax is None, style.axes_or_new(ax)
    labels = list(map(str, frame["label"].unique()))
    tints = style.colours(labels)
    for place, (label, rows) in enumerate(frame.groupby("label", sort=False, observed=True)):
        across, up = _lorenz(rows["count"].to_numpy(np.float64))
        name = f"{label}, hub_skewness {_skew(rows['count'].to_numpy(np.float64)):.3g}"
        ax.plot(across, up, color=tints[str(label)], linestyle=_DASHES[place % len(_DASHES)], label=name)
    ax.axline((0, 0), slope=1, color="0.75", linewidth=0.8, zorder=0)
    ax.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="share of candidates, most chosen first", ylabel="share of queries")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda tick, _: f"{100 * tick:g} %")
    if own:
        naming.legend_below(ax.figure, ax.get_lines()[: len(labels)])  # type: ignore[arg-type]
    else:
        ax.legend(handles=ax.get_lines()[-1 - len(labels) : -1], loc="lower right", fontsize="small")
    return ax


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    _checked(frame)
    parts = []
    for label, rows in frame.groupby("label", sort=False, observed=True):
        counts = rows["count"].to_numpy(np.float64)
        across, up = _lorenz(counts)
        tenth = float(np.interp(0.1, across, up))
        parts.append(
            f"{label}: the tenth chosen most often is the hardest negative of {tenth:.0%} of the queries, "
            f"{float((counts == 0).mean()):.0%} are never chosen, hub_skewness {_skew(counts):.3g}"
        )
    return "How unevenly candidates are chosen as hardest negatives. " + "; ".join(parts) + "."


def _lorenz(counts: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    falling = np.sort(counts)[::-1]
    return np.linspace(0, 1, len(falling) + 1), np.concatenate([[0.0], np.cumsum(falling) / falling.sum()])


def _skew(counts: npt.NDArray[np.float64]) -> float:
    apart = counts - counts.mean()
    spread = float(np.mean(apart**2))
    return float(np.mean(apart**3)) / spread**1.5 if spread > 0 else float("nan")


def _checked(frame: pd.DataFrame) -> None:
    style.require_columns(frame, COLUMNS, _WHAT)
    if not np.isfinite(frame["count"].to_numpy(np.float64)).all() or (frame["count"] < 0).any():
        raise InputError(
            f"counts of {_WHAT} must be numbers >= 0; got others. Use "
            "lossscope.engine.similarity_clouds.hardest_negative_counts"
        )
    empty = [str(label) for label, rows in frame.groupby("label", observed=True) if rows["count"].sum() == 0]
    if empty:
        raise InputError(f"{', '.join(empty)} must have a chosen candidate; every query was skipped. Leave it out")
