"""How fast work goes and when it will be done, from what is done now: work that was found done does not count."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Pace:
    """Reports of one piece of work, `done` of `total` items.

    The first report is where the measure begins: of a sweep that is gone on with it says how much was there already.
    """

    clock: Callable[[], float] = time.monotonic
    _first: tuple[float, int] | None = field(default=None, init=False)
    _last: tuple[float, int] = field(default=(0.0, 0), init=False)
    _total: int = field(default=0, init=False)

    def seen(self, done: int, total: int) -> None:
        """Take a report; one that falls behind the last begins another run."""
        now = (self.clock(), done)
        if self._first is None or done < self._last[1]:
            self._first = now
        self._last, self._total = now, total

    @property
    def rate(self) -> float | None:
        """Items a second; None before there are two reports."""
        if self._first is None or self._last[1] <= self._first[1] or self._last[0] <= self._first[0]:
            return None
        return (self._last[1] - self._first[1]) / (self._last[0] - self._first[0])

    @property
    def left(self) -> float | None:
        """Seconds to go; None while nobody knows."""
        rate = self.rate
        return None if rate is None else max(self._total - self._last[1], 0) / rate

    def told(self) -> str:
        """`41.2/s, 1:05 left`; empty while nobody knows."""
        rate, left = self.rate, self.left
        if rate is None or left is None:
            return ""
        speed = f"{rate:.3g}/s" if rate >= 1 else f"{1 / rate:.3g} s each"
        return f"{speed}, {_span(left)} left" if left else speed


def _span(seconds: float) -> str:
    """`1:05`, `2:00:00`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
