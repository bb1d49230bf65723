"""How much of the negatives' weight is on those that count, how large is it, and on how many is it concentrated?"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from . import directions, labels, log_axis, mass_rows, naming, style

COLUMNS = mass_rows.COLUMNS
PARTS = {  # statistic -> colour, hatch and name of its part of a bar
    "W_neg": ("#D55E00", "////", "on negatives above ε"),
    "W_low": ("#E9C46A", "....", "on negatives up to ε"),
}
PANELS = {  # column -> horizontal axis
    "share": "negatives' weight\nabove ε, %",
    "total": "weight on\nall negatives",
    "N_eff": "effective number\nof negatives",
}
_LINE = 26  # letters of a line of a name
_HEADLINE = "Where the weight on a query's negatives is"


def draw(frame: pd.DataFrame, ax: Axes | None = None, share: bool = False) -> Axes:
    """How much of the negatives' weight does counting at eps see? One bar per objective and direction; means.

    Orange is on negatives above eps, yellow on the many up to it: a bar with much yellow has a gradient that counting
    at eps does not see. The weight on the positive is not drawn: for every loss of differences it equals the whole bar.
    The scale is that of each objective's own paper, so compare parts within a bar. A part that is not known is not
    drawn, and the label has a question mark.

    Args:
        frame: columns COLUMNS, and `seed` where there are several; other statistics than W_neg, W_low and N_eff are
            left out.
        ax: axes to draw on; None: new ones.
        share: divide each bar by its sum.
    """
    wide = mass_rows.means(mass_rows.valid_rows(frame))
    in_new_figure = ax is None
    if ax is None:
        height = 0.25 + len(wide) * _row_height(_bar_names(wide), 0.11)
        ax = style.set_headline(style.new_figure(height=height), _HEADLINE).add_subplot()
    values = wide[list(PARTS)]
    values = values.div(values.sum(axis=1).replace(0, np.nan), axis=0) * 100 if share else values
    _draw_bars(ax, values)
    ax.set_xlabel("share of the weight on a query's negatives, %" if share else "weight on a query's negatives")
    handles = [Patch(facecolor=colour, hatch=h, edgecolor="white", label=name) for colour, h, name in PARTS.values()]
    if in_new_figure:
        naming.legend_below(ax.figure, handles)  # type: ignore[arg-type]
    else:
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """What differs between losses? Share of the negatives' weight above eps, its total, and its concentration.

    A row per loss; circles are image-to-text, squares text-to-image queries; bars are one sample standard deviation
    over seeds, where there are several. Total weights are in the scale of each loss's own paper. A panel whose numbers
    the frame lacks is left out; an axis of far values is logarithmic.

    Args:
        frame: as for `draw`; with rows of N_eff also the concentration is drawn.
    """
    rows = mass_rows.valid_rows(frame)
    numbers = mass_rows.per_seed(rows)
    panels = [name for name in PANELS if name in numbers and numbers[name].notna().any()]
    names = list(dict.fromkeys(map(str, numbers["label"])))
    written = [style.wrap_words(labels.label_text(name), _LINE) for name in names]
    height = 0.35 + len(names) * _row_height(written, 0.13)
    fig = style.new_figure(width=0.5 + 0.55 * len(panels), height=height)
    style.set_headline(fig, _HEADLINE)
    axes = fig.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    for ax, name in zip(axes, panels, strict=True):
        _draw_panel(ax, numbers, name, names)
    axes[0].set_yticks(range(len(names)), written)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    naming.legend_below(fig, _handles(numbers), _intervals(numbers))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    rows = mass_rows.valid_rows(frame)
    bars = []
    for key, row in mass_rows.means(rows).iterrows():
        label, direction = key if isinstance(key, tuple) else (key, "")
        numbers = {part: "unknown" if pd.isna(row[part]) else f"{row[part]:.3g}" for part in PARTS}
        parts = [f"{name.replace('ε', 'eps')} {numbers[part]}" for part, (_, _, name) in PARTS.items()]
        if pd.notna(row["N_eff"]):
            parts.append(f"effective number of negatives {row['N_eff']:.3g}")
        bars.append(f"{labels.in_words(str(label))} {direction}: {', '.join(parts)}")
    return "Weight on the negatives of a query. " + "; ".join(bars) + "."


def _draw_bars(ax: Axes, values: pd.DataFrame) -> None:
    """Draw the parts of each bar end to end, the first row on top."""
    positions, left = np.arange(len(values))[::-1].astype(float), np.zeros(len(values))
    for part, (colour, hatch, name) in PARTS.items():
        width = values[part].fillna(0.0).to_numpy(float)
        ax.barh(positions, width, left=left, color=colour, hatch=hatch, edgecolor="white", linewidth=0.5, label=name)
        left = left + width
    ax.set_yticks(positions, _bar_names(values))
    ax.tick_params(axis="y", length=0)
    ax.margins(x=0.02)


def _bar_names(values: pd.DataFrame) -> list[str]:
    """Return the name of each bar, with a question mark where a part of it is not known."""
    incomplete = values[list(PARTS)].isna().any(axis=1)
    return [
        style.wrap_words(f"{labels.label_text(label)}, {direction}", _LINE) + (" ?" if unknown else "")
        for (label, direction), unknown in zip(values.index, incomplete, strict=True)
    ]


def _row_height(names: list[str], least: float) -> float:
    """Return the height of a row, as a part of the style's figure, in which the longest name fits."""
    size = FontProperties(size=mpl.rcParams["ytick.labelsize"]).get_size_in_points()
    lines = max(name.count("\n") + 1 for name in names)
    return max(least, (1.25 * lines + 0.4) * size / 72 / float(mpl.rcParams["figure.figsize"][1]))


