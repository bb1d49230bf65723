"""How much does a pair weigh at each similarity, as a positive and as a negative? (GOAL Figure 3)"""

from __future__ import annotations

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lossscope.errors import InputError

from . import labels, naming, style

COLUMNS = ("label", "side", "s", "weight")
SIDES = {"positive": "positive similarity $s_+$", "negative": "negative similarity $s_-$"}
_HEADLINE = "Weight of a pair at each similarity, as a positive and as a negative"
_NAME = "pair_curves"
_FAR = 4  # times the second highest line: if the highest is above this, the axis is that of asinh
_SHORT = 14  # characters: longer names would take the width of the panels
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 2, 1, 2)), (0, (3, 1, 1, 1, 1, 1)))
_End = tuple[float, float, str, str]  # x, y, name and colour of the right end of a line


def draw(frame: pd.DataFrame, ax: Axes | None = None) -> Axes:
    """Which pairs does each weighting emphasise? Horizontal: the pair's similarity. Vertical: its weight.

    A line that falls to the right on the positive side gives less weight to positives that are already close; a line
    that rises on the negative side gives more to hard negatives; a flat line treats all equally. One side of GOAL
    Figure 3; when the frame has both, the names of the lines state the side. A weight below 0 pulls a negative. Where a
    line rises far above all others the axis is that of asinh, which its label states: without a kink, nearly linear
    near 0 and logarithmic far above.

    Args:
        frame: columns COLUMNS; side is positive or negative.
        ax: axes to draw on; None: new ones.
    """
    ax, ends = _draw_lines(frame, style.axes_or_new(ax, _HEADLINE))
    if ends:
        naming.end_labels(ax, *map(list, zip(*ends, strict=True)))
    return ax


def _draw_lines(frame: pd.DataFrame, ax: Axes) -> tuple[Axes, list[_End]]:
    """Draw the lines and return their right ends."""
    _check(frame)
    names = _names(frame)
    colours = style.colours(names)
    both = len(frame["side"].unique()) > 1
    ends: list[_End] = []
    for (label, side), line in frame.groupby(["label", "side"], sort=False, observed=True):
        line = line.sort_values("s")
        colour, dashes = colours[str(label)], _DASHES[list(names).index(str(label)) % len(_DASHES)]
        ax.plot(line["s"], line["weight"], color=colour, linestyle=dashes, label=labels.plain_text(names[str(label)]))
        drawn = line.dropna(subset=["weight"])
        if not drawn.empty:
            name = labels.plain_text(f"{names[str(label)]}, {side}" if both else names[str(label)])
            ends.append((float(drawn["s"].iloc[-1]), float(drawn["weight"].iloc[-1]), name, colour))
    ax.set_xlabel("similarity $s$" if both else SIDES[str(frame["side"].iloc[0])])
    ax.set_ylabel("weight of the pair")
    ax.margins(x=0)
    ax.locator_params(axis="x", nbins=6)
    _scale(ax, frame)
    if frame["weight"].min() < 0:
        ax.axhline(0, color="0.6", linewidth=0.8, zorder=0)
    return ax, ends


def draw_many(frame: pd.DataFrame) -> Figure:
    """How do pair weights differ on the two sides?

    Left P+ against s+, right P- against s- (GOAL Figure 3). Long names are in a legend under both.
    """
    _check(frame)
    sides = [side for side in SIDES if (frame["side"] == side).any()]
    fig = style.set_headline(style.new_figure(width=0.15 + 0.85 * len(sides), height=0.85), _HEADLINE)
    short = max(map(len, _names(frame).values())) <= _SHORT
    for index, side in enumerate(sides):
        ax = fig.add_subplot(1, len(sides), index + 1)
        _, ends = _draw_lines(frame[frame["side"] == side], ax)
        if short and ends:
            naming.end_labels(ax, *map(list, zip(*ends, strict=True)))
        ax.set_title({"positive": "$P_+$: pulls the positive", "negative": "$P_-$: pushes the negative"}[side])
    if not short:
        naming.legend_below(fig, fig.axes[0].get_lines())
    return fig


def alt(frame: pd.DataFrame) -> str:
    """Return a description of the picture for readers who cannot see it."""
    _check(frame)
    parts, names = [], _names(frame)
    for (label, side), line in frame.groupby(["label", "side"], sort=False, observed=True):
        line = line.dropna(subset=["weight"]).sort_values("s")
        if not line.empty:
            first, last = line.iloc[0], line.iloc[-1]
            parts.append(
                f"{names[str(label)]}, {side}: {first['weight']:.3g} at similarity {first['s']:.2f}, "
                f"{last['weight']:.3g} at {last['s']:.2f}"
            )
    return "Curves of the pair weight against similarity. " + "; ".join(parts) + "."


def _names(frame: pd.DataFrame) -> dict[str, str]:
    """Return label -> its words: names of GOAL's pair weights where all are, else specs in words."""
    names = list(map(str, frame["label"].unique()))
    goal = labels.PAIR_WEIGHTS if set(names) <= set(labels.PAIR_WEIGHTS) else {}
    return {name: goal.get(name, labels.in_words(name)) for name in names}


def _scale(ax: Axes, frame: pd.DataFrame) -> None:
    """Use a linear axis; that of asinh where the highest line would press the others together."""
    highest = sorted(frame.groupby(["label", "side"], observed=True)["weight"].max().dropna())
    if len(highest) < 2 or highest[-1] <= _FAR * max(highest[-2], 1.0):
        return
    top = highest[-1] * 1.15
    ax.set_yscale("asinh", linear_width=1.0)
    ticks = [0.5, *(base * 10.0**power for power in range(6) for base in (1, 2, 5))]
    low = min(0.0, float(frame["weight"].min())) - 0.06
    ax.set_ylim(low, top)
    ax.set_yticks([tick for tick in (0.0, *ticks, *(-tick for tick in ticks)) if low <= tick <= top])
    ax.yaxis.set_major_formatter(lambda tick, _: f"{tick:g}")
    ax.minorticks_off()
    ax.set_ylabel("weight (asinh scale)")


def _check(frame: pd.DataFrame) -> None:
    """Raise InputError unless the frame has all columns, and no other sides."""
    style.require_rows(frame, COLUMNS, _NAME)
    others = sorted(set(map(str, frame["side"])) - set(SIDES))
    if others:
        raise InputError(f"side must be positive or negative; got {', '.join(others)}. Rename the values of `side`")
