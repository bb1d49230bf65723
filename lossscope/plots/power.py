"""Which difference can a number of seeds, or of images, show? Power curves from the spread of pilot runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import labels, log_axis, naming, style

COLUMNS = (
    "data", "encoder", "system", "baseline", "statistic", "direction", "over", "n", "mdd", "mdd_low", "mdd_high",
    "level", "power", "alpha",
)  # fmt: skip
_PANEL = ["data", "encoder", "statistic", "direction", "over"]
_NAME = "power"
_APART, _WIDEST = 1.05, 1.2  # of neighbouring marks at one n, and of the outermost ones: factors


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which difference can n seeds, or n images, show? One panel: one metric, one data set and model, one kind of n.

    Vertical: the smallest difference that a two-sided paired t-test finds with the stated power. What is above a curve
    is likely to be found, what is below to be missed. Each colour is a pair of systems; its bars carry the interval of
    the standard deviation in the pilot runs, and are long where these have few seeds. Marks of one n stand side by
    side. A dashed line is the difference that was asked about. Both axes are logarithmic; the curve falls like 1 / √n
    once n is large.

    Args:
        frame: columns COLUMNS, of one panel; `difference`, where it is known, is the dashed line.
        ax: axes to draw on; None: new ones.
    """
    rows = _valid_rows(frame)
    for column in _PANEL:
        style.single_value(rows, column, _NAME)
    in_new_figure, ax = ax is None, style.axes_or_new(ax, _headline(rows))
    colours = _colours(rows)
    _draw_panel(ax, rows, colours)
    ax.set_title(_title(rows))
    if in_new_figure:
        naming.legend_below(ax.figure, _handles(rows, colours), _explained(rows))  # type: ignore[arg-type]
    else:
        ax.legend(handles=_handles(rows, colours), loc="best", fontsize=style.small())
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """What does another seed buy, and what another image? A panel for each metric, data set, model and kind of n."""
    rows = _valid_rows(frame)
    panels = [group for _, group in rows.groupby(_PANEL, sort=False, observed=True)]
    per_row = style.panels_per_row(len(panels))
    n_rows = -(-len(panels) // per_row)
    fig = style.set_headline(style.new_figure(0.2 + 0.7 * per_row, 0.85 * n_rows), _headline(rows))
    colours = _colours(rows)
    for index, panel in enumerate(panels):
        ax = fig.add_subplot(n_rows, per_row, index + 1)
        _draw_panel(ax, panel, colours)
        ax.set_title(_title(panel))
    naming.legend_below(fig, _handles(rows, colours), _explained(rows))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    parts = []
    for _, line in _valid_rows(frame).groupby([*_PANEL, "system", "baseline"], sort=False, observed=True):
        line = line.sort_values("n")
        ends = [
            f"{row['mdd']:.3g} ({row['mdd_low']:.3g} to {row['mdd_high']:.3g}) with {row['n']:g} {row['over']}"
            for row in line.iloc[[0, -1]].drop_duplicates("n").to_dict("records")
        ]
        row = line.iloc[0]
        parts.append(f"{_metric(row)}, {row['system']} against {row['baseline']}: {', '.join(ends)}")
    return f"{_headline(frame)}. " + "; ".join(parts) + "."


def _headline(rows: pd.DataFrame) -> str:
    kinds = " or ".join(dict.fromkeys(map(str, rows["over"])))
    return f"Smallest difference that n {kinds} can show"


def _title(rows: pd.DataFrame) -> str:
    row = rows.iloc[0]
    return style.wrap_words(labels.plain_text(f"{row['over']}: {row['encoder']}, {row['data']}"), 30)


def _metric(row: pd.Series, named: Callable[[str], str] = str) -> str:
    statistic = named(str(row["statistic"]))
    return statistic if row["direction"] == "both" else f"{row['direction']} {statistic}"


def _pair(row: pd.Series) -> str:
    return f"{row['system']} against {row['baseline']}"


def _colours(rows: pd.DataFrame) -> dict[str, str]:
    return style.colours(list(dict.fromkeys(_pair(row) for _, row in rows.iterrows())))


def _draw_panel(ax: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    numbers = sorted(map(float, rows["n"].unique()))
    groups = list(rows.groupby(["system", "baseline"], sort=False, observed=True))
    apart = min(_APART, _WIDEST ** (1 / max(len(groups) - 1, 1)))
    for index, (_, line) in enumerate(groups):
        line = line.sort_values("n")
        colour = colours[_pair(line.iloc[0])]
        x = line["n"].astype(float) * apart ** (index - (len(groups) - 1) / 2)
        ax.plot(x, line["mdd"], color=colour, marker="o", markersize=4, zorder=3)
        ax.vlines(x, line["mdd_low"], line["mdd_high"], color=colour, linewidth=1, alpha=0.7)
    for wanted in _wanted(rows):
        ax.axhline(wanted, color="0.4", linestyle=(0, (5, 2)), linewidth=1, zorder=1)
    _scale(ax, rows, numbers)
    ax.set(xlabel=f"number of {rows['over'].iloc[0]}", ylabel=f"difference of {_metric(rows.iloc[0], labels.symbol)}")


def _scale(ax: Axes, rows: pd.DataFrame, numbers: Sequence[float]) -> None:
    """Make both axes logarithmic, with ticks at the numbers of seeds or images, and at round differences."""
    ax.set_xscale("log")
    ax.set_xlim(numbers[0] / 1.25, numbers[-1] * 1.25)
    ax.set_xticks(numbers if len(numbers) <= 8 else numbers[:: -(-len(numbers) // 8)])
    ax.set_xticks([], minor=True)
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    shown = [*rows["mdd_low"].dropna(), *rows["mdd_high"].dropna(), *rows["mdd"], *_wanted(rows)]
    low, high = min(shown) / 1.2, max(shown) * 1.2
    log_axis.set_log(ax, "y", low, max(high, log_axis.DECADE * low))
    ax.set_ylim(low, max(high, log_axis.DECADE * low))


def _wanted(rows: pd.DataFrame) -> list[float]:
    return [float(value) for value in rows["difference"].dropna().unique()] if "difference" in rows else []


def _handles(rows: pd.DataFrame, colours: dict[str, str]) -> list[Artist]:
    handles: list[Artist] = [
        Line2D([], [], color=colour, marker="o", markersize=4, label=labels.label_text(pair))
        for pair, colour in colours.items()
    ]
    handles += [
        Line2D([], [], color="0.4", linestyle=(0, (5, 2)), linewidth=1, label=f"difference asked about: {wanted:g}")
        for wanted in _wanted(rows)
    ]
    level = " and ".join(f"{100 * value:g}" for value in sorted(rows["level"].unique()))
    bar = Line2D([], [], color="0.5", marker="|", markersize=10, linestyle="none", label=f"{level} % interval")
    return [*handles, bar]


def _explained(rows: pd.DataFrame) -> str:
    power, alpha = rows["power"].iloc[0], rows["alpha"].iloc[0]
    return (
        f"Found with probability {power:g} by a two-sided paired t-test at level {alpha:g}; bars: uncertainty of the "
        "spread in the pilot runs"
    )


def _valid_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with a difference. Raises InputError for other columns, duplicates, or when no row is left."""
    style.require_rows(frame, COLUMNS, _NAME)
    rows = frame.dropna(subset=["mdd"])
    rows = rows[rows["mdd"].map(math.isfinite) & (rows["mdd"] > 0)]
    if rows.empty:
        raise InputError(f"frame of {_NAME} must have a smallest difference; got none. Train several seeds")
    if rows.duplicated([*_PANEL, "system", "baseline", "n"]).any():
        raise InputError(f"frame of {_NAME} must hold each pair and n once; got some twice. Draw one study at a time")
    return rows
