"""How many samples carry the gradient of a query, for every threshold at once? (C(eps), which COCOS fixes at one)"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lossscope.errors import InputError

from . import style

COLUMNS = ("source", "objective", "direction", "eps", "mean")
_DIRECTIONS: dict[str, tuple[Any, str]] = {"i2t": ("-", "image to text"), "t2i": ((0, (4, 2)), "text to image")}
_WHAT = "eps_curve"
_MOST = 20  # lines that are all named; of more, some that are evenly spaced


def draw(frame: pd.DataFrame, ax: Axes | None = None, at: float = 0.01) -> Axes:
    """Does the count depend on where the threshold is put?

    Read across: eps, logarithmic; up: samples with a weight above it, the mean over all queries. A steep line says
    that the weights are alike and any count between is an accident of eps; a flat one, that a few samples have all of
    the weight. Where two lines cross, the order of two losses is a matter of eps. Solid: image to text; dashed: text
    to image. The thin line is at `at`, the eps of the paper; 0 has no place on the axis and is not marked. Weights of
    different papers have different scales, so compare shapes across families, heights within one. Columns: see
    `COLUMNS`; unknown counts are NaN.
    """
    known = _known(frame)
    ax = style.axes_or_new(ax)
    tints = _tints(list(map(str, known["label"].unique())))
    for (label, direction), rows in known.groupby(["label", "direction"], sort=False, observed=True):
        rows = rows.sort_values("eps")
        dash = _DIRECTIONS[str(direction)][0]
        ax.plot(rows["eps"], rows["mean"], color=tints[str(label)], linestyle=dash, label=f"{label} {direction}")
    if at > 0:
        _mark(ax, at)
    _scale(ax, known, at)
    ax.set(xlabel="threshold ε on the weight", ylabel="samples above ε per query")
    _legend(ax, tints, list(map(str, known["direction"].unique())))
    return ax


def _mark(ax: Axes, at: float) -> None:
    """A thin line at an eps, and its number."""
    ax.axvline(at, color="0.75", linewidth=0.8, zorder=0)
    above: dict[str, Any] = {
        "textcoords": "offset points",
        "xytext": (2, 0),
        "color": "0.45",
        "fontsize": "small",
        "va": "top",
    }
    ax.annotate(f"ε = {at:g}", (at, 1), xycoords=("data", "axes fraction"), **above)


def alt(frame: pd.DataFrame, at: float = 0.01) -> str:
    """What would a reader who can not see the picture need to know?"""
    known = _known(frame)
    parts = []
    for (label, direction), rows in known.groupby(["label", "direction"], sort=False, observed=True):
        near = rows.iloc[(rows["eps"] - at).abs().argmin()]
        parts.append(f"{label} {direction}: {near['mean']:.3g} at {near['eps']:.2g}")
    return "Samples per query with a weight above eps, against eps. " + "; ".join(parts) + "."


def _known(frame: pd.DataFrame) -> pd.DataFrame:
    """Rows with a count, and the label of their line: the objective, and its source where there are several."""
    style.require_columns(frame, COLUMNS, _WHAT)
    strange = sorted(set(map(str, frame["direction"])) - set(_DIRECTIONS))
    if strange:
        raise InputError(f"direction must be i2t or t2i; got {', '.join(strange)}. Leave other rows out")
    known = frame.dropna(subset=["mean"])
    known = known[known["eps"] > 0]
    if known.empty:
        raise InputError(f"frame of {_WHAT} must have a count above an eps > 0; got none. Every query was skipped")
    label = known["objective"].astype(str)
    return known.assign(label=label if known["source"].nunique() == 1 else label + " " + known["source"].astype(str))


def _tints(labels: list[str]) -> dict[str, str]:
    """Of one objective with other values an order of colours, else each objective's own."""
    family = {label.partition(":")[0] for label in labels}
    if len(labels) <= 2 or (len(family) > 1 and len(labels) <= len(style.PALETTE)):
        return style.colours(labels)
    shades = mpl.colormaps["viridis"](np.linspace(0, 0.9, len(labels)))
    return {label: mpl.colors.to_hex(shade) for label, shade in zip(labels, shades, strict=True)}


def _scale(ax: Axes, known: pd.DataFrame, at: float) -> None:
    """Where the lines move, `at` among it if it is above 0; counts linear up to 1 and logarithmic beyond."""
    top = known.groupby(["label", "direction"], observed=True)["mean"].transform("max")
    moving = known.loc[(known["mean"] > 0) & (known["mean"] < 0.99 * top), "eps"]
    shown = [*moving, *([at] if at > 0 else [])] or [*known["eps"]]
    ax.set_xscale("log")
    ax.set_xlim(min(shown) / 3, max(shown) * 3)
    ax.set_yscale("symlog", linthresh=1, linscale=0.6)
    most = float(known["mean"].max())
    ticks = [0.0, *(base * 10.0**power for power in range(7) for base in (1, 3))]
    ax.set_yticks([tick for tick in ticks if tick <= max(2.0, most * 1.3)])
    ax.set_ylim(-0.05, max(2.0, most * 1.3))
    ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()


def _legend(ax: Axes, tints: dict[str, str], directions: list[str]) -> None:
    told = list(tints.items())
    if len(told) > _MOST:
        told = [told[round(place)] for place in np.linspace(0, len(told) - 1, _MOST // 2)]
    handles = [Line2D([], [], color=tint, label=style.wrap_spec(label, 24)) for label, tint in told]
    if len(directions) > 1:
        handles += [
            Line2D([], [], color="0.35", linestyle=dash, label=name)
            for direction, (dash, name) in _DIRECTIONS.items()
            if direction in directions
        ]
    ax.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0, fontsize="small")
