"""How do the counts of a loss move while it trains? Means over the epochs of a run, with their intervals."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("source", "objective", "direction", "statistic", "unit", "epoch", "mean", "low", "high", "level")
_NAME = "epoch_counts"
_PANEL = ["objective", "statistic"]
_SETTINGS = ("probe", "eps", "convention", "weight_unit")  # further ones of a panel, where the frame has them


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """How does one count move over the epochs? A line a direction, in a band that holds the mean of other data.

    Every epoch is counted on the same batches. So two epochs whose bands overlap may differ all the same:
    `lossscope diff RUN --epoch 1 --b-epoch 5` has the interval of their difference.

    Args:
        frame: columns COLUMNS, of one statistic of one objective.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    for column in _panel(rows):
        style.single_value(
            rows.assign(**{column: rows[column].astype(object).where(rows[column].notna(), "")}), column, _NAME
        )
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _headline(rows))
    colours = _colours(rows)
    _draw_panel(ax, rows, colours)
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(rows, colours), "")  # type: ignore[arg-type]
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do the counts move over the epochs? A panel for each statistic."""
    rows = _valid_rows(frame)
    panels = [group for _, group in rows.groupby(_panel(rows), sort=False, dropna=False, observed=True)]
    per_row = style.panels_per_row(len(panels))
    n_rows = -(-len(panels) // per_row)
    fig = style.set_headline(style.new_figure(0.2 + 0.7 * per_row, 0.75 * n_rows), _headline(rows))
    colours = _colours(rows)
    for index, panel in enumerate(panels):
        ax = fig.add_subplot(n_rows, per_row, index + 1)
        _draw_panel(ax, panel, colours)
        if title := _title(panel, rows):
            ax.set_title(title, fontsize="small")
    naming.legend_below(fig, _handles(rows, colours), "")
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts, rows = [], _valid_rows(frame)
    for _, line in rows.groupby([*_panel(rows), "direction"], sort=False, dropna=False, observed=True):
        line = line.sort_values("epoch")
        ends = [
            f"{row['mean']:.3g}{_ends_in_words(row)} after epoch {row['epoch']:g}"
            for row in line.iloc[[0, -1]].drop_duplicates("epoch").to_dict("records")
        ]
        title = _title(line, rows)
        what = f"{line['statistic'].iloc[0]} {line['direction'].iloc[0]}{f' ({title})' if title else ''}"
        parts.append(f"{what}: {', '.join(ends)}")
    return f"{_headline(frame)}. {'; '.join(parts)}."


def _draw_panel(ax: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    for direction, line in rows.groupby("direction", sort=False, observed=True):
        line, colour = line.sort_values("epoch"), colours[str(direction)]
        low, high = (line[name].astype(float) for name in ("low", "high"))
        ax.fill_between(line["epoch"], low, high, color=colour, alpha=0.2, linewidth=0)
        alone = line[_is_alone(low.notna())]  # a band needs two
        if len(alone):
            ends = [(alone["mean"] - alone["low"]).astype(float), (alone["high"] - alone["mean"]).astype(float)]
            ax.errorbar(alone["epoch"], alone["mean"], yerr=ends, fmt="none", ecolor=colour, alpha=0.4, capsize=2)
        ax.plot(line["epoch"], line["mean"], color=colour, marker="o", markersize=3.5)
    epochs = sorted(map(int, rows["epoch"].unique()))
    ax.set_xticks(epochs if len(epochs) <= 8 else epochs[:: -(-len(epochs) // 8)])
    unit = str(rows["unit"].iloc[0])
    ax.set(xlabel="epoch", ylabel=f"{labels.symbol(str(rows['statistic'].iloc[0]))}{f' ({unit})' if unit else ''}")


def _panel(rows: pd.DataFrame) -> list[str]:
    """Return the columns that a panel has one value of."""
    return [*_PANEL, *(name for name in _SETTINGS if name in rows)]


def _title(panel: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Return what tells the rows of a panel from those of other panels, besides the statistic."""
    several = [name for name in _panel(rows) if name != "statistic" and rows[name].nunique(dropna=False) > 1]
    values = [(name, panel[name].iloc[0]) for name in several]
    words = [
        f"ε = {value:g}" if name == "eps"
        else labels.label_text(str(value)) if name == "objective"
        else labels.plain_text(f"{name.replace('_', ' ')} {value}")
        for name, value in values if not pd.isna(value)
    ]  # fmt: skip
    return ", ".join(words)


def _is_alone(known: pd.Series[bool]) -> pd.Series[bool]:
    """Return which epochs have an interval, and neither neighbour has one."""
    return known & ~known.shift(1, fill_value=False) & ~known.shift(-1, fill_value=False)


def _ends_in_words(row: Mapping[Hashable, Any]) -> str:
    return "" if pd.isna(row["low"]) else f" ({row['low']:.3g} to {row['high']:.3g})"


def _headline(rows: pd.DataFrame) -> str:
    objectives = list(rows["objective"].dropna().unique())
    under = f" under {', '.join(labels.label_text(str(objective)) for objective in objectives)}" if objectives else ""
    return f"Over the epochs of {labels.plain_text(str(rows['source'].iloc[0]))}{under}"


def _colours(rows: pd.DataFrame) -> dict[str, str]:
    return style.colours(list(dict.fromkeys(map(str, rows["direction"]))))


def _handles(rows: pd.DataFrame, colours: dict[str, str]) -> list[Line2D]:
    level = " and ".join(f"{100 * value:g}" for value in sorted(rows["level"].dropna().unique()))
    lines = [
        Line2D([], [], color=colour, marker="o", markersize=3.5, label=labels.label_text(direction))
        for direction, colour in colours.items()
    ]
    return (
        [*lines, Line2D([], [], color="0.6", alpha=0.4, linewidth=6, label=f"{level} % interval")] if level else lines
    )


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a mean. Raises InputError for other columns, duplicates, or when no row is left."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame.dropna(subset=["mean", "epoch"])
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a mean of an epoch; got none")
    if rows.duplicated([*_panel(rows), "direction", "epoch"]).any():
        raise InputError(
            f"frame of {_NAME} must hold each epoch once; got some twice. Draw one run and probe at a time"
        )
    return rows
