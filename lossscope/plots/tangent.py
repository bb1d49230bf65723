"""How strongly does the gradient turn a query, and how many does it not turn at all? (histogram of tangent norms)"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import labels, log_axis, style

COLUMNS = ("label", "value")
BINS = 40
_WIDE = 50  # times the 5 % quantile: if the 95 % quantile is above this, the axis is logarithmic
_FAR = 10  # times the median: if the largest norm is above this, it is logarithmic too
_SMALL = 1e-6  # of the median: a logarithmic axis begins here at the lowest
_ROUND = 1.001  # times the largest norm: the end of the axis
_RIGHT = 0.55  # of the axis: right of it a text stands left of its line
_LINE = 28  # letters of a line of a title: those of the next panel begin beside it
_HEADLINE = "Strength of the gradient that turns a query"
_NAME = "tangent"
_Values = npt.NDArray[np.float64]


def draw(
    frame: pd.DataFrame, ax: Axes | None = None, logarithmic: bool | None = None, colour: str | None = None
) -> Axes:
    """Is the strength of the gradient spread over queries, or do a few have all of it? One objective.

    Horizontal: norm of the part of the gradient that turns a vector on its sphere. Vertical: share of the queries in
    the bin. Queries whose norm is exactly zero are in no bin: the title states their share. The vertical line, with its
    value, is the median of the rest. Norms scale with an objective's temperature: compare shapes across objectives. A
    mass near 0 is what the Unified-loss paper calls a vanishing gradient.

    Args:
        frame: columns COLUMNS, one label; values >= 0, NaN is left out.
        ax: axes to draw on; None: new ones.
        logarithmic: kind of the horizontal axis; None: logarithmic if the norms are far apart.
        colour: of the bars; None: that of the label.
    """
    rows = _valid_rows(frame)
    label = style.single_value(rows, "label", _NAME)
    ax = style.axes_or_new(ax, _HEADLINE)
    values = rows["value"].to_numpy(np.float64)
    turned = values[values > 0]
    zero = 1 - len(turned) / len(values)
    edges = _bin_edges(turned, _far_apart(turned) if logarithmic is None else logarithmic)
    sns.histplot(
        x=values.clip(edges[0], edges[-1]), weights=(values > 0) / len(values), bins=list(edges), element="step",
        color=colour or style.colours([label])[label], alpha=0.55, linewidth=0, label=label, ax=ax,
    )  # fmt: skip
    if _is_geometric(edges):
        log_axis.set_log(ax, "x", float(edges[0]), float(edges[-1]))
    ax.set_xlim(float(edges[0]), float(edges[-1]))
    if len(turned):
        _mark_median(ax, float(np.median(turned)))
        smaller = float(((values > 0) & (values < edges[0])).mean())
        if smaller:
            _write(ax, "smaller ones too", (float(edges[1]), smaller), (3, 0), "left", "data")
    ax.set(xlabel="norm of the tangent gradient", ylabel="share of queries")
    share = f"exactly 0: {_percent(zero)} of\xa0{len(values):,}"
    ax.set_title("\n".join(style.wrap_words(text, _LINE) for text in (labels.label_text(label), share)))
    return ax


def _mark_median(ax: Axes, median: float) -> None:
    """Draw a line at the median of the norms that are not 0, and its value beside its top."""
    ax.axvline(median, color="black", linewidth=1)
    ax.margins(y=0.18)
    right = ax.transAxes.inverted().transform(ax.transData.transform((median, 0)))[0] > _RIGHT
    _write(ax, f"median {median:.2g}", (median, 1), (-3 if right else 3, -1), "right" if right else "left")


def _write(
    ax: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], side: str, y: str = "axes fraction"
) -> None:
    """Write a small text with a white edge beside a point, whose y is a share of the axes unless `y` is `data`."""
    ax.annotate(
        text, at, offset, xycoords=("data", y), textcoords="offset points", fontsize=style.small(), va="top", ha=side,
        path_effects=[patheffects.withStroke(linewidth=2, foreground="white")],
    )  # fmt: skip


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do the norms of objectives differ? A panel each, as `draw`, on an axis of one kind but with its own range.

    Norms of objectives scale differently. All axes are logarithmic if the norms of one objective are far apart.
    """
    rows = _valid_rows(frame)
    of_labels = {str(label): group for label, group in rows.groupby("label", sort=False, observed=True)}
    norms = [group["value"].to_numpy(np.float64) for group in of_labels.values()]
    logarithmic = any(_far_apart(values[values > 0]) for values in norms)
    per_row = style.panels_per_row(len(of_labels))
    n_rows = math.ceil(len(of_labels) / per_row)
    fig = style.set_headline(style.new_figure(0.15 + 0.7 * per_row, 0.75 * n_rows), _HEADLINE)
    colours = style.colours(of_labels)
    for index, (label, group) in enumerate(of_labels.items()):
        ax = draw(group, fig.add_subplot(n_rows, per_row, index + 1), logarithmic, colours[label])
        ax.set_xlabel(ax.get_xlabel() if index + per_row >= len(of_labels) else "")
        ax.set_ylabel(ax.get_ylabel() if index % per_row == 0 else "")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for label, rows in _valid_rows(frame).groupby("label", sort=False, observed=True):
        turned = rows["value"][rows["value"] > 0]
        low, middle, high = turned.quantile([0.1, 0.5, 0.9]) if len(turned) else (0.0, 0.0, 0.0)
        zero = 1 - len(turned) / len(rows)
        parts.append(
            f"{labels.in_words(str(label))}: {_percent(zero)} exactly 0, of the rest median {middle:.3g} "
            f"({low:.3g} to {high:.3g})"
        )
    return "Histograms of tangent gradient norms over queries. " + "; ".join(parts) + "."


def _far_apart(norms: _Values) -> bool:
    """Return whether a few large norms would press the others together on a linear axis."""
    if not len(norms):
        return False
    low, middle, high = np.quantile(norms, (0.05, 0.5, 0.95))
    return bool(high > _WIDE * low or float(norms.max()) * _ROUND > _FAR * middle)


def _bin_edges(norms: _Values, geometric: bool) -> _Values:
    """Return bins of equal width from 0, or of equal ratio, the first with all smaller norms."""
    if not len(norms):
        return np.linspace(0.0, 1.0, BINS + 1)
    top = float(norms.max()) * _ROUND
    if geometric:
        lowest = max(float(norms.min()), _SMALL * float(np.median(norms)))
        return np.geomspace(min(lowest, top / 2) * (2 - _ROUND), top, BINS + 1)
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
        raise InputError(f"frame of {_NAME} must have a known norm; got none. The probe skipped every query")
    if not np.isfinite(rows["value"]).all() or (rows["value"] < 0).any():
        raise InputError(f"norms of {_NAME} must be numbers >= 0; got others. Use the column `tangent` of the probe")
    return rows
