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
_WHAT = "training"


def draw(frame: pd.DataFrame, ax: Axes | None = None, value: str = "rsum") -> Axes:
    """Loss or rsum against epochs, a line per run; runs with one `label` (seeds) share colour and dashes.

    rsum: of the validation split where there is one. loss: of the training steps, divided by its first value, which
    the legend states: losses of different objectives are different quantities, so only how they fall compares, not
    where they are; a logarithmic axis where all are positive. A line that falls fast is no better a model: read the
    rsum beside it. Columns: see `COLUMNS`, as `Run.curves` gives them; label is the run's name where it is not there.
    """
    known = _known(frame)
    if value not in VALUES:
        raise InputError(f"value must be loss or rsum; got {value!r}")
    ax = style.axes_or_new(ax)
    _paint(ax, known, value)
    ax.legend(handles=_handles(known, value), loc="best", fontsize="small")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Left the loss, right the rsum (Figure 3 of the Unified-loss paper). Read as `draw`."""
    known = _known(frame)
    fig = style.new_figure(width=1.9, height=0.85)
    for place, value in enumerate(VALUES):
        _paint(fig.add_subplot(1, 2, place + 1), known, value)
    naming.legend_below(fig, _handles(known, "loss"))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for run, rows in _known(frame).groupby("run", sort=False, observed=True):
        loss, rsum = _line(rows, "loss"), _line(rows, "rsum")
        text = f"{run}:"
        if len(loss):
            text += f" loss {loss['loss'].iloc[0]:.3g} to {loss['loss'].iloc[-1]:.3g},"
        if len(rsum):
            best = rsum.iloc[int(rsum["rsum"].to_numpy().argmax())]
            text += f" best rsum {best['rsum']:.1f} at epoch {best['epoch']:g}"
        parts.append(text)
    return "Loss and rsum against epochs. " + "; ".join(parts) + "."


def _paint(ax: Axes, known: pd.DataFrame, value: str) -> None:
    looks = _looks(known)
    least = np.inf
    for (label, _), rows in known.groupby(["label", "run"], sort=False, observed=True):
        line = _line(rows, value)
        if line.empty:
            continue
        numbers = line[value].to_numpy(float) / (line[value].iloc[0] if value == "loss" else 1.0)
        tint, dash = looks[str(label)]
        ax.plot(line["epoch"], numbers, color=tint, linestyle=dash, marker="o" if len(line) < 3 else "", label=label)
        least = min(least, float(numbers.min()))
    if value == "loss" and 0 < least < np.inf:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
        ax.yaxis.set_minor_formatter(lambda tick, _: "")
    ax.set(xlabel="epoch", ylabel="training loss / its first value" if value == "loss" else "rsum")


def _line(rows: pd.DataFrame, value: str) -> pd.DataFrame:
    """The points of one run: rsum of the validation split if there is one, loss of training if there is one."""
    known = rows.dropna(subset=[value]).sort_values("epoch")
    wanted = known[known["split"] == ("train" if value == "loss" else "val")]
    return wanted if len(wanted) else known


def _looks(known: pd.DataFrame) -> dict[str, tuple[str, object]]:
    tints = style.colours(list(map(str, known["label"].unique())))
    return {label: (tint, _DASHES[place % len(_DASHES)]) for place, (label, tint) in enumerate(tints.items())}


def _handles(known: pd.DataFrame, value: str) -> list[Line2D]:
    handles = []
    for label, (tint, dash) in _looks(known).items():
        runs = [rows for _, rows in known[known["label"] == label].groupby("run", sort=False, observed=True)]
        firsts = [float(line["loss"].iloc[0]) for line in (_line(rows, "loss") for rows in runs) if len(line)]
        told = ""
        if value == "loss" and firsts:
            told = f" (loss from {min(firsts):.3g}{f' to {max(firsts):.3g}' if len(set(firsts)) > 1 else ''})"
        handles.append(Line2D([], [], color=tint, linestyle=dash, label=f"{label}{told}"))  # type: ignore[arg-type]
    return handles


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    if frame[["loss", "rsum"]].isna().all(axis=None):
        raise InputError(f"frame of {_WHAT} must have a loss or an rsum; got none. Read a run with Run.curves")
    return frame if "label" in frame else frame.assign(label=frame["run"].astype(str))
