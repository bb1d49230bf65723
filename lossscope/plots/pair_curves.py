"""How much does a pair weigh at each similarity, as a positive and as a negative? (GOAL Figure 3)"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import naming, style

COLUMNS = ("label", "side", "s", "weight")
SIDES = {"positive": "positive similarity $s_+$", "negative": "negative similarity $s_-$"}
_WHAT = "pair_curves"
_FAR = 4  # times the next line: further above and the axis turns logarithmic
_SHORT = 14  # letters: longer names would take the width of the panels
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which pairs does each weighting care for? Read across: the pair's similarity; up: its weight.

    A line that falls to the right on the positive side lets go of positives that are already close; a line
    that rises on the negative side saves its strength for hard negatives; a flat line treats all alike. One
    side of GOAL Figure 3; when the frame has both, the sides are told apart by name. Where one line rises far above
    all others the axis is logarithmic above 1, which its label says. Columns: label, side ("positive" or "negative"),
    s, weight.
    """
    ax, ends = _paint(frame, style.axes_or_new(ax))
    if ends:
        naming.end_labels(ax, *map(list, zip(*ends, strict=True)))
    return ax


def _paint(frame: pd.DataFrame, ax: Axes) -> tuple[Axes, list[tuple[float, float, str, str]]]:
    """The lines; where each ends, its name and colour."""
    _check(frame)
    labels = list(map(str, frame["label"].unique()))
    tints = style.colours(labels)
    both = len(frame["side"].unique()) > 1
    ends: list[tuple[float, float, str, str]] = []
    for (label, side), line in frame.groupby(["label", "side"], sort=False, observed=True):
        line = line.sort_values("s")
        dash = _DASHES[labels.index(str(label)) % len(_DASHES)]
        ax.plot(line["s"], line["weight"], color=tints[str(label)], linestyle=dash, label=str(label))
        known = line.dropna(subset=["weight"])
        if not known.empty:
            name = f"{label}, {side}" if both else str(label)
            ends.append((float(known["s"].iloc[-1]), float(known["weight"].iloc[-1]), name, tints[str(label)]))
    ax.set_xlabel("similarity $s$" if both else SIDES[str(frame["side"].iloc[0])])
    ax.set_ylabel("weight of the pair")
    ax.margins(x=0)
    _scale(ax, frame)
    return ax, ends


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do pair weights differ on the two sides?

    Left P+ against s+, right P- against s- (GOAL Figure 3). Long names are in a legend under both.
    """
    _check(frame)
    sides = [side for side in SIDES if (frame["side"] == side).any()]
    fig = style.new_figure(width=0.15 + 0.85 * len(sides), height=0.85)
    short = frame["label"].astype(str).str.len().max() <= _SHORT
    for place, side in enumerate(sides):
        ax = fig.add_subplot(1, len(sides), place + 1)
        _, ends = _paint(frame[frame["side"] == side], ax)
        if short and ends:
            naming.end_labels(ax, *map(list, zip(*ends, strict=True)))
        ax.set_title({"positive": "$P_+$: pulls the positive", "negative": "$P_-$: pushes the negative"}[side])
    if not short:
        naming.legend_below(fig, fig.axes[0].get_lines())
    return fig


def alt(frame: pd.DataFrame) -> str:
    """What would a reader who can not see the picture need to know?"""
    _check(frame)
    parts = []
    for (label, side), line in frame.groupby(["label", "side"], sort=False, observed=True):
        line = line.dropna(subset=["weight"]).sort_values("s")
        if not line.empty:
            first, last = line.iloc[0], line.iloc[-1]
            parts.append(
                f"{label}, {side}: {first['weight']:.3g} at similarity {first['s']:.2f}, "
                f"{last['weight']:.3g} at {last['s']:.2f}"
            )
    return "Curves of the pair weight against similarity. " + "; ".join(parts) + "."


def _scale(ax: Axes, frame: pd.DataFrame) -> None:
    """Linear; above 1 logarithmic where the highest line would press the others together."""
    tops = sorted(frame.groupby(["label", "side"], observed=True)["weight"].max().dropna())
    if len(tops) < 2 or tops[-1] <= _FAR * max(tops[-2], 1.0):
        return
    ax.set_yscale("symlog", linthresh=1, linscale=1.5)
    ticks = [0.0, 0.5, *(base * 10.0**power for power in range(6) for base in (1, 2, 5))]
    low = min(0.0, float(frame["weight"].min()))
    ax.set_ylim(low - 0.06, tops[-1] * 1.15)
    ax.set_yticks([tick for tick in ticks if tick <= tops[-1] * 1.15])
    ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()
    ax.set_ylabel("weight (log above 1)")


def _check(frame: pd.DataFrame) -> None:
    style.require_columns(frame, COLUMNS, _WHAT)
    strange = sorted(set(map(str, frame["side"])) - set(SIDES))
    if strange:
        raise InputError(f"side must be positive or negative; got {', '.join(strange)}. Rename the values of `side`")
