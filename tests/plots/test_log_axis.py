"""Has a logarithmic axis at least two numbers, whatever its range, and is it linear below a decade?"""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from lossscope.plots import log_axis, style
from tests.each import each

NUMBERS = st.floats(1e-12, 1e12)
RATIOS = st.floats(1.0, 1e15)


@given(low=NUMBERS, wide=RATIOS)
def test_a_wide_axis_has_at_least_two_numbers_and_not_too_many(low: float, wide: float) -> None:
    high = low * wide
    if not log_axis.is_wide(low, high):
        assert high < 10 * low
        return
    shown = log_axis.ticks(low, high)
    assert 2 <= len(shown) <= 9 and shown == sorted(shown)
    assert low <= shown[0] <= shown[-1] <= high


@each("low, high", [(0.0, 5.0), (-1.0, 5.0), (1.0, math.inf), (math.nan, 1.0), (1.0, 9.9)])
def test_numbers_without_a_decade_above_0_are_linear(low: float, high: float) -> None:
    assert not log_axis.is_wide(low, high)


@each("which", ["x", "y"])
def test_the_numbers_are_at_the_ticks_and_nowhere_else(which: str) -> None:
    ax = style.axes_or_new(None)
    ax.plot([2, 41], [2, 41])
    log_axis.set_log(ax, which, 2, 41)  # type: ignore[arg-type]
    ax.figure.draw_without_rendering()  # type: ignore[union-attr]
    axis = ax.xaxis if which == "x" else ax.yaxis
    assert axis.get_scale() == "log" and axis.get_ticklocs(minor=True).size == 0
    assert [text.get_text() for text in axis.get_ticklabels()] == ["3", "10", "30"]
