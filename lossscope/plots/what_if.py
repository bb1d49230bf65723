"""What would be counted at another temperature? Statistics against a varied hyper-parameter of a frozen model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("value", "direction", "statistic", "mean", "std")
_DIRECTIONS: dict[str, tuple[str, Any, str]] = {  # colour, dashes and name
    "i2t": ("#0072B2", "-", "image to text"),
    "t2i": ("#D55E00", (0, (5, 2)), "text to image"),
}
_WIDE = 5  # largest / smallest value above which the axis is logarithmic
_NAME = "what_if"


def draw(frame: pd.DataFrame, ax: Axes | None = None, parameter: str = "temperature", at: float | None = None) -> Axes:
    """How does one statistic of a frozen model's batches depend on a field of its objective?

    Horizontal: the value of the field. Vertical: the statistic. Solid blue: image to text; dashed orange: text to
    image; bands are one standard deviation over batches. The model is the same everywhere: this is what the loss would
    see, not what training with it would give.

    Args:
        frame: columns COLUMNS, of one statistic.
        ax: axes to draw on; None: new ones.
        parameter: name of the horizontal axis.
        at: value that the model was trained with, marked by a thin line.
    """
    rows = _valid_rows(frame)
    statistic = style.single_value(rows, "statistic", _NAME)
    ax = style.axes_or_new(ax)
    _draw_panel(ax, rows, at)
    ax.set(xlabel=parameter, ylabel=statistic)
    ax.legend(handles=_handles(rows), loc="best", fontsize="small")
    return ax


def draw_many(frame: pd.DataFrame, parameter: str = "temperature", at: float | None = None) -> Figure:
    """How do several statistics depend on a field of the objective? A panel each, on its own scale, as `draw`."""
    rows = _valid_rows(frame)
    statistics = list(rows["statistic"].unique())
    fig = style.new_figure(width=0.15 + 0.75 * len(statistics), height=0.75)
    for index, statistic in enumerate(statistics):
        ax = fig.add_subplot(1, len(statistics), index + 1)
        _draw_panel(ax, rows[rows["statistic"] == statistic], at)
        ax.set(xlabel=parameter, ylabel=str(statistic))
    naming.legend_below(fig, _handles(rows), "Bands are one standard deviation over batches")
    return fig


def alt(frame: pd.DataFrame, parameter: str = "temperature") -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for (statistic, direction), line in _valid_rows(frame).groupby(
        ["statistic", "direction"], sort=False, observed=True
    ):
        line = line.sort_values("value")
        ends = [f"{row['mean']:.3g} at {row['value']:g}" for row in (line.iloc[0], line.iloc[-1])]
        parts.append(f"{statistic} {direction}: {ends[0]}, {ends[1]}")
    return f"Statistics of a frozen model against {parameter}. " + "; ".join(parts) + "."


def _draw_panel(ax: Axes, rows: pd.DataFrame, at: float | None) -> None:
    for direction, line in rows.groupby("direction", sort=False, observed=True):
        line = line.sort_values("value")
        colour, dashes, name = _DIRECTIONS[str(direction)]
        ax.plot(line["value"], line["mean"], color=colour, linestyle=dashes, marker="o", markersize=3, label=name)
        std = line["std"].fillna(0.0)
        ax.fill_between(line["value"], line["mean"] - std, line["mean"] + std, color=colour, alpha=0.18, lw=0)
    if at is not None:
        ax.axvline(at, color="0.6", linewidth=0.8, zorder=0)
        ax.annotate(
            f"trained with {at:g}", (at, 1), (2, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
            color="0.4", fontsize="small", va="top",
        )  # fmt: skip
    values = np.sort(rows["value"].unique())
    if values[0] > 0 and values[-1] / values[0] > _WIDE:
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(_ticks(float(values[0]), float(values[-1])))
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    low, high = ax.get_ylim()
    ax.set_ylim(0.0 if (rows["mean"] >= 0).all() else low, high + (0.12 * (high - low) if at is not None else 0.0))


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between low and high."""
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [tick for tick in (base * 10.0**power for power in powers for base in (1, 2, 5)) if low <= tick <= high]


def _handles(rows: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D([], [], color=colour, linestyle=dashes, label=name)
        for direction, (colour, dashes, name) in _DIRECTIONS.items()
        if (rows["direction"] == direction).any()
    ]


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a mean. Raises InputError for other columns, directions or duplicates, or no rows."""
    style.require_rows(frame, COLUMNS, _NAME)
    others = sorted(set(map(str, frame["direction"])) - set(_DIRECTIONS))
    if others:
        raise InputError(f"direction must be i2t or t2i; got {', '.join(others)}. Leave other rows out")
    rows = frame.dropna(subset=["value", "mean"])
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a known mean; got none. Every query was skipped")
    if rows.duplicated(["value", "direction", "statistic"]).any():
        raise InputError(f"frame of {_NAME} must hold each value, direction and statistic once; got some twice")
    return rows
