"""Do objectives that count fewer negatives retrieve better, whatever the data and the model? (count against recall)"""

from __future__ import annotations

import math
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError
from lossscope.io.scores import as_rsum, score_of

from . import directions, labels, naming, style

COLUMNS = ("label", "panel", "direction", "seed", "count", "rsum")
_FEW = 5  # seeds: a deviation of fewer is a rough estimate
_HEADLINE = "Samples that count against retrieval ({score})"
_NAME = "count_recall"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Does a smaller count go with a better rsum, or nDCG@10? One panel: one model on one data set, several objectives.

    Horizontal: negatives per query that carry gradient, linear up to 1 and logarithmic beyond. Vertical: rsum. Each
    mark is the mean over seeds, with bars of one sample standard deviation (ddof 1), which is no interval of the mean;
    none for one seed or equal ones. The faint marks are the seeds. Circles are image-to-text queries, squares
    text-to-image queries of the same models, which lie within the circle where both are equal; a thin line joins them.
    The argument of the COCOS paper (Tables 1 to 4) is that rsum falls from left to right.

    Args:
        frame: columns COLUMNS, of one panel; `nDCG@10` may take the place of rsum.
        ax: axes to draw on; None: new ones.
    """
    rows, score = _valid_rows(frame), score_of(frame.columns).name
    panel = style.single_value(rows, "panel", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE.format(score=score))
    colours = style.colours(list(map(str, rows["label"].unique())))
    _draw_marks(ax, rows, colours)
    _scale_counts(ax, float(rows["count"].max()))
    ax.set(xlabel="samples counted per query", ylabel=score)
    ax.set_title(style.wrap_words(labels.plain_text(panel), 40))
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(colours, rows), _number_of_seeds(rows))  # type: ignore[arg-type]
    else:
        ax.legend(handles=_handles(colours, rows), loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Where does it hold, and where is it reversed? A panel for each data set or model, with one scale of counts."""
    rows, score = _valid_rows(frame), score_of(frame.columns).name
    panels = list(rows["panel"].unique())
    per_row = style.panels_per_row(len(panels))
    n_rows = math.ceil(len(panels) / per_row)
    fig = style.set_headline(
        style.new_figure(width=0.2 + 0.7 * per_row, height=0.85 * n_rows), _HEADLINE.format(score=score)
    )
    colours = style.colours(list(map(str, rows["label"].unique())))
    for index, panel in enumerate(panels):
        ax = fig.add_subplot(n_rows, per_row, index + 1)
        _draw_marks(ax, rows[rows["panel"] == panel], colours)
        _scale_counts(ax, float(rows["count"].max()))
        ax.set_title(style.wrap_words(labels.plain_text(str(panel)), 26))
        ax.set_xlabel("samples counted per query" if index + per_row >= len(panels) else "")
        ax.set_ylabel(score if index % per_row == 0 else "")
    naming.legend_below(fig, _handles(colours, rows), _number_of_seeds(rows))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts, score = [], score_of(frame.columns)
    for panel, rows in _means(_valid_rows(frame)).groupby("panel", sort=False, observed=True):
        means = [
            f"{labels.in_words(row['label'])} {row['direction']} {row['count_mean']:.3g} with {score.name} "
            f"{score.number(row['rsum_mean'])} (n = {row['seeds']})"
            for row in rows.to_dict("records")
        ]
        parts.append(f"{panel}: {', '.join(means)}")
    return f"Negatives counted per query against {score.name}, means over seeds. " + "; ".join(parts) + "."


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the means over seeds and the number of seeds of each panel, label and direction."""
    grouped = rows.groupby(["panel", "label", "direction"], sort=False, observed=True)
    return grouped.agg(
        count_mean=("count", "mean"), rsum_mean=("rsum", "mean"), seeds=("seed", "nunique")
    ).reset_index()  # fmt: skip


def _draw_marks(ax: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    size, looks = 0.6 * float(mpl.rcParams["font.size"]), directions.styles(rows)
    for label, pair in _means(rows).groupby("label", sort=False, observed=True):
        ax.plot(pair["count_mean"], pair["rsum_mean"], color=colours[str(label)], linewidth=0.8, zorder=1)
    first = next(iter(looks))
    for (name, direction), seeds in rows.groupby(["label", "direction"], sort=False, observed=True):
        colour, look = colours[str(name)], looks[str(direction)]
        x, y = seeds["count"], seeds["rsum"]
        if len(seeds) > 1:
            ax.scatter(x, y, color=colour, marker=look.marker, s=size**2 / 4, alpha=0.35, lw=0, zorder=2)
        ax.errorbar(
            float(x.mean()), float(y.mean()), color=colour, elinewidth=1, capsize=2, linestyle="none", zorder=3,
            xerr=style.deviation(x), yerr=style.deviation(y), **_mark(look, colour, size, str(direction) == first),
        )  # fmt: skip
    ax.margins(y=0.12)


def _mark(look: directions.DirectionStyle, colour: str, size: float, is_first: bool) -> dict[str, Any]:
    """Return the looks of a mark: a large ring in the first direction, in which a mark of the second stays seen."""
    if is_first:
        return {"marker": look.marker, "markersize": 1.7 * size, "markerfacecolor": "none", "markeredgecolor": colour}
    return {"marker": look.marker, "markersize": 0.8 * size, "markeredgecolor": "white", "markeredgewidth": 0.5}


def _handles(colours: dict[str, str], rows: pd.DataFrame) -> list[Artist]:
    handles: list[Artist] = [
        Line2D([], [], color=colour, linewidth=3, label=labels.label_text(label)) for label, colour in colours.items()
    ]  # fmt: skip
    size = 0.6 * float(mpl.rcParams["font.size"])
    for index, look in enumerate(directions.styles(rows).values()):
        mark = _mark(look, "0.35", size, index == 0)
        handles.append(Line2D([], [], color="0.35", linestyle="none", label=look.name, **mark))
    return handles


def _number_of_seeds(rows: pd.DataFrame) -> str:
    seeds = sorted(set(_means(rows)["seeds"]))
    number = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    if seeds[-1] == 1:
        return "One seed each"
    few = " (few seeds: a rough estimate, not a confidence interval)" if seeds[0] < _FEW else ""
    return f"Means over {number} seeds, bars are one sample standard deviation{few}"


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with both numbers. Raises InputError for other columns, directions or duplicates, or no rows."""
    frame = as_rsum(frame)
    style.require_rows(frame, COLUMNS, _NAME)
    directions.require_directions(frame)
    if frame.duplicated(["label", "panel", "direction", "seed"]).any():
        raise InputError(
            f"frame of {_NAME} must hold each label, panel, direction and seed once; got some twice. Say in `panel` "
            "what distinguishes them"
        )
    rows = frame.dropna(subset=["count", "rsum"])
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a row with both count and rsum; got none. Run eval and cocos")
    return rows


def _scale_counts(ax: Axes, largest: float) -> None:
    """Scale the horizontal axis linearly up to 1 and logarithmically beyond."""
    end = max(2.0, largest * 1.3)
    ax.set_xscale("symlog", linthresh=1, linscale=0.6)
    ax.set_xlim(-0.08, end)
    steps = (1, 2, 5) if end <= 30 else (1, 3) if end <= 300 else (1,)
    half = (0.5,) if end <= 30 else ()
    ticks = (0.0, *half, *(step * 10.0**power for power in range(6) for step in steps))
    ax.set_xticks([tick for tick in ticks if tick <= end])
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()
