"""Do objectives that count fewer negatives retrieve better? (the COCOS paper as one picture)"""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("label", "direction", "count", "rsum")
_MARKERS = {"i2t": ("o", "image to text"), "t2i": ("s", "text to image")}
_WHAT = "counts"


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Does a smaller count go with a better rsum?

    Read across: negatives per query that carry gradient; up: rsum. Circles are image-to-text queries,
    squares text-to-image queries of the same model, joined by a line. The paper (Tables 1 to 4 of the COCOS
    paper) expects the best models at the left, near a count of 1. The axis is linear up to 1 and logarithmic
    beyond. Columns: label, direction ("i2t" or "t2i"), count, rsum.
    """
    known = _known(frame)
    ax = style.axes(ax)
    labels = list(map(str, known["label"].unique()))
    tints = style.colours(labels)
    ends: list[tuple[float, float, str, str]] = []
    for label, rows in known.groupby("label", sort=False, observed=True):
        tint = tints[str(label)]
        ax.plot(rows["count"], rows["rsum"], color=tint, linewidth=1, zorder=1)
        right = rows.sort_values("count").iloc[-1]
        ends.append((float(right["count"]), float(right["rsum"]), str(label), tint))
    size = 0.45 * float(mpl.rcParams["font.size"]) ** 2
    for direction, (marker, name) in _MARKERS.items():
        rows = known[known["direction"] == direction]
        tint_list = [tints[str(label)] for label in rows["label"]]
        ax.scatter(
            rows["count"],
            rows["rsum"],
            c=tint_list,
            marker=marker,
            label=name,
            edgecolors="white",
            s=size,
            zorder=2,
        )
    _scale(ax, float(known["count"].max()))
    ax.margins(y=0.12)
    ax.set(xlabel="negatives counted per query", ylabel="rsum")
    naming.end_labels(ax, *map(list, zip(*ends, strict=True)))
    _legend(ax)
    return ax


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    parts = []
    for label, rows in _known(frame).groupby("label", sort=False, observed=True):
        each = ", ".join(f"{row['direction']} {row['count']:.3g}" for _, row in rows.iterrows())
        parts.append(f"{label}: rsum {rows['rsum'].iloc[0]:.1f}, {each}")
    return "Negatives counted per query against rsum. " + "; ".join(parts) + "."


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    style.require_columns(frame, COLUMNS, _WHAT)
    strange = sorted(set(map(str, frame["direction"])) - set(_MARKERS))
    if strange:
        raise InputError(f"direction must be i2t or t2i; got {', '.join(strange)}. Leave other rows out")
    known = frame.dropna(subset=["count", "rsum"])
    if known.empty:
        raise InputError(f"frame of {_WHAT} must have a row with both count and rsum; got none. Run eval and cocos")
    return known


def _scale(ax: Axes, top: float) -> None:
    ax.set_xscale("symlog", linthresh=1, linscale=0.6)
    ax.set_xlim(-0.05, max(2.0, top * 1.3))
    ticks = [0.0, *(base * 10.0**power for power in range(6) for base in (1, 3))]
    ax.set_xticks([tick for tick in ticks if tick <= max(2.0, top * 1.3)])
    ax.xaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()


def _legend(ax: Axes) -> None:
    legend = ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2, borderaxespad=0.2, handletextpad=0.2)
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_facecolor"):
            handle.set_facecolor("0.35")
