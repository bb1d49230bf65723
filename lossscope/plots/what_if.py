"""What would be counted at another temperature? Statistics against a swept hyper-parameter, the model as it is."""

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
_LOOKS: dict[str, tuple[str, Any, str]] = {
    "i2t": ("#0072B2", "-", "image to text"),
    "t2i": ("#D55E00", (0, (5, 2)), "text to image"),
}
_WIDE = 5  # times the smallest value: further, and the axis is logarithmic
_WHAT = "what_if"


def draw(frame: pd.DataFrame, ax: Axes | None = None, parameter: str = "temperature", at: float | None = None) -> Axes:
    """One statistic of a frozen model's batches against a swept field of its objective.

    Read across: the value of the field; up: the statistic. Solid blue: image to text; dashed orange: text to image;
    bands are one standard deviation over batches. The thin line is at `at`, the value that the model was trained with.
    The model is the same all along: this is what the loss would look at, not what training with it would give.
    Columns: see `COLUMNS`, one statistic; parameter: name of the axis.
    """
    known = _known(frame)
    statistic = style.single_value(known, "statistic", _WHAT)
    ax = style.axes_or_new(ax)
    _paint(ax, known, at)
    ax.set(xlabel=parameter, ylabel=statistic)
    ax.legend(handles=_handles(known), loc="best", fontsize="small")
    return ax


def draw_many(frame: pd.DataFrame, parameter: str = "temperature", at: float | None = None) -> Figure:
    """A panel per statistic, each on its own scale. Read as `draw`."""
    known = _known(frame)
    statistics = list(known["statistic"].unique())
    fig = style.new_figure(width=0.15 + 0.75 * len(statistics), height=0.75)
    for place, statistic in enumerate(statistics):
        ax = fig.add_subplot(1, len(statistics), place + 1)
        _paint(ax, known[known["statistic"] == statistic], at)
        ax.set(xlabel=parameter, ylabel=str(statistic))
    naming.legend_below(fig, _handles(known), "Bands are one standard deviation over batches")
    return fig


def alt(frame: pd.DataFrame, parameter: str = "temperature") -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for (statistic, direction), rows in _known(frame).groupby(["statistic", "direction"], sort=False, observed=True):
        rows = rows.sort_values("value")
        first, last = rows.iloc[0], rows.iloc[-1]
        ends = [f"{row['mean']:.3g} at {row['value']:g}" for row in (first, last)]
        parts.append(f"{statistic} {direction}: {ends[0]}, {ends[1]}")
    return f"Statistics of a frozen model against {parameter}. " + "; ".join(parts) + "."


def _paint(ax: Axes, known: pd.DataFrame, at: float | None) -> None:
    for direction, rows in known.groupby("direction", sort=False, observed=True):
        rows = rows.sort_values("value")
        tint, dash, name = _LOOKS[str(direction)]
        ax.plot(rows["value"], rows["mean"], color=tint, linestyle=dash, marker="o", markersize=3, label=name)
        spread = rows["std"].fillna(0.0)
        ax.fill_between(rows["value"], rows["mean"] - spread, rows["mean"] + spread, color=tint, alpha=0.18, lw=0)
    if at is not None:
        ax.axvline(at, color="0.6", linewidth=0.8, zorder=0)
        ax.annotate(
            f"trained with {at:g}", (at, 1), (2, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
            color="0.4", fontsize="small", va="top",
        )  # fmt: skip
    values = np.sort(known["value"].unique())
    if values[0] > 0 and values[-1] / values[0] > _WIDE:
        ax.set_xscale("log")
        ax.minorticks_off()
        ax.set_xticks(_ticks(float(values[0]), float(values[-1])))
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    low, high = ax.get_ylim()
    ax.set_ylim(0.0 if (known["mean"] >= 0).all() else low, high + (0.12 * (high - low) if at is not None else 0.0))


def _ticks(low: float, high: float) -> list[float]:
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [tick for tick in (base * 10.0**power for power in powers for base in (1, 2, 5)) if low <= tick <= high]


def _handles(known: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D([], [], color=tint, linestyle=dash, label=name)
        for direction, (tint, dash, name) in _LOOKS.items()
        if (known["direction"] == direction).any()
    ]


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    strange = sorted(set(map(str, frame["direction"])) - set(_LOOKS))
    if strange:
        raise InputError(f"direction must be i2t or t2i; got {', '.join(strange)}. Leave other rows out")
    known = frame.dropna(subset=["value", "mean"])
    if known.empty:
        raise InputError(f"frame of {_WHAT} must have a known mean; got none. Every query was skipped")
    if known.duplicated(["value", "direction", "statistic"]).any():
        raise InputError(f"frame of {_WHAT} must hold each value, direction and statistic once; got some twice")
    return known
