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
_WHAT = "trajectory"


def draw(frame: pd.DataFrame, ax: Axes | None = None, legend: bool = True) -> Axes:
    """Do positives and hardest negatives come apart? Read across: epochs; up: similarity.

    Lines are medians, bands hold the middle 80 % (10 % to 90 %). Two lines that climb together to 1 are a
    collapse: gradients of differences vanish there. Bands that stop overlapping are a model that ranks. As
    one panel of Figure 4 of the Unified-loss paper; the validation split is drawn where it is known, else
    the training split. Columns: see `COLUMNS`; unknown values are NaN.
    """
    style.require_columns(frame, COLUMNS, _WHAT)
    run = style.single_value(frame, "run", _WHAT)
    ax = style.axes_or_new(ax)
    known = _similarities(frame)
    for side, (name, tint, dash) in _SIDES.items():
        middle = known[f"{side}_q50"].fillna(known[f"{side}_mean"])
        ax.plot(known["epoch"], middle, color=tint, linestyle=dash, marker=_marker(known), label=name)
        ax.fill_between(known["epoch"], known[f"{side}_q10"], known[f"{side}_q90"], color=tint, alpha=0.18, lw=0)
    ax.set(xlabel="epoch", ylabel="similarity")
    ax.set_title(style.wrap_spec(run, 26))
    if legend:
        ax.legend(loc="best")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Which run separates pairs, and does that show in loss and rsum?

    Top: one panel of `draw` per run on shared axes. Under each: its loss on a scale of its own (losses of
    different objectives do not compare), logarithmic when all values are positive. Bottom: rsum of all runs
    together. Figures 3 and 4 of the Unified-loss paper in one.
    """
    style.require_columns(frame, COLUMNS, _WHAT)
    runs = list(map(str, frame["run"].unique()))
    across = style.panels_per_row(len(runs))
    blocks = math.ceil(len(runs) / across)
    fig = style.new_figure(width=0.25 + 0.7 * across, height=0.65 + 0.95 * blocks)
    grid = fig.add_gridspec(2 * blocks + 1, across, height_ratios=[1.5, 0.9] * blocks + [1.5])
    first: Axes | None = None
    for place, run in enumerate(runs):
        row, column = divmod(place, across)
        one = frame[frame["run"].astype(str) == run]
        ax = fig.add_subplot(grid[2 * row, column], sharex=first, sharey=first)
        first = first or ax
        draw(one, ax, legend=False).set(xlabel="", ylabel="similarity" if column == 0 else "")
        _loss(one, fig.add_subplot(grid[2 * row + 1, column], sharex=first), column == 0)
    assert first is not None
    _rsum(frame, fig.add_subplot(grid[-1, :]), runs)
    handles, names = first.get_legend_handles_labels()
    fig.legend(handles, names, loc="outside upper left", ncols=2)
    return fig


def draw_panels(frame: pd.DataFrame) -> Figure:
    """Which objective tells positives and hardest negatives apart? A panel of `draw` per run, on shared axes.

    Figure 4 of the Unified-loss paper: similarities of the validation split against epochs.
    """
    style.require_columns(frame, COLUMNS, _WHAT)
    runs = list(map(str, frame["run"].unique()))
    across = style.panels_per_row(len(runs))
    down = math.ceil(len(runs) / across)
    fig = style.new_figure(width=0.2 + 0.65 * across, height=0.8 * down)
    first: Axes | None = None
    for place, run in enumerate(runs):
        ax = fig.add_subplot(down, across, place + 1, sharex=first, sharey=first)
        first = first or ax
        draw(frame[frame["run"].astype(str) == run], ax, legend=False)
        ax.set_xlabel("epoch" if place + across >= len(runs) else "")
        ax.set_ylabel("similarity" if place % across == 0 else "")
    assert first is not None
    naming.legend_below(fig, first.get_lines(), "Medians; bands hold the middle 80 % of the queries")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    style.require_columns(frame, COLUMNS, _WHAT)
    parts = []
    for run, rows in frame.groupby("run", sort=False, observed=True):
        known = _similarities(rows)
        last = known.iloc[-1]
        text = f"{run}: at epoch {last['epoch']:g} positives {last['pos_mean']:.2f}, "
        text += f"hardest negatives {last['neg_mean']:.2f}"
        best = rows["rsum"].max()
        parts.append(text + (f", best rsum {best:.1f}" if pd.notna(best) else ""))
    return "Similarity of positives and hardest negatives against epochs. " + "; ".join(parts) + "."


def _similarities(frame: pd.DataFrame) -> pd.DataFrame:
    middle = frame["pos_q50"].notna() | frame["pos_mean"].notna()
    val = frame[(frame["split"] == "val") & middle]
    rows = val if not val.empty else frame[frame["split"] == "train"]
    return (rows if not rows.empty else frame).sort_values("epoch")


def _loss(frame: pd.DataFrame, ax: Axes, first: bool) -> None:
    known = frame.dropna(subset=["loss"]).sort_values("epoch")
    several = known["split"].nunique() > 1
    for split, rows in known.groupby("split", observed=True):
        ax.plot(
            rows["epoch"],
            rows["loss"],
            color="0.25",
            linestyle=_SPLITS.get(str(split), "-") if several else "-",
            label=str(split),
        )
    if not known.empty and (known["loss"] > 0).all():
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 3.0), numticks=5))
        ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
        ax.minorticks_off()
    what = "training loss" if set(known["split"]) == {"train"} else "loss"
    ax.set(xlabel="epoch", ylabel=what if first else "")
    if several:
        ax.legend(loc="best", fontsize="small")


def _rsum(frame: pd.DataFrame, ax: Axes, runs: list[str]) -> None:
    tints = style.colours(runs)
    ends: list[tuple[float, float, str, str]] = []
    for run in runs:
        rows = frame[(frame["run"].astype(str) == run)].dropna(subset=["rsum"]).sort_values("epoch")
        rows = rows[rows["split"] == "val"] if (rows["split"] == "val").any() else rows
        ax.plot(rows["epoch"], rows["rsum"], color=tints[run], marker=_marker(rows), label=run)
        if not rows.empty:
            ends.append((float(rows["epoch"].iloc[-1]), float(rows["rsum"].iloc[-1]), run, tints[run]))
    ax.set(xlabel="epoch", ylabel="rsum")
    if ends:
        naming.end_labels(ax, *map(list, zip(*ends, strict=True)))


def _marker(rows: pd.DataFrame) -> str:
    return "o" if len(rows) < 3 else ""
