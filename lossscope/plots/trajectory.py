"""How do the similarities of positives and hardest negatives move in training? (Unified loss, Figure 4)"""

from __future__ import annotations

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from . import naming, style

PARTS = ("mean", "q10", "q50", "q90")
COLUMNS = (
    "run",
    "epoch",
    "split",
    "loss",
    "rsum",
    *(f"{side}_{part}" for side in ("pos", "neg") for part in PARTS),
)
_SIDES = {"pos": ("positive", "#0072B2", "-"), "neg": ("hardest negative", "#D55E00", (0, (5, 2)))}
_SPLITS = {"train": (0, (5, 2)), "val": "-"}
_NAME = "trajectory"


def draw(frame: pd.DataFrame, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Do positives and hardest negatives separate? Horizontal: epochs. Vertical: similarity.

    Lines are medians, bands hold the middle 80 % (10 % to 90 %). Two lines that climb together to 1 are a collapse:
    there the gradients of losses of differences vanish. Bands that stop overlapping are a model that ranks. One panel
    of Figure 4 of the Unified-loss paper, of the validation split if it is known, else of the training split.

    Args:
        frame: columns COLUMNS, of one run; unknown values are NaN.
        ax: axes to draw on; None: new ones.
        legend: add a legend.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    run = style.single_value(frame, "run", _NAME)
    ax = style.axes_or_new(ax)
    rows = _similarities(frame)
    for side, (name, colour, dashes) in _SIDES.items():
        middle = rows[f"{side}_q50"].fillna(rows[f"{side}_mean"])
        ax.plot(rows["epoch"], middle, color=colour, linestyle=dashes, marker=_marker(rows), label=name)
        ax.fill_between(rows["epoch"], rows[f"{side}_q10"], rows[f"{side}_q90"], color=colour, alpha=0.18, lw=0)
    ax.set(xlabel="epoch", ylabel="similarity")
    ax.set_title(style.wrap_spec(run, 26))
    if legend:
        ax.legend(loc="best")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Which run separates positives from negatives, and does that show in loss and rsum?

    Top: one panel of `draw` per run on shared axes. Under each: its loss on its own scale (losses of different
    objectives do not compare), logarithmic if all values are positive. Bottom: rsum of all runs together. Figures 3 and
    4 of the Unified-loss paper in one.

    Args:
        frame: columns COLUMNS; unknown values are NaN.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    runs = list(map(str, frame["run"].unique()))
    per_row = style.panels_per_row(len(runs))
    blocks = math.ceil(len(runs) / per_row)
    fig = style.new_figure(width=0.25 + 0.7 * per_row, height=0.65 + 0.95 * blocks)
    grid = fig.add_gridspec(2 * blocks + 1, per_row, height_ratios=[1.5, 0.9] * blocks + [1.5])
    first: Axes | None = None
    for index, run in enumerate(runs):
        block, column = divmod(index, per_row)
        of_run = frame[frame["run"].astype(str) == run]
        ax = fig.add_subplot(grid[2 * block, column], sharex=first, sharey=first)
        first = first or ax
        draw(of_run, ax, legend=False).set(xlabel="", ylabel="similarity" if column == 0 else "")
        _draw_loss(of_run, fig.add_subplot(grid[2 * block + 1, column], sharex=first), column == 0)
    assert first is not None
    _draw_rsum(frame, fig.add_subplot(grid[-1, :]), runs)
    handles, names = first.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper left", ncols=2)
    return fig


def draw_panels(frame: pd.DataFrame) -> Figure:
    """Which objective separates positives from hardest negatives? A panel of `draw` per run, on shared axes.

    Figure 4 of the Unified-loss paper: similarities of the validation split against epochs.

    Args:
        frame: columns COLUMNS; unknown values are NaN.
    """
    style.require_rows(frame, COLUMNS, _NAME)
    runs = list(map(str, frame["run"].unique()))
    per_row = style.panels_per_row(len(runs))
    n_rows = math.ceil(len(runs) / per_row)
    fig = style.new_figure(width=0.2 + 0.65 * per_row, height=0.8 * n_rows)
    first: Axes | None = None
    for index, run in enumerate(runs):
        ax = fig.add_subplot(n_rows, per_row, index + 1, sharex=first, sharey=first)
        first = first or ax
        draw(frame[frame["run"].astype(str) == run], ax, legend=False)
        ax.set_xlabel("epoch" if index + per_row >= len(runs) else "")
        ax.set_ylabel("similarity" if index % per_row == 0 else "")
    assert first is not None
    naming.legend_below(fig, first.get_lines(), "Medians; bands hold the middle 80 % of the queries")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    style.require_rows(frame, COLUMNS, _NAME)
    parts = []
    for run, rows in frame.groupby("run", sort=False, observed=True):
        last = _similarities(rows).iloc[-1]
        text = f"{run}: at epoch {last['epoch']:g} positives {last['pos_mean']:.2f}, "
        text += f"hardest negatives {last['neg_mean']:.2f}"
        best = rows["rsum"].max()
        parts.append(text + (f", best rsum {best:.1f}" if pd.notna(best) else ""))
    return "Similarity of positives and hardest negatives against epochs. " + "; ".join(parts) + "."


def _similarities(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the validation split if its similarities are known, else of training, by epoch."""
    has_similarities = frame["pos_q50"].notna() | frame["pos_mean"].notna()
    val = frame[(frame["split"] == "val") & has_similarities]
    rows = val if not val.empty else frame[frame["split"] == "train"]
    return (rows if not rows.empty else frame).sort_values("epoch")


def _draw_loss(frame: pd.DataFrame, ax: Axes, first: bool) -> None:
    """Draw the loss of each split of a run; `first` is the panel with a label on its vertical axis."""
    losses = frame.dropna(subset=["loss"]).sort_values("epoch")
    several = losses["split"].nunique() > 1
    for split, rows in losses.groupby("split", observed=True):
        dashes = _SPLITS.get(str(split), "-") if several else "-"
        ax.plot(rows["epoch"], rows["loss"], color="0.25", linestyle=dashes, label=str(split))
    if not losses.empty and (losses["loss"] > 0).all():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=5))
        ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
        ax.minorticks_off()
    name = "training loss" if set(losses["split"]) == {"train"} else "loss"
    ax.set(xlabel="epoch", ylabel=name if first else "")
    if several:
        ax.legend(loc="best", fontsize="small")


def _draw_rsum(frame: pd.DataFrame, ax: Axes, runs: list[str]) -> None:
    colours = style.colours(runs)
    ends: list[tuple[float, float, str, str]] = []
    for run in runs:
        rows = frame[(frame["run"].astype(str) == run)].dropna(subset=["rsum"]).sort_values("epoch")
        rows = rows[rows["split"] == "val"] if (rows["split"] == "val").any() else rows
        ax.plot(rows["epoch"], rows["rsum"], color=colours[run], marker=_marker(rows), label=run)
        if not rows.empty:
            ends.append((float(rows["epoch"].iloc[-1]), float(rows["rsum"].iloc[-1]), run, colours[run]))
    ax.set(xlabel="epoch", ylabel="rsum")
    if ends:
        naming.end_labels(ax, *map(list, zip(*ends, strict=True)))


def _marker(rows: pd.DataFrame) -> str:
    """Return a marker for lines that are too short to be seen without."""
    return "o" if len(rows) < 3 else ""
