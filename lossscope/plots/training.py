"""How fast do objectives converge, and does a falling loss mean better retrieval? (Unified loss, Figure 3)"""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("run", "epoch", "split", "loss", "rsum")
VALUES = ("loss", "rsum")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_NAME = "training"


def draw(frame: pd.DataFrame, ax: Axes | None = None, value: str = "rsum") -> Axes:
    """How does the loss, or rsum, change over epochs? A line per run; runs with one label share colour and dashes.

    rsum is that of the validation split if there is one. The loss is that of the training steps, divided by its first
    value, which the legend states: losses of different objectives are different quantities, so only how they fall
    compares, not where they are. Its axis is logarithmic if all values are positive. A run whose loss falls fast is not
    necessarily the better model: compare the rsum.

    Args:
        frame: columns COLUMNS, as `Run.curves` returns them, and `label`; the name of the run if there is none.
        ax: axes to draw on; None: new ones.
        value: loss or rsum.
    """
    rows = _with_labels(frame)
    if value not in VALUES:
        raise InputError(f"value must be loss or rsum; got {value!r}")
    ax = style.axes_or_new(ax)
    _draw_panel(ax, rows, value)
    ax.legend(handles=_handles(rows, value), loc="best", fontsize="small")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Does a falling loss (left) mean a better rsum (right)? Figure 3 of the Unified-loss paper; panels as `draw`."""
    rows = _with_labels(frame)
    fig = style.new_figure(width=1.9, height=0.85)
    for index, value in enumerate(VALUES):
        _draw_panel(fig.add_subplot(1, 2, index + 1), rows, value)
    naming.legend_below(fig, _handles(rows, "loss"))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for run, rows in _with_labels(frame).groupby("run", sort=False, observed=True):
        loss, rsum = _line(rows, "loss"), _line(rows, "rsum")
        text = f"{run}:"
        if len(loss):
            text += f" loss {loss['loss'].iloc[0]:.3g} to {loss['loss'].iloc[-1]:.3g},"
        if len(rsum):
            best = rsum.iloc[int(rsum["rsum"].to_numpy().argmax())]
            text += f" best rsum {best['rsum']:.1f} at epoch {best['epoch']:g}"
        parts.append(text)
    return "Loss and rsum against epochs. " + "; ".join(parts) + "."


def _draw_panel(ax: Axes, rows: pd.DataFrame, value: str) -> None:
    styles = _line_styles(rows)
    smallest = np.inf
    for (label, _), of_run in rows.groupby(["label", "run"], sort=False, observed=True):
        line = _line(of_run, value)
        if line.empty:
            continue
        numbers = line[value].to_numpy(float) / (line[value].iloc[0] if value == "loss" else 1.0)
        colour, dashes = styles[str(label)]
        marker = "o" if len(line) < 3 else ""
        ax.plot(line["epoch"], numbers, color=colour, linestyle=dashes, marker=marker, label=label)
        smallest = min(smallest, float(numbers.min()))
    if value == "loss" and 0 < smallest < np.inf:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
        ax.yaxis.set_minor_formatter(lambda tick, _: "")
    ax.set(xlabel="epoch", ylabel="training loss / its first value" if value == "loss" else "rsum")


def _line(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return the points of one run: rsum of the validation split, or loss of training, if it has that split."""
    rows = rows.dropna(subset=[value]).sort_values("epoch")
    of_split = rows[rows["split"] == ("train" if value == "loss" else "val")]
    return of_split if len(of_split) else rows


def _line_styles(rows: pd.DataFrame) -> dict[str, tuple[str, object]]:
    """Return the colour and dashes of each label."""
    colours = style.colours(list(map(str, rows["label"].unique())))
    return {label: (colour, _DASHES[index % len(_DASHES)]) for index, (label, colour) in enumerate(colours.items())}


def _handles(rows: pd.DataFrame, value: str) -> list[Line2D]:
    handles = []
    for label, (colour, dashes) in _line_styles(rows).items():
        runs = [run for _, run in rows[rows["label"] == label].groupby("run", sort=False, observed=True)]
        first = [float(line["loss"].iloc[0]) for line in (_line(run, "loss") for run in runs) if len(line)]
        text = label
        if value == "loss" and first:
            text += f" (loss from {min(first):.3g}{f' to {max(first):.3g}' if len(set(first)) > 1 else ''})"
        handles.append(Line2D([], [], color=colour, linestyle=dashes, label=text))  # type: ignore[arg-type]
    return handles


def _with_labels(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with the column `label`. Raises InputError for other columns, or without a loss or an rsum."""
    style.require_rows(frame, COLUMNS, _NAME)
    if frame[["loss", "rsum"]].isna().all(axis=None):
        raise InputError(f"frame of {_NAME} must have a loss or an rsum; got none. Read a run with Run.curves")
    return frame if "label" in frame else frame.assign(label=frame["run"].astype(str))
