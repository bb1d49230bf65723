"""Are bars, intervals and points at their positions on a scale that has 0?"""

from __future__ import annotations

import math

import pytest

from lossscope.errors import InputError
from lossscope.report.bars import Bar, BarChart


def chart(*bars: Bar, differences: bool = False) -> BarChart:
    return BarChart("bars", "c", {"": bars}, "rsum", differences)


def test_the_scale_begins_at_0_and_holds_every_value() -> None:
    drawn = chart(Bar("a", 415.8, "415.8"), Bar("b", 57.2, "57.2", points=(50.0, 430.0)))
    assert drawn.ticks == [0, 200, 400, 600]
    assert drawn.place(0) == 0 and drawn.place(600) == 100 and drawn.place(300) == 50
    assert drawn.span(0, 150) == (0, 25)


def test_differences_have_0_inside_and_their_intervals() -> None:
    drawn = chart(Bar("a", -267.8, "", low=-300.2, high=-234.6), Bar("b", -0.8, "", low=-25, high=22), differences=True)
    assert drawn.ticks == [-400, -300, -200, -100, 0, 100]
    assert drawn.span(-300, -200) == drawn.span(-200, -300) == (20, 20)


@pytest.mark.parametrize("value", [0.0, 1.0, -3.0, 1e-7, 123456.0])
def test_every_value_is_on_the_scale(value: float) -> None:
    drawn = chart(Bar("a", value, ""))
    assert drawn.ticks[0] <= min(0, value) and drawn.ticks[-1] >= max(0, value) and 0.0 in drawn.ticks
    assert 0 <= drawn.place(value) <= 100 and 2 <= len(drawn.ticks) <= 7


def test_a_chart_without_rows_or_numbers_is_refused() -> None:
    with pytest.raises(InputError, match="must have a row; got none"):
        chart()
    with pytest.raises(InputError, match=r"must be finite; got .*nan"):
        chart(Bar("a", math.nan, "–"))
    with pytest.raises(InputError, match="must be finite"):
        chart(Bar("a", 1.0, "1", points=(math.inf,)))
