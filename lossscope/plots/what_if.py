"""What would be counted at another temperature? Statistics against a varied hyper-parameter of a frozen model."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import directions, labels, log_axis, naming, style

COLUMNS = ("value", "direction", "statistic", "mean", "std")
_NAME = "what_if"


def draw(
    frame: pd.DataFrame, ax: Axes | None = None, parameter: str = "temperature τ", at: float | None = None
) -> Axes:
    """How does one statistic of a frozen model's batches depend on a field of its objective?

    Horizontal: the value of the field. Vertical: the statistic. Solid blue: image to text; dashed orange: text to
    image; bands are one standard deviation over batches, and there is none where there is one batch, or where the
    deviation is not known. The model is the same everywhere: this is what the loss would see, not what training with it
    would give.

    Args:
        frame: columns COLUMNS, of one statistic; `n`, or `n_spread` if a short last batch is left out of the
            deviation, is the number of batches that it is over, where known.
        ax: axes to draw on; None: new ones.
        parameter: name of the horizontal axis.
        at: value that the model was trained with, marked by a thin line.
    """
    rows = _valid_rows(frame)
    statistic = style.single_value(rows, "statistic", _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _headline(parameter))
    _draw_panel(ax, rows, at)
    ax.set(xlabel=labels.plain_text(parameter), ylabel=style.wrap_words(labels.statistic_in_words(statistic), 38))
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(rows), _bands(rows))  # type: ignore[arg-type]
    else:
        ax.legend(handles=_handles(rows), loc="best", fontsize=style.small())
    return ax


def draw_many(frame: pd.DataFrame, parameter: str = "temperature τ", at: float | None = None) -> Figure:
    """How do several statistics depend on a field of the objective? A panel each, on its own scale, as `draw`."""
    rows = _valid_rows(frame)
    statistics = list(rows["statistic"].unique())
    per_row = style.panels_per_row(len(statistics))
    n_rows = -(-len(statistics) // per_row)
    fig = style.set_headline(style.new_figure(0.15 + 0.75 * per_row, 0.75 * n_rows), _headline(parameter))
    for index, statistic in enumerate(statistics):
        ax = fig.add_subplot(n_rows, per_row, index + 1)
        _draw_panel(ax, rows[rows["statistic"] == statistic], at)
        ax.set(xlabel=labels.plain_text(parameter), ylabel=labels.symbol(str(statistic)))
        ax.set_title(style.wrap_words(labels.STATISTICS.get(str(statistic), ""), 24))
    naming.legend_below(fig, _handles(rows), _bands(rows))
    return fig


def alt(frame: pd.DataFrame, parameter: str = "temperature τ") -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for (statistic, direction), line in _valid_rows(frame).groupby(
        ["statistic", "direction"], sort=False, observed=True
    ):
        line = line.sort_values("value")
        ends = [f"{row['mean']:.3g} at {row['value']:g}" for row in (line.iloc[0], line.iloc[-1])]
        parts.append(f"{statistic} {direction}: {ends[0]}, {ends[1]}")
    return f"Statistics of a frozen model against {parameter}. " + "; ".join(parts) + "."


def _headline(parameter: str) -> str:
    return f"What a frozen model's loss would count at each {labels.plain_text(parameter)}"


def _bands(rows: pd.DataFrame) -> str:
    """Return what the bands are."""
    if not _has_spread(rows).any():
        return "No bands: one batch, or its deviation is not known"
    short = "n_spread" in rows and "n" in rows and bool((rows["n_spread"] < rows["n"]).any())
    return f"Bands are one standard deviation over batches{', a short last one left out' if short else ''}"


def _has_spread(rows: pd.DataFrame) -> pd.Series[bool]:
    """Return of which rows the deviation is known and over more than one batch."""
    batches = next((rows[name] for name in ("n_spread", "n") if name in rows), None)
    known: pd.Series[bool] = rows["std"].notna() & (True if batches is None else (batches.fillna(2) > 1))
    return known


def _draw_panel(ax: Axes, rows: pd.DataFrame, at: float | None) -> None:
    looks = directions.styles(rows)
    for direction, line in rows.groupby("direction", sort=False, observed=True):
        line = line.sort_values("value")
        look = looks[str(direction)]
        colour, dashes, name = look.colour, look.dashes, look.name
        ax.plot(line["value"], line["mean"], color=colour, linestyle=dashes, marker="o", markersize=3, label=name)
        wide = line[_has_spread(line)]
        if len(wide):
            ends = wide["mean"] - wide["std"], wide["mean"] + wide["std"]
            ax.fill_between(wide["value"], *ends, color=colour, alpha=0.18, lw=0)
    if at is not None:
        ax.axvline(at, color="0.6", linewidth=0.8, zorder=0)
        ax.annotate(
            f"trained with {at:g}", (at, 1), (2, 0), xycoords=("data", "axes fraction"), textcoords="offset points",
            color="0.4", fontsize=style.small(), va="top",
        )  # fmt: skip
    values = np.sort(rows["value"].unique())
    if log_axis.is_wide(values[0], values[-1]):
        log_axis.set_log(ax, "x", values[0], values[-1])
    else:
        ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    low, high = ax.get_ylim()
    ax.set_ylim(0.0 if (rows["mean"] >= 0).all() else low, high + (0.12 * (high - low) if at is not None else 0.0))


def _handles(rows: pd.DataFrame) -> list[Line2D]:
    return [
        Line2D([], [], color=direction.colour, linestyle=direction.dashes, label=direction.name)
        for direction in directions.styles(rows).values()
    ]


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a mean. Raises InputError for other columns, directions or duplicates, or no rows."""
    style.require_rows(frame, COLUMNS, _NAME)
    directions.require_directions(frame)
    rows = frame.dropna(subset=["value", "mean"])
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a known mean; got none. The probe skipped every query")
    if rows.duplicated(["value", "direction", "statistic"]).any():
        raise InputError(f"frame of {_NAME} must hold each value, direction and statistic once; got some twice")
    return rows
