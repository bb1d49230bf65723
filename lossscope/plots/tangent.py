"""How strongly does the gradient turn a query, and how many does it not turn at all? (histogram of tangent norms)"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import style

COLUMNS = ("label", "value")
BINS = 40
_WIDE, _FAR = 50, 10  # logarithmic where the 95 % quantile is WIDE times that of 5 %, or the largest FAR the median
_SMALL = 1e-6  # of the median: where a logarithmic axis begins at the lowest
_WHAT = "tangent"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Is the strength of the gradient spread over queries, or do a few have all of it? One objective.

    Read across: norm of the part of the gradient that turns a vector on its sphere; up: share of the queries in the
    bin. Exact zeros, queries that the loss has let go of, are in no bin: the title says their share. The vertical line
    is the median of the rest. Norms scale with an objective's temperature: compare shapes across objectives. A mass
    near 0 is what the Unified-loss paper calls a vanishing gradient. Columns: label (one), value (>= 0; NaN is left
    out).
    """
    known = _known(frame)
    label = style.single_value(known, "label", _WHAT)
    ax = style.axes_or_new(ax)
    values = known["value"].to_numpy(np.float64)
    moved = values[values > 0]
    zero = 1 - len(moved) / len(values)
    steps = _edges(moved)
    share = np.histogram(moved.clip(steps[0], steps[-1]), steps)[0] / len(values)
    tint = style.colours([label])[label]
    ax.stairs(share, steps, fill=True, color=tint, alpha=0.55, label=label)
    if len(moved):
        ax.axvline(float(np.median(moved)), color="black", linewidth=1)
    if _geometric(steps):
        ax.set_xscale("log")
    ax.set_xlim(float(steps[0]), float(steps[-1]))
    ax.set(xlabel="norm of the tangent gradient", ylabel="share of queries")
    ax.set_title(f"{style.wrap_spec(label, 30)}\nexactly 0: {_percent(zero)} of {len(values):,}")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """A panel per objective, each on its own axis of norms, as they scale with the temperature. Read as `draw`."""
    known = _known(frame)
    labels = list(known["label"].unique())
    across = style.panels_per_row(len(labels))
    down = math.ceil(len(labels) / across)
    fig = style.new_figure(width=0.15 + 0.7 * across, height=0.75 * down)
    for place, label in enumerate(labels):
        ax = draw(known[known["label"] == label], fig.add_subplot(down, across, place + 1))
        ax.set_xlabel(ax.get_xlabel() if place + across >= len(labels) else "")
        ax.set_ylabel(ax.get_ylabel() if place % across == 0 else "")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for label, rows in _known(frame).groupby("label", sort=False, observed=True):
        moved = rows["value"][rows["value"] > 0]
        low, middle, high = moved.quantile([0.1, 0.5, 0.9]) if len(moved) else (0.0, 0.0, 0.0)
        zero = 1 - len(moved) / len(rows)
        parts.append(f"{label}: {_percent(zero)} exactly 0, of the rest median {middle:.3g} ({low:.3g} to {high:.3g})")
    return "Histograms of tangent gradient norms over queries. " + "; ".join(parts) + "."


def _edges(moved: _Values) -> _Values:
    """Bins of equal width from 0, or of equal ratio where norms are far apart: the first holds all that are smaller."""
    if not len(moved):
        return np.linspace(0.0, 1.0, BINS + 1)
    low, middle, high = np.quantile(moved, (0.05, 0.5, 0.95))
    top = float(moved.max()) * 1.001
    if high > _WIDE * low or top > _FAR * middle:
        return np.geomspace(max(float(moved.min()), _SMALL * middle) * 0.999, top, BINS + 1)
    return np.linspace(0.0, top, BINS + 1)


def _geometric(edges: _Values) -> bool:
    return bool(edges[0] > 0)


def _percent(share: float) -> str:
    """`0 %` and `100 %` only where it is none and all."""
    text = f"{100 * share:.1f}"
    if (text == "0.0" and share > 0) or (text == "100.0" and share < 1):
        return "under 0.1 %" if share < 0.5 else "over 99.9 %"
    return f"{float(text):g} %"


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    known = frame.dropna(subset=["value"])
    if known.empty:
        raise InputError(f"frame of {_WHAT} must have a known norm; got none. Every query was skipped")
    if not np.isfinite(known["value"]).all() or (known["value"] < 0).any():
        raise InputError(f"norms of {_WHAT} must be numbers >= 0; got others. Use the column `tangent` of the probe")
    return known