def _draw_panel(ax: Axes, numbers: pd.DataFrame, name: str, names: list[str]) -> None:
    """Draw one number of every loss and direction, with its deviation over seeds."""
    colours, size = style.colours(names), 0.55 * float(mpl.rcParams["font.size"])
    looks = directions.styles(numbers)
    for (label, direction), group in numbers.groupby(["label", "direction"], sort=False, observed=True):
        values = group[name].dropna()
        if values.empty:
            continue
        look: dict[str, Any] = {"color": colours[str(label)], "marker": looks[str(direction)].marker}
        look |= {"markersize": size}
        look |= {"markeredgecolor": "white", "elinewidth": 1, "capsize": 2, "linestyle": "none"}
        height = names.index(str(label)) + looks[str(direction)].offset
        ax.errorbar(float(values.mean()), height, xerr=style.deviation(values), **look)
    ax.set_xlabel(PANELS[name])
    ax.tick_params(axis="y", length=0)
    for index in range(len(names)):
        ax.axhline(index, color="0.92", linewidth=0.8, zorder=0)
    _scale(ax, numbers[name], percent=name == "share")


def _scale(ax: Axes, values: pd.Series[float], percent: bool) -> None:
    """Begin a linear axis at 0; use a logarithmic one where values are far apart."""
    if percent:
        ax.set_xlim(-4, 104)
    elif log_axis.is_wide(values.min(), values.max()):
        log_axis.set_log(ax, "x", values.min(), values.max())
        ax.set_xlim(values.min() / 1.6, values.max() * 1.6)
    else:
        ax.set_xlim(0, float(values.max()) * 1.1 or 1.0)


def _handles(numbers: pd.DataFrame) -> list[Artist]:
    return [
        Line2D([], [], color="0.35", marker=direction.marker, linestyle="none", label=direction.name)
        for direction in directions.styles(numbers).values()
    ]


def _intervals(numbers: pd.DataFrame) -> str:
    seeds = numbers.groupby(["label", "direction"], observed=True)["seed"].nunique()
    if seeds.max() == 1:
        return "One seed each, so no intervals"
    number = f"{seeds.max()}" if seeds.min() == seeds.max() else f"{seeds.min()} to {seeds.max()}"
    return f"Means over {number} seeds, bars are one sample standard deviation"
