"""How much do the pairs of real data weigh, as positives and as negatives? (P₊, P₋ at the data's own distribution)"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("objective", "source", "s_pos", "s_neg", "w_pos", "w_neg")
SIDES = {
    "positive": ("s_pos", "w_pos", "positive similarity $s_+$", r"pull $|\partial L/\partial s_+|$"),
    "negative": ("s_neg", "w_neg", "hardest negative similarity $s_-$", r"push $|\partial L/\partial s_-|$"),
}
PARTS, LEAST = 20, 5  # medians of so many parts of the queries, of so many queries at least
BINS = 40
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)))
_SHADE = "0.82"
_HEIGHT = 0.3  # of the panel: the tallest bar of the histogram
_WHAT = "pair_cloud"
_Values = npt.NDArray[np.float64]


def draw(frame: pd.DataFrame, ax: Axes | None = None, side: str = "negative") -> Axes:
    """Which of its pairs does a model's loss care for? Read across: similarity; up: |W| of the pair.

    A line joins the median weights of twentieths of the queries, in the order of their similarity; its band is the
    middle 80 %: pairs of one similarity weigh differently as the other candidate does. Of several objectives each is
    divided by its largest weight on these data, pull or push, which the legend states. The grey hills are where the
    queries are (their share, no scale). A line that is high where the hill is low spends its strength on pairs that
    hardly exist. side: positive or negative. Columns: see `COLUMNS`, of one source.
    """
    style.single_value(_checked(frame), "source", _WHAT)
    ax = _paint(frame, style.axes_or_new(ax), side, _tops(frame))
    ax.legend(loc="best", fontsize="small")
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Left the pulls, right the pushes; a row per source. Read as `draw`."""
    sources = list(_checked(frame)["source"].unique())
    tops = _tops(frame)
    fig = style.new_figure(width=1.8, height=0.85 * len(sources))
    for place, source in enumerate(sources):
        own = frame[frame["source"] == source]
        for column, side in enumerate(SIDES):
            ax = _paint(own, fig.add_subplot(len(sources), 2, 2 * place + column + 1), side, tops)
            if column == 0:
                ax.set_title(f"{source}, {_queries(own)}")
    naming.legend_below(fig, fig.axes[0].get_lines())
    return fig


def _paint(frame: pd.DataFrame, ax: Axes, side: str, tops: dict[str, float]) -> Axes:
    if side not in SIDES:
        raise InputError(f"side must be positive or negative; got {side!r}")
    at, weight, across, up = SIDES[side]
    tints, several = style.colours(tops), len(tops) > 1
    for place, (label, top) in enumerate(tops.items()):
        rows = frame[frame["objective"] == label]
        found = _medians(rows[at].to_numpy(np.float64), np.abs(rows[weight].to_numpy(np.float64)))
        low, middle, high = (found[name] / (top if several else 1.0) for name in ("q10", "q50", "q90"))
        name, dash = f"{label}{f' (largest {top:.3g})' if several else ''}", _DASHES[place % len(_DASHES)]
        marker = "o" if len(found) < 2 else ""
        ax.plot(found["s"], middle, color=tints[label], label=name, linestyle=dash, marker=marker)
        ax.fill_between(found["s"], low, high, color=tints[label], alpha=0.2, linewidth=0)
    ax.set(xlabel=across, ylabel=f"{up} / largest" if several else up)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    most = frame["objective"].value_counts().index[0]
    background_histogram(frame[frame["objective"] == most][at].to_numpy(np.float64), ax)
    return ax


def background_histogram(values: npt.ArrayLike, ax: Axes) -> Axes:
    """Grey hills at the foot of a panel: the share of `values` in each bin, on a hidden axis of its own."""
    values = np.asarray(values, dtype=np.float64)
    share, edges = np.histogram(values, BINS)
    low, high = ax.get_xlim()
    hidden = ax.twinx()
    hidden.stairs(share / len(values), edges, fill=True, color=_SHADE, label="queries")
    hidden.set_ylim(0, share.max() / len(values) / _HEIGHT)
    ax.set_xlim(min(low, edges[0]), max(high, edges[-1]))
    hidden.set_axis_off()
    hidden.set_zorder(ax.get_zorder() - 1)
    ax.patch.set_visible(False)
    return hidden


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    _checked(frame)
    parts = []
    for (source, label), rows in frame.groupby(["source", "objective"], sort=False, observed=True):
        pull, push = rows["w_pos"].abs(), rows["w_neg"].abs()
        parts.append(
            f"{label} on {source}: mean pull {pull.mean():.3g}, mean push {push.mean():.3g}, "
            f"{float((push == 0).mean()):.0%} of {len(rows)} queries push nothing"
        )
    return "Weights of pairs at the similarities that data have. " + "; ".join(parts) + "."


def _queries(own: pd.DataFrame) -> str:
    """How many queries; objectives that are called once a point have a sample of them."""
    sizes = sorted(set(own["objective"].value_counts()))
    return " to ".join(f"{size:,}" for size in (sizes[:1] + sizes[-1:] if len(sizes) > 1 else sizes)) + " queries"


def _tops(frame: pd.DataFrame) -> dict[str, float]:
    """The largest weight of each objective on all of the data."""
    sizes = frame[["w_pos", "w_neg"]].abs().max(axis=1).groupby(frame["objective"], sort=False).max()
    return {str(label): float(size) or 1.0 for label, size in sizes.items()}


def _medians(s: _Values, weight: _Values) -> pd.DataFrame:
    """Columns s, q10, q50, q90: medians of similarities, and quantiles of weights, of parts of equal size."""
    order = np.argsort(s, kind="stable")
    parts = np.array_split(order, max(1, min(PARTS, len(s) // LEAST)))
    rows = [(np.median(s[part]), *np.quantile(weight[part], (0.1, 0.5, 0.9))) for part in parts]
    return pd.DataFrame(rows, columns=["s", "q10", "q50", "q90"], dtype=np.float64)


def _checked(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    if not all(math.isfinite(frame[name].abs().max()) and frame[name].notna().all() for name in COLUMNS[2:]):
        raise InputError(f"similarities and weights of {_WHAT} must be finite; got NaN or infinity. Leave them out")
    return frame
