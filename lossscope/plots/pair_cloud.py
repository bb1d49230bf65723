"""How much do the pairs of real data weigh, as positives and as negatives? (P₊, P₋ at the data's own distribution)"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("objective", "source", "s_pos", "s_neg", "w_pos", "w_neg")
SIDES = {
    "positive": ("s_pos", "w_pos", "positive similarity $s_+$", r"pull $|\partial L/\partial s_+|$"),
    "negative": ("s_neg", "w_neg", "hardest negative similarity $s_-$", r"push $|\partial L/\partial s_-|$"),
}
PARTS, LEAST = 20, 5  # parts of equal size that the queries are cut into, at most; queries of a part, at least
BINS = 40  # of the histogram
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)))
_GREY = "0.82"
_HEIGHT = 0.3  # of the panel: the highest bin of the histogram
_HEADLINE = "Weights at similarities that the data have, of a query with two candidates; grey: how many"
_NAME = "pair_cloud"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None, side: str = "negative") -> Axes:
    """On which of its pairs does a model's loss put weight? Horizontal: similarity. Vertical: |W| of the pair.

    A line joins the median weights of twentieths of the queries, in the order of their similarity; its band is the
    middle 80 %, as pairs of one similarity have different weights if their other candidates differ. With several
    objectives each is divided by its largest weight on these data, pull or push, which the legend states. The grey
    histogram is the distribution of the queries (shares, without a scale). A line that is high where the histogram is
    low spends its strength on pairs that hardly exist.

    Args:
        frame: columns COLUMNS, of one source.
        ax: axes to draw on; None: new ones.
        side: positive or negative.
    """
    style.single_value(_check(frame), "source", _NAME)
    ax = _draw_panel(frame, style.axes_or_new(ax, _HEADLINE), side, _largest_weights(frame))
    ax.legend(loc="best", fontsize=style.small())
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do pulls (left) and pushes (right) differ between sources? A row per source, each panel as `draw`."""
    sources = list(_check(frame)["source"].unique())
    largest = _largest_weights(frame)
    names = labels.shortest_names(sources)
    fig = style.set_headline(style.new_figure(width=1.8, height=0.85 * len(sources)), _HEADLINE)
    for index, source in enumerate(sources):
        rows = frame[frame["source"] == source]
        for column, side in enumerate(SIDES):
            ax = _draw_panel(rows, fig.add_subplot(len(sources), 2, 2 * index + column + 1), side, largest)
            if column == 0:
                ax.set_title(f"{labels.plain_text(names[str(source)])}, {_number_of_queries(rows)}")
    naming.legend_below(fig, fig.axes[0].get_lines())
    return fig


def _draw_panel(frame: pd.DataFrame, ax: Axes, side: str, largest: dict[str, float]) -> Axes:
    if side not in SIDES:
        raise InputError(f"side must be positive or negative; got {side!r}")
    s, w, x_label, y_label = SIDES[side]
    colours, several = style.colours(largest), len(largest) > 1
    for index, (label, top) in enumerate(largest.items()):
        rows = frame[frame["objective"] == label]
        parts = _medians(rows[s].to_numpy(np.float64), np.abs(rows[w].to_numpy(np.float64)))
        low, middle, high = (parts[name] / (top if several else 1.0) for name in ("q10", "q50", "q90"))
        name, dashes = (
            f"{labels.label_text(label)}{f' (largest {top:.3g})' if several else ''}",
            _DASHES[index % len(_DASHES)],
        )
        marker = "o" if len(parts) < 2 else ""
        ax.plot(parts["s"], middle, color=colours[label], label=name, linestyle=dashes, marker=marker)
        ax.fill_between(parts["s"], low, high, color=colours[label], alpha=0.2, linewidth=0)
    ax.set(xlabel=x_label, ylabel=f"{y_label} / largest" if several else y_label)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    most_rows = frame["objective"].value_counts().index[0]
    background_histogram(frame[frame["objective"] == most_rows][s].to_numpy(np.float64), ax)
    return ax


def background_histogram(values: npt.ArrayLike, ax: Axes) -> Axes:
    """Draw a grey histogram of `values`, shares of each bin, behind a panel, and return its hidden axes."""
    low, high = ax.get_xlim()
    hidden = ax.twinx()
    sns.histplot(
        x=np.asarray(values, dtype=np.float64), bins=BINS, stat="proportion", element="step", color=_GREY, alpha=1,
        linewidth=0, label="queries", ax=hidden,
    )  # fmt: skip
    drawn = hidden.dataLim
    hidden.set_ylim(0, drawn.y1 / _HEIGHT)
    ax.set_xlim(min(low, drawn.x0), max(high, drawn.x1))
    hidden.set_axis_off()
    hidden.set_zorder(ax.get_zorder() - 1)
    ax.patch.set_visible(False)
    return hidden


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    _check(frame)
    parts, names = [], labels.shortest_names(frame["source"].unique())
    for (source, label), rows in frame.groupby(["source", "objective"], sort=False, observed=True):
        pull, push = rows["w_pos"].abs(), rows["w_neg"].abs()
        parts.append(
            f"{labels.in_words(str(label))} on {names[str(source)]}: mean pull {pull.mean():.3g}, "
            f"mean push {push.mean():.3g}, "
            f"{float((push == 0).mean()):.0%} of {len(rows)} queries push nothing"
        )
    return "Weights of pairs at the similarities that data have. " + "; ".join(parts) + "."


def _number_of_queries(rows: pd.DataFrame) -> str:
    """Return the number of queries, a range if objectives differ: those called once a point have a sample of them."""
    sizes = sorted(set(rows["objective"].value_counts()))
    return " to ".join(f"{size:,}" for size in (sizes[:1] + sizes[-1:] if len(sizes) > 1 else sizes)) + " queries"


def _largest_weights(frame: pd.DataFrame) -> dict[str, float]:
    """Return the largest |weight| of each objective on all of the data, pull or push; 1 if all are 0."""
    sizes = frame[["w_pos", "w_neg"]].abs().max(axis=1).groupby(frame["objective"], sort=False).max()
    return {str(label): float(size) or 1.0 for label, size in sizes.items()}


def _medians(s: _Values, weight: _Values) -> pd.DataFrame:
    """Return s, the median similarity, and q10, q50, q90, quantiles of the weight, of parts of equal size."""
    order = np.argsort(s, kind="stable")
    parts = np.array_split(order, max(1, min(PARTS, len(s) // LEAST)))
    rows = [(np.median(s[part]), *np.quantile(weight[part], (0.1, 0.5, 0.9))) for part in parts]
    return pd.DataFrame(rows, columns=["s", "q10", "q50", "q90"], dtype=np.float64)


def _check(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame. Raises InputError unless it has all columns and finite numbers."""
    style.require_rows(frame, COLUMNS, _NAME)
    if not all(math.isfinite(frame[name].abs().max()) and frame[name].notna().all() for name in COLUMNS[2:]):
        raise InputError(f"similarities and weights of {_NAME} must be finite; got NaN or infinity. Leave them out")
    return frame
