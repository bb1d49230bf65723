"""How near is the gradient with the k heaviest negatives to the whole gradient?"""

from __future__ import annotations

import re
from typing import Any

import pandas as pd
from matplotlib.axes import Axes

from lossscope.errors import InputError

from . import curve_lines, directions, labels, log_axis, naming, style

COLUMNS = ("source", "objective", "direction", "statistic", "x", "mean")
_NAME = "fidelity"
_HEADLINE = "How many negatives make the gradient"
_K = re.compile(r"k(\d+(?:\.\d+)?)")  # the statistic k95, whose share is 95 %
_WHOLE = 0.9995  # cosine from which on a line is drawn as at the top
_LEAST_TOP = 20  # k that the axis shows at least


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How many of the heaviest negatives make the gradient?

    Horizontal: k, logarithmic. Vertical: cosine of the gradient and the gradient with the k heaviest negatives alone,
    the mean over queries. The thin line is the share that the probe was asked for. A dot on it is the mean of the k at
    which single queries reach it; it may lie beside its line, which is a mean of cosines. A mean below 1 is drawn at 1,
    as the positives of most queries need no negative. Solid: image to text; dashed:
    text to image.

    Args:
        frame: columns COLUMNS, as `lossscope probe fidelity --curve FILE.csv` writes them.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE)
    colours = curve_lines.colours(list(map(str, rows["label"].unique())))
    looks = directions.styles(rows)
    for (label, direction), line in rows.groupby(["label", "direction"], sort=False, observed=True):
        look, curve = looks[str(direction)], _curve(line)
        name = f"{labels.label_text(str(label))} {direction}"
        ax.plot(curve["x"], curve["mean"], color=colours[str(label)], linestyle=look.dashes, label=name)
        for share, k in _reached(line):
            dot: dict[str, Any] = {
                "marker": look.marker,
                "markersize": 5,
                "markeredgecolor": "white",
                "zorder": 3,
                "clip_on": False,
            }
            ax.plot([max(k, 1)], [share], color=colours[str(label)], linestyle="none", **dot)
    for share in sorted({share for share, _ in _reached(rows)}):
        ax.axhline(share, color="0.75", linewidth=0.8, zorder=0)
        ax.annotate(
            f"{100 * share:g} %", (1, share), (0, -2), xycoords=("axes fraction", "data"), textcoords="offset points",
            color="0.45", fontsize=style.small(), va="top", ha="right",
        )  # fmt: skip
    _scale(ax, rows)
    ax.set(xlabel="heaviest negatives kept of each query, k", ylabel="cosine with the whole gradient")
    handles = curve_lines.handles(colours, looks)
    if in_new_figure:
        naming.legend_below(ax.figure, handles)  # type: ignore[arg-type]
    else:
        ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
    return ax


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for (label, direction), line in _valid_rows(frame).groupby(["label", "direction"], sort=False, observed=True):
        of_shares = [f"{100 * share:g} % at k = {k:.3g}" for share, k in _reached(line)]
        first = _curve(line).iloc[0]
        numbers = ", ".join([f"{first['mean']:.3f} at k = {first['x']:g}", *of_shares])
        parts.append(f"{labels.in_words(str(label))} {direction}: {numbers}")
    return "Cosine of the gradient and the gradient with the k heaviest negatives, against k. " + "; ".join(parts) + "."


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a number, with labels. Raises InputError for other columns or no cosines at a k."""
    style.require_rows(frame, COLUMNS, _NAME)
    directions.require_directions(frame)
    rows = frame.dropna(subset=["mean"])
    if _curve(rows).empty:
        raise InputError(f"frame of {_NAME} must have a cosine at a k; got none. The probe skipped every query")
    return curve_lines.with_labels(rows)


def _curve(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the points of the lines, by k."""
    return rows[(rows["statistic"] == "curve") & (rows["x"] > 0)].sort_values("x")


def _reached(rows: pd.DataFrame) -> list[tuple[float, float]]:
    """Return (share, mean k from which on it is reached) of each line."""
    found = [(_K.fullmatch(str(name)), float(k)) for name, k in zip(rows["statistic"], rows["mean"], strict=True)]
    return [(float(match[1]) / 100, k) for match, k in found if match]


def _scale(ax: Axes, rows: pd.DataFrame) -> None:
    """Show k up to where all lines are at the top; cosines from the least that is drawn."""
    curve = _curve(rows)
    below = curve.loc[curve["mean"] < _WHOLE, "x"]
    above = curve.loc[curve["x"] > below.max(), "x"] if len(below) else curve["x"]
    last = max(float(above.min()) if len(above) else float(curve["x"].max()), _LEAST_TOP)
    log_axis.set_log(ax, "x", 1, last)
    ax.set_xlim(0.93, last * 1.08)
    shown = curve.loc[curve["x"] <= last, "mean"]
    margin = 0.05 * max(1 - float(shown.min()), 0.1)
    ax.set_ylim(float(shown.min()) - margin, 1 + margin)
