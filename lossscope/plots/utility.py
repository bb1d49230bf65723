"""What is one step with each loss worth, and how many negatives does it count for that?"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import labels, log_axis, naming, style

COLUMNS = (
    "source", "objective", "direction", "metric", "unit", "change", "low", "high", "counted", "counted_low",
    "counted_high", "level", "n", "step", "held_out",
)  # fmt: skip
_NAME = "utility"
_BOTH = "both"
_HEADLINE = "What one step of each loss changes on items that it does not train on"
_UNITS = {"margin": "change of margin", "R@1": "change of R@1 (%)", "rsum": "change of rsum (%)"}
_MARKS = "osD^vP"  # of sources


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """What is one step with each loss worth? One metric: the mean change over batches, with its interval.

    Horizontal: a mark for each loss. Vertical: change of the metric of the held-out split after one step of the same
    relative length, mean of both directions. The grey line is no change.

    Args:
        frame: columns COLUMNS, of one metric: rows of `lossscope analyse utility --format csv`.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    style.single_value(rows, "metric", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _HEADLINE)
    _draw_changes(ax, rows)
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(rows), _explained(rows))  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """What is one step worth (left), and against how many counted negatives (right)? A row for each metric.

    Right, horizontal: negatives per query whose weight is above eps, mean over batches with its interval; the vertical
    axis is that of the left panel. A loss that lies left of another one at the same height does the same with fewer
    negatives.
    """
    rows = _valid_rows(frame)
    metrics = [group for _, group in rows.groupby("metric", sort=False, observed=True)]
    fig = style.set_headline(style.new_figure(1.6, 0.5 * len(metrics) + 0.1), _HEADLINE)
    grid = fig.add_gridspec(len(metrics), 2, width_ratios=(1.0, 1.5))
    for index, of_metric in enumerate(metrics):
        left = fig.add_subplot(grid[index, 0])
        _draw_changes(left, of_metric)
        right = fig.add_subplot(grid[index, 1], sharey=left)
        _draw_counted(right, of_metric)
        right.tick_params(labelleft=False)
        if index == len(metrics) - 1:
            right.set_xlabel(f"counted negatives per query, {labels.symbol('C_neg')}")
        else:
            right.tick_params(labelbottom=False)
    naming.legend_below(fig, _handles(rows), _explained(rows))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    rows = _valid_rows(frame)
    several = rows["source"].nunique() > 1
    each = [
        f"{row['metric']}, {row['objective']}{' of ' + str(row['source']) if several else ''}: {row['change']:.3g}"
        + ("" if pd.isna(row["low"]) else f" ({row['low']:.3g} to {row['high']:.3g})")
        + f" with {row['counted']:.3g} counted negatives per query"
        for row in rows.to_dict("records")
    ]
    return f"{_HEADLINE}. {'; '.join(each)}."


def _draw_changes(ax: Axes, rows: pd.DataFrame) -> None:
    colours, marks = _colours(rows), _marks(rows)
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    for x, row in enumerate(rows.to_dict("records")):
        colour = colours[str(row["objective"])]
        ax.vlines(x, row["low"], row["high"], color=colour, linewidth=1.6)
        mark = marks[str(row["source"])]
        ax.plot([x], [row["change"]], color=colour, marker=mark, markersize=4, linestyle="none")
    ax.set_xticks([])
    ax.set_xlim(-0.6, len(rows) - 0.4)
    metric = str(rows["metric"].iloc[0])
    ax.set_ylabel(_UNITS.get(metric, f"change of {labels.plain_text(metric)}"))


def _draw_counted(ax: Axes, rows: pd.DataFrame) -> None:
    colours, marks = _colours(rows), _marks(rows)
    ax.axhline(0, color="0.6", linewidth=0.8, zorder=1)
    for row in rows.to_dict("records"):
        colour = colours[str(row["objective"])]
        ax.vlines(row["counted"], row["low"], row["high"], color=colour, linewidth=1.2)
        ax.hlines(row["change"], row["counted_low"], row["counted_high"], color=colour, linewidth=1.2)
        mark = marks[str(row["source"])]
        ax.plot([row["counted"]], [row["change"]], color=colour, marker=mark, markersize=4, linestyle="none")
    low, high = float(rows["counted"].min()), float(rows["counted"].max())
    if log_axis.is_wide(low, high):
        log_axis.set_log(ax, "x", low / 1.5, high * 1.5)
        ax.set_xlim(low / 1.5, high * 1.5)
    else:
        ax.set_xlim(0, max(1.1 * high, 0.1))


def _colours(rows: pd.DataFrame) -> dict[str, str]:
    return style.colours(dict.fromkeys(map(str, rows["objective"])))


def _marks(rows: pd.DataFrame) -> dict[str, str]:
    sources = list(dict.fromkeys(map(str, rows["source"])))
    return {source: _MARKS[index % len(_MARKS)] for index, source in enumerate(sources)}


def _handles(rows: pd.DataFrame) -> list[Line2D]:
    handles = [
        Line2D([], [], color=colour, linewidth=1.6, label=labels.label_text(objective))
        for objective, colour in _colours(rows).items()
    ]
    marks = _marks(rows)
    if len(marks) > 1:
        names = labels.shortest_names(marks)
        handles += [
            Line2D(
                [], [], color="0.3", marker=mark, markersize=4, linestyle="none", label=labels.plain_text(names[name])
            )
            for name, mark in marks.items()
        ]
    return handles


def _explained(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    level = " and ".join(f"{100 * value:g} %" for value in sorted(rows["level"].dropna().unique()))
    intervals = f", {level} intervals over batches" if level else ""
    split = labels.plain_text(str(row["held_out"]))
    return f"Step of relative length {row['step']:g}, split {split}, n = {int(row['n'])} batches{intervals}"


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of both directions that have a change. Raises InputError for other columns, or without any."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame[(frame["direction"] == _BOTH) & frame["change"].notna()]
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a known change of the direction both; got none")
    if rows.duplicated(["source", "objective", "metric"]).any():
        raise InputError(f"frame of {_NAME} must have each source, objective and metric once; got some twice")
    return rows
