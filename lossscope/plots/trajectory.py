"""How do the similarities of positives and hardest negatives move in training? (Unified loss, Figure 4)"""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from lossscope.io.scores import as_rsum, score_of

from . import labels, log_axis, naming, style, warmup

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
_BANDS = "Medians; bands hold the middle 80 % of the queries"
_NAME = "trajectory"


def draw(frame: pd.DataFrame, ax: Axes | None = None, legend: bool = True, title: str | None = None) -> Axes:
    """Do positives and hardest negatives separate? Horizontal: epochs. Vertical: similarity.

    Lines are medians, bands hold the middle 80 % (10 % to 90 %). Two lines that climb together to 1 are a collapse:
    there the gradients of losses of differences vanish. Bands that stop overlapping are a model that ranks. The epochs
    of a warm-up with another loss are shaded. One panel of Figure 4 of the Unified-loss paper, of the validation split
    if it is known, else of the training split.

    Args:
        frame: columns COLUMNS, of one run, and `warmup` where there is one (`Run.curves`); unknown values are NaN.
            `nDCG@10` may take the place of rsum.
        ax: axes to draw on; None: new ones.
        legend: add a legend.
        title: of the panel; None: the name of the run.
    """
    frame = as_rsum(frame)
    style.require_rows(frame, COLUMNS, _NAME)
    run = style.single_value(frame, "run", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _headline(frame))
    rows = _similarities(frame)
    warmup.shade(ax, warmup.warmups(frame, "run"))
    for side, (name, colour, dashes) in _SIDES.items():
        middle = rows[f"{side}_q50"].fillna(rows[f"{side}_mean"])
        ax.plot(rows["epoch"], middle, color=colour, linestyle=dashes, marker=_marker(rows), label=name)
        ax.fill_between(rows["epoch"], rows[f"{side}_q10"], rows[f"{side}_q90"], color=colour, alpha=0.18, lw=0)
    style.set_epochs(ax, rows["epoch"])
    ax.set_ylabel("similarity")
    ax.set_title(style.wrap_words(labels.label_text(labels.shortest_names([run])[run] if title is None else title), 26))
    if legend and in_new_figure:
        naming.legend_below(ax.figure, _handles(frame, ax), _BANDS)  # type: ignore[arg-type]
    elif legend:
        ax.legend(handles=_handles(frame, ax), loc="best", fontsize=style.small())
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Which run separates positives from negatives, and does that show in loss and rsum?

    Top: one panel of `draw` per run on shared axes. Under each: its loss in training and on the validation split, on a
    scale of its own (losses of different objectives do not compare, nor training losses in and after a warm-up),
    logarithmic if they are a decade apart. Bottom: rsum of all runs together. Figures 3 and 4 of the Unified-loss paper
    in one.

    Args:
        frame: columns COLUMNS; unknown values are NaN.
    """
    frame, score = as_rsum(frame), score_of(frame.columns).name
    style.require_rows(frame, COLUMNS, _NAME)
    names = labels.shortest_names(frame["run"].unique())
    per_row = style.panels_per_row(len(names))
    blocks = math.ceil(len(names) / per_row)
    fig = style.new_figure(width=0.25 + 0.7 * per_row, height=0.65 + 0.95 * blocks)
    style.set_headline(fig, f"Similarity of positives and hardest negatives, loss and {score}")
    grid = fig.add_gridspec(2 * blocks + 1, per_row, height_ratios=[1.5, 0.9] * blocks + [1.5])
    first: Axes | None = None
    for index, (run, name) in enumerate(names.items()):
        block, column = divmod(index, per_row)
        of_run = frame[frame["run"].astype(str) == run]
        ax = fig.add_subplot(grid[2 * block, column], sharex=first, sharey=first)
        first = first or ax
        draw(of_run, ax, legend=False, title=name).set(xlabel="", ylabel="similarity" if column == 0 else "")
        _draw_loss(of_run, fig.add_subplot(grid[2 * block + 1, column], sharex=first), column == 0)
    assert first is not None
    style.set_epochs(first, frame["epoch"])
    first.set_xlabel("")
    _draw_score(frame, fig.add_subplot(grid[-1, :]), names, score)
    naming.legend_below(fig, _handles(frame, first), _BANDS)
    return fig


def draw_panels(frame: pd.DataFrame) -> Figure:
    """Which objective separates positives from hardest negatives? A panel of `draw` per run, on shared axes.

    Figure 4 of the Unified-loss paper: similarities of the validation split against epochs.

    Args:
        frame: columns COLUMNS; unknown values are NaN.
    """
    frame = as_rsum(frame)
    style.require_rows(frame, COLUMNS, _NAME)
    names = labels.shortest_names(frame["run"].unique())
    per_row = style.panels_per_row(len(names))
    n_rows = math.ceil(len(names) / per_row)
    fig = style.set_headline(style.new_figure(0.2 + 0.65 * per_row, 0.8 * n_rows), _headline(frame))
    first: Axes | None = None
    for index, (run, name) in enumerate(names.items()):
        ax = fig.add_subplot(n_rows, per_row, index + 1, sharex=first, sharey=first)
        first = first or ax
        draw(frame[frame["run"].astype(str) == run], ax, legend=False, title=name)
        ax.set_xlabel("epoch" if index + per_row >= len(names) else "")
        ax.set_ylabel("similarity" if index % per_row == 0 else "")
    assert first is not None
    naming.legend_below(fig, _handles(frame, first), _BANDS)
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    frame, score = as_rsum(frame), score_of(frame.columns)
    style.require_rows(frame, COLUMNS, _NAME)
    parts, names = [], labels.shortest_names(frame["run"].unique())
    for run, rows in frame.groupby("run", sort=False, observed=True):
        last = _similarities(rows).iloc[-1]
        text = f"{labels.in_words(names[str(run)])}: at epoch {last['epoch']:g} positives {last['pos_mean']:.2f}, "
        text += f"hardest negatives {last['neg_mean']:.2f}"
        best = rows["rsum"].max()
        parts.append(text + (f", best {score.name} {score.number(best)}" if pd.notna(best) else ""))
    return "Similarity of positives and hardest negatives against epochs. " + "; ".join(parts) + "."


def _headline(frame: pd.DataFrame) -> str:
    split = _similarities(frame)["split"].iloc[0]
    named = {"val": "on the validation split", "train": "on batches of the training split"}.get(str(split), "")
    return f"Similarity of positives and hardest negatives {named}".rstrip()


def _handles(frame: pd.DataFrame, panel: Axes) -> list[Artist]:
    """Return the two lines of a panel, and the warm-ups of all runs."""
    names = labels.shortest_names(frame["run"].unique())
    lines = [line for line in panel.get_lines() if line.get_label() in {name for name, _, _ in _SIDES.values()}]
    named = frame.assign(run=frame["run"].astype(str).map(names))
    return [*lines, *warmup.handles(warmup.warmups(named, "run"), several=len(names) > 1)]


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
    warmup.shade(ax, warmup.warmups(frame, "run"))
    for split, rows in losses.groupby("split", observed=True):
        dashes = _SPLITS.get(str(split), "-") if several else "-"
        for index, part in enumerate([rows] if split == "val" else warmup.phases(rows)):
            name = labels.plain_text(str(split)) if index == 0 else "_"
            ax.plot(part["epoch"], part["loss"], color="0.25", linestyle=dashes, label=name)
    low, high = losses["loss"].min(), losses["loss"].max()
    if not losses.empty and log_axis.is_wide(low, high):
        log_axis.set_log(ax, "y", low, high)
    else:
        ax.yaxis.set_major_locator(MaxNLocator(3))
    name = "training loss" if set(losses["split"]) == {"train"} else "loss"
    ax.set(xlabel="epoch", ylabel=name if first else "")
    if several:
        lines = [
            line
            for line in ax.get_lines()
            if line.get_label() in {labels.plain_text(str(split)) for split in losses["split"]}
        ]
        ax.legend(handles=lines, loc="best", fontsize=style.small())


def _draw_score(frame: pd.DataFrame, ax: Axes, names: Mapping[str, str], score: str) -> None:
    """Draw the score of the runs, run -> its name."""
    colours = style.colours(names.values())
    ends: list[tuple[float, float, str, str]] = []
    for run, name in names.items():
        rows = frame[(frame["run"].astype(str) == run)].dropna(subset=["rsum"]).sort_values("epoch")
        rows = rows[rows["split"] == "val"] if (rows["split"] == "val").any() else rows
        ax.plot(rows["epoch"], rows["rsum"], color=colours[name], marker=_marker(rows), label=run)
        if not rows.empty:
            ends.append(
                (float(rows["epoch"].iloc[-1]), float(rows["rsum"].iloc[-1]), labels.label_text(name), colours[name])
            )
    style.set_epochs(ax, frame["epoch"])
    ax.set_ylabel(score)
    if ends:
        naming.end_labels(ax, *map(list, zip(*ends, strict=True)))


def _marker(rows: pd.DataFrame) -> str:
    """Return a marker for lines that are too short to be seen without."""
    return "o" if len(rows) < 3 else ""
