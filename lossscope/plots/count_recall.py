"""Do objectives that count fewer negatives retrieve better, whatever the data and the model? (count against recall)"""

from __future__ import annotations

import math

import matplotlib as mpl
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("label", "panel", "direction", "seed", "count", "rsum")
MARKERS = {"i2t": ("o", "image to text"), "t2i": ("s", "text to image")}
_WHAT = "count_recall"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Does a smaller count go with a better rsum? One panel: one model on one data set, several objectives.

    Read across: negatives per query that carry gradient, linear up to 1 and logarithmic beyond; up: rsum. Each mark is
    the mean over seeds, bars are one sample standard deviation (ddof 1) either way, none for one seed; faint marks are
    the seeds. Circles are image-to-text queries, squares text-to-image queries of the same models, joined by a thin
    line. The argument of the COCOS paper (Tables 1 to 4) is a fall from left to right. Columns: see `COLUMNS`.
    """
    known = _known(frame)
    panel = style.single_value(known, "panel", _WHAT)
    ax = style.axes_or_new(ax)
    tints = style.colours(list(map(str, known["label"].unique())))
    _paint(ax, known, tints)
    _scale(ax, float(known["count"].max()))
    ax.set(xlabel="negatives counted per query", ylabel="rsum")
    ax.set_title(style.wrap_spec(panel, 40))
    ax.legend(handles=_handles(tints, known), loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)
    return ax


def draw_many(frame: pd.DataFrame) -> Figure:
    """Where does it hold, where does it turn round? A panel per data set or model, counts on one scale."""
    known = _known(frame)
    panels = list(known["panel"].unique())
    across = style.panels_per_row(len(panels))
    down = math.ceil(len(panels) / across)
    fig = style.new_figure(width=0.2 + 0.7 * across, height=0.85 * down)
    tints = style.colours(list(map(str, known["label"].unique())))
    for place, panel in enumerate(panels):
        ax = fig.add_subplot(down, across, place + 1)
        _paint(ax, known[known["panel"] == panel], tints)
        _scale(ax, float(known["count"].max()))
        ax.set_title(style.wrap_spec(str(panel), 30))
        ax.set_xlabel("negatives counted per query" if place + across >= len(panels) else "")
        ax.set_ylabel("rsum" if place % across == 0 else "")
    naming.legend_below(fig, _handles(tints, known), _told(known))
    return fig


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for panel, rows in _means(_known(frame)).groupby("panel", sort=False, observed=True):
        each = [
            f"{row.label} {row.direction} {row.count_mean:.3g} with rsum {row.rsum_mean:.1f} (n = {row.seeds})"
            for row in rows.itertuples()
        ]
        parts.append(f"{panel}: {', '.join(each)}")
    return "Negatives counted per query against rsum, means over seeds. " + "; ".join(parts) + "."


def _means(known: pd.DataFrame) -> pd.DataFrame:
    """A row per panel, label and direction: means over seeds of both, and how many seeds."""
    grouped = known.groupby(["panel", "label", "direction"], sort=False, observed=True)
    return grouped.agg(
        count_mean=("count", "mean"), rsum_mean=("rsum", "mean"), seeds=("seed", "nunique")
    ).reset_index()  # fmt: skip


def _paint(ax: Axes, known: pd.DataFrame, tints: dict[str, str]) -> None:
    means = _means(known)
    size = 0.6 * float(mpl.rcParams["font.size"])
    for label, pair in means.groupby("label", sort=False, observed=True):
        ax.plot(pair["count_mean"], pair["rsum_mean"], color=tints[str(label)], linewidth=0.8, zorder=1)
    for (name, direction), own in known.groupby(["label", "direction"], sort=False, observed=True):
        tint, marker = tints[str(name)], MARKERS[str(direction)][0]
        if len(own) > 1:
            ax.scatter(own["count"], own["rsum"], color=tint, marker=marker, s=size**2 / 4, alpha=0.35, lw=0, zorder=2)
        across, up = (float(own[what].std()) if len(own) > 1 else None for what in ("count", "rsum"))
        ax.errorbar(
            float(own["count"].mean()), float(own["rsum"].mean()), color=tint, marker=marker, markersize=size,
            markeredgecolor="white", elinewidth=1, capsize=2, linestyle="none", zorder=3, xerr=across, yerr=up,
        )  # fmt: skip
    ax.margins(y=0.12)


def _handles(tints: dict[str, str], known: pd.DataFrame) -> list[Artist]:
    handles: list[Artist] = [Line2D([], [], color=tint, linewidth=3, label=label) for label, tint in tints.items()]
    for direction, (marker, name) in MARKERS.items():
        if (known["direction"] == direction).any():
            handles.append(Line2D([], [], color="0.35", marker=marker, linestyle="none", label=name))
    return handles


def _told(known: pd.DataFrame) -> str:
    seeds = sorted(set(_means(known)["seeds"]))
    number = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
    if seeds[-1] == 1:
        return "One seed each"
    return f"Means over {number} seeds, bars are one sample standard deviation"


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    strange = sorted(set(map(str, frame["direction"])) - set(MARKERS))
    if strange:
        raise InputError(f"direction must be i2t or t2i; got {', '.join(strange)}. Leave other rows out")
    if frame.duplicated(["label", "panel", "direction", "seed"]).any():
        raise InputError(
            f"frame of {_WHAT} must hold each label, panel, direction and seed once; got some twice. Say in `panel` "
            "what tells them apart"
        )
    known = frame.dropna(subset=["count", "rsum"])
    if known.empty:
        raise InputError(f"frame of {_WHAT} must have a row with both count and rsum; got none. Run eval and cocos")
    return known


def _scale(ax: Axes, top: float) -> None:
    end = max(2.0, top * 1.3)
    ax.set_xscale("symlog", linthresh=1, linscale=0.6)
    ax.set_xlim(-0.08, end)
    steps = (1, 3) if end <= 300 else (1,)
    ax.set_xticks([tick for tick in (0.0, *(b * 10.0**power for power in range(6) for b in steps)) if tick <= end])
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()
