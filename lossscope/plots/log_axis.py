"""Is an axis of given numbers logarithmic, and which of its ticks have a number?"""

from __future__ import annotations

import math
from typing import Literal

from matplotlib.axes import Axes

DECADE = 10  # largest / smallest number from which an axis is logarithmic: below, it could have a single round tick
_FINE, _COARSE, _WIDEST = 20, 1e3, 1e6  # largest / smallest number up to which a decade has three ticks, two, one


def is_wide(low: float, high: float) -> bool:
    """Return whether numbers from low to high are drawn on a logarithmic axis: a decade or more, above 0."""
    return low > 0 and math.isfinite(high) and high >= DECADE * low


def ticks(low: float, high: float) -> list[float]:
    """Return the round numbers from low to high that an axis labels; over a decade or more at least two.

    >>> ticks(0.3, 4), ticks(0.02, 7), ticks(1, 3000)
    ([0.5, 1.0, 2.0], [0.03, 0.1, 0.3, 1.0, 3.0], [1.0, 10.0, 100.0, 1000.0])
    """
    wide = high / low
    bases = (1, 2, 5) if wide < _FINE else (1, 3) if wide < _COARSE else (1,)
    step = 1 if wide < _WIDEST else math.ceil(math.log10(wide) / 5)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    numbers = [float(f"{base}e{power}") for power in powers if power % step == 0 for base in bases]
    return [tick for tick in numbers if low <= tick <= high]


def set_log(ax: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis of numbers from low to high logarithmic, with numbers at its round ticks and no others."""
    axis, set_scale = (ax.xaxis, ax.set_xscale) if which == "x" else (ax.yaxis, ax.set_yscale)
    set_scale("log")
    axis.set_ticks(ticks(low, high))
    axis.set_ticks([], minor=True)
    powers = high / low >= _COARSE  # 0.0001 and 100000 would touch
    axis.set_major_formatter(lambda tick, _: rf"$10^{{{math.log10(tick):.0f}}}$" if powers else f"{tick:g}")
