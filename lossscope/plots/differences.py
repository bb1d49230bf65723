"""What differs between A and B? The difference of each statistic, with its interval."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = (
    "source", "b_source", "objective", "b_objective", "direction", "probe", "statistic", "unit", "mean", "b_mean",
    "difference", "low", "high", "level",
)  # fmt: skip
_NAME = "differences"
_SETTINGS = ("objective", "eps", "convention", "weight_unit")  # named where rows differ in them
_SURE, _UNSURE = "#0072b2", "0.55"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which statistics are others under B? One line a statistic and direction of one unit: B − A with its interval.

    A blue interval leaves 0 out, a grey one does not. The differences are of the same batches on both sides, so that
    what both have in common is not in the interval.

    Args:
        frame: columns COLUMNS, of one unit: rows of `lossscope diff --format csv`.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    style.single_value(rows, "unit", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _headline(rows))
    _draw_panel(ax, rows)
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(rows), "")  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Which statistics are others under B? A panel for each unit."""
    rows = _valid_rows(frame)
    panels = [group for _, group in rows.groupby("unit", sort=False, observed=True)]
    heights = [0.3 + 0.075 * len(panel) for panel in panels]
    fig = style.set_headline(style.new_figure(1.4, sum(heights)), _headline(rows))
    grid = fig.add_gridspec(len(panels), 1, height_ratios=heights)
    for index, panel in enumerate(panels):
        _draw_panel(fig.add_subplot(grid[index, 0]), panel)
    naming.legend_below(fig, _handles(rows), "")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    rows = _valid_rows(frame)
    each = (
        f"{row['direction']} {row['statistic']} {row['difference']:.3g} ({row['low']:.3g} to {row['high']:.3g})"
        for row in rows.to_dict("records")
    )
    return f"{_headline(rows)}: {'; '.join(each)}."


def _draw_panel(ax: Axes, rows: pd.DataFrame) -> None:
    y = list(range(len(rows)))[::-1]
    for height, row in zip(y, rows.to_dict("records"), strict=True):
        colour = _SURE if row["low"] > 0 or row["high"] < 0 else _UNSURE
        ax.hlines(height, row["low"], row["high"], color=colour, linewidth=1.6)
        ax.plot([row["difference"]], [height], color=colour, marker="o", markersize=3.5, linestyle="none")
    ax.axvline(0, color="0.2", linewidth=0.8)
    several = [name for name in _SETTINGS if name in rows and rows[name].nunique(dropna=False) > 1]
    texts = [_text(row, several) for row in rows.to_dict("records")]
    ax.set_yticks(y, [labels.plain_text(text) for text in texts])
    ax.set_ylim(-0.7, len(rows) - 0.3)
    unit = str(rows["unit"].iloc[0])
    ax.set_xlabel(f"B − A, {labels.plain_text('share' if unit == '1' else unit or 'number')}")


def _text(row: dict[Hashable, Any], several: Sequence[str]) -> str:
    parts = [f"{row['statistic']} {row['direction']}"]
    for name in several:
        value = row[name]
        if not pd.isna(value):
            plain = str(value).partition(":")[0] if name == "objective" else str(value)
            parts.append(f"eps {value:g}" if name == "eps" else plain)
    return ", ".join(parts)


def _headline(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    names = str(row["source"]), str(row["b_source"])
    return labels.plain_text(f"B ({names[1]}) less A ({names[0]})" if names[0] != names[1] else f"B less A, {names[0]}")


def _handles(rows: pd.DataFrame) -> list[Line2D]:
    level = " and ".join(f"{100 * value:g}" for value in sorted(rows["level"].dropna().unique()))
    return [
        Line2D([], [], color=colour, marker="o", markersize=3.5, label=f"{level} % interval {what}")
        for colour, what in ((_SURE, "excludes 0"), (_UNSURE, "holds 0"))
    ]


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with an interval. Raises InputError for other columns, or when no row is left."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame.dropna(subset=["difference", "low", "high"])
    if rows.empty:
        raise InputError(
            f"frame of {_NAME} must have a difference with an interval; got none: A and B may be equal, or --interval "
            "was none"
        )
    return rows
