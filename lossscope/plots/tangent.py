"""How strongly does the gradient turn a query, and how many does it not turn at all? (histogram of tangent norms)"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import style

COLUMNS = ("label", "value")
BINS = 40
_WIDE = 50  # times the 5 % quantile: if the 95 % quantile is above this, the axis is logarithmic
_FAR = 10  # times the median: if the largest norm is above this, it is logarithmic too
_SMALL = 1e-6  # of the median: a logarithmic axis begins here at the lowest
_NAME = "tangent"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Is the strength of the gradient spread over queries, or do a few have all of it? One objective.

    Horizontal: norm of the part of the gradient that turns a vector on its sphere. Vertical: share of the queries in
    the bin. Queries whose norm is exactly zero are in no bin: the title states their share. The vertical line is the
    median of the rest. Norms scale with an objective's temperature: compare shapes across objectives. A mass near 0 is
    what the Unified-loss paper calls a vanishing gradient.

    Args:
        frame: columns COLUMNS, one label; values >= 0, NaN is left out.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    label = style.single_value(rows, "label", _NAME)
    ax = style.axes_or_new(ax)
    values = rows["value"].to_numpy(np.float64)
    turned = values[values > 0]
    zero = 1 - len(turned) / len(values)
    edges = _bin_edges(turned)
    sns.histplot(
        x=values.clip(edges[0], edges[-1]), weights=(values > 0) / len(values), bins=list(edges), element="step",
        color=style.colours([label])[label], alpha=0.55, linewidth=0, label=label, ax=ax,
    )  # fmt: skip
    if len(turned):
        ax.axvline(float(np.median(turned)), color="black", linewidth=1)
    if _is_geometric(edges):
        ax.set_xscale("log")
    ax.set_xlim(float(edges[0]), float(edges[-1]))
    ax.set(xlabel="norm of the tangent gradient", ylabel="share of queries")
    ax.set_title(f"{style.wrap_spec(label, 30)}\nexactly 0: {_percent(zero)} of {len(values):,}")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do the norms of objectives differ? A panel each, as `draw`, with its own axis, as norms scale differently."""
    rows = _valid_rows(frame)
    labels = list(rows["label"].unique())
    per_row = style.panels_per_row(len(labels))
    n_rows = math.ceil(len(labels) / per_row)
    fig = style.new_figure(width=0.15 + 0.7 * per_row, height=0.75 * n_rows)
    for index, label in enumerate(labels):
        ax = draw(rows[rows["label"] == label], fig.add_subplot(n_rows, per_row, index + 1))
        ax.set_xlabel(ax.get_xlabel() if index + per_row >= len(labels) else "")
        ax.set_ylabel(ax.get_ylabel() if index % per_row == 0 else "")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for label, rows in _valid_rows(frame).groupby("label", sort=False, observed=True):
        turned = rows["value"][rows["value"] > 0]
        low, middle, high = turned.quantile([0.1, 0.5, 0.9]) if len(turned) else (0.0, 0.0, 0.0)
        zero = 1 - len(turned) / len(rows)
        parts.append(f"{label}: {_percent(zero)} exactly 0, of the rest median {middle:.3g} ({low:.3g} to {high:.3g})")
    return "Histograms of tangent gradient norms over queries. " + "; ".join(parts) + "."


def _bin_edges(norms: _Values) -> _Values:
    """Return bins of equal width from 0; of equal ratio if norms are far apart, the first with all smaller ones."""
    if not len(norms):
        return np.linspace(0.0, 1.0, BINS + 1)
    low, middle, high = np.quantile(norms, (0.05, 0.5, 0.95))
    top = float(norms.max()) * 1.001
    if high > _WIDE * low or top > _FAR * middle:
        return np.geomspace(max(float(norms.min()), _SMALL * middle) * 0.999, top, BINS + 1)
    return np.linspace(0.0, top, BINS + 1)


def _is_geometric(edges: _Values) -> bool:
    return bool(edges[0] > 0)


def _percent(share: float) -> str:
    """Return a percentage, `0 %` and `100 %` only if it is exactly none or all."""
    text = f"{100 * share:.1f}"
    if (text == "0.0" and share > 0) or (text == "100.0" and share < 1):
        return "under 0.1 %" if share < 0.5 else "over 99.9 %"
    return f"{float(text):g} %"


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a norm. Raises InputError for other columns, norms that are not >= 0, or no rows."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame.dropna(subset=["value"])
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a known norm; got none. Every query was skipped")
    if not np.isfinite(rows["value"]).all() or (rows["value"] < 0).any():
        raise InputError(f"norms of {_NAME} must be numbers >= 0; got others. Use the column `tangent` of the probe")
    return rows
