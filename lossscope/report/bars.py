"""Bar charts of the page: a value per row with its interval and the values of single runs, drawn without scripts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lossscope.errors import InputError

_STEPS = (1, 2, 5, 10)  # of ticks, times a power of ten


@dataclass(frozen=True)
class Bar:
    """One row of a bar chart."""

    label: str
    value: float
    text: str  # the number as it is printed
    colour: str = "#0072B2"
    low: float | None = None  # interval, or None
    high: float | None = None
    points: tuple[float, ...] = ()  # single runs


@dataclass(frozen=True)
class BarChart:
    """Panels of rows on one scale that has 0. Raises InputError without a row, and for values that are not finite."""

    name: str
    caption: str
    panels: Mapping[str, tuple[Bar, ...]]  # heading -> rows
    axis: str  # what the scale is
    differences: bool = False  # marks with intervals about 0, instead of bars

    def __post_init__(self) -> None:
        if not self._bars:
            raise InputError(f"bar chart {self.name!r} must have a row; got none")
        if not all(math.isfinite(value) for value in self._values):
            raise InputError(f"values of bar chart {self.name!r} must be finite; got {self._values}")

    @property
    def _bars(self) -> list[Bar]:
        return [bar for bars in self.panels.values() for bar in bars]

    @property
    def _values(self) -> list[float]:
        values = [(bar.value, *bar.points, bar.low, bar.high) for bar in self._bars]
        return [value for values in values for value in values if value is not None]

    @property
    def ticks(self) -> list[float]:
        """About four numbers of the scale, 0 among them, that hold all values."""
        low, high = min(0.0, *self._values), max(0.0, *self._values)
        rough = (high - low) / 4 or 0.25
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in _STEPS if factor * power >= rough * (1 - 1e-9))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return [number * step for number in range(first, max(last, first + 1) + 1)]

    def place(self, value: float) -> float:
        """Return the place of a value on the scale, in per cent of its width."""
        first, last = self.ticks[0], self.ticks[-1]
        return round(100 * (value - first) / (last - first), 3)

    def span(self, start: float, end: float) -> tuple[float, float]:
        """Return left end and width of a stretch of the scale, in per cent."""
        left, right = sorted((self.place(start), self.place(end)))
        return left, round(right - left, 3)
